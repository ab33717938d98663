// The LSTM of ADBench: next character of a sequence, every unit with its own weights; objective and
// gradient by the main and the extra parameters.
//
// Sizes l (layers), c (characters), b (width). Inputs main[l][2][4][b] (of a layer first the weights of the
// gates forget, in, out, change, then their biases), extra[3][b] (input weight, output weight, output
// bias), state[l][2][b] (hidden, cell), sequence[c][b]. Outputs value[1], dmain, dextra.
//
// A unit reads no other unit of its layer, and the loss feeds nothing back: so lanes are units, a layer
// runs over all characters before the next, and what does not wait for the layer's own past (the gates
// forget and out, the losses) is a loop of its own without a recurrence. The gradient goes the same
// way backwards, with sums of the weights in registers.
#include "vectors.h"

namespace {

constexpr int64_t L = Lanes<double>::count;

struct Problem {
  int64_t l, t, b, groups, wide;
  const double *main, *extra, *state, *sequence;
  Problem(Sizes s, Inputs in)
      : l(s[0]), t(s[1] - 1), b(s[2]), groups((b + L - 1) / L), wide(groups * L), main((const double*)in[0]),
        extra((const double*)in[1]), state((const double*)in[2]), sequence((const double*)in[3]) {}
};

// What one layer leaves for its gradient: rows of `wide` for each character.
enum Row { FORGET, IN, OUT, CHANGE, CELL, TANH, HIDDEN, ROWS };

struct Work {
  Kept<double> params, extra, state, sequence, input, rows, soft, back;
} work;

// Copies rows of b into rows of `wide`, the rest zero.
double* padded(Kept<double>& to, const double* from, int64_t rows, const Problem& p) {
  double* out = to.get(rows * p.wide);
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(out + r * p.wide, from + r * p.b, p.b * sizeof(double));
    std::memset(out + r * p.wide + p.b, 0, (p.wide - p.b) * sizeof(double));
  }
  return out;
}

// One layer over all characters for G groups of lanes at once; groups do not wait for each other.
template <int64_t G>
void layer(const Problem& p, const double* w, const double* state, const double* input, double* rows, int64_t at) {
  const int64_t wide = p.wide, plane = p.t * wide;
  const auto param = [&](int64_t k, int64_t g) { return load(w + k * wide + at + g * L); };
  for (int64_t g = 0; g < G; ++g) {
    const V wf = param(FORGET, g), wo = param(OUT, g), bf = param(4 + FORGET, g), bo = param(4 + OUT, g);
    for (int64_t t = 0; t < p.t; ++t) {
      const int64_t i = t * wide + at + g * L;
      const V x = load(input + i);
      store(rows + FORGET * plane + i, sigmoid_of(x * wf + bf));
      store(rows + OUT * plane + i, sigmoid_of(x * wo + bo));
    }
  }
  V hidden[G], cell[G], wi[G], wc[G], bi[G], bc[G];
  for (int64_t g = 0; g < G; ++g) {
    hidden[g] = load(state + at + g * L), cell[g] = load(state + wide + at + g * L);
    wi[g] = param(IN, g), wc[g] = param(CHANGE, g), bi[g] = param(4 + IN, g), bc[g] = param(4 + CHANGE, g);
  }
  for (int64_t t = 0; t < p.t; ++t)
    for (int64_t g = 0; g < G; ++g) {
      const int64_t i = t * wide + at + g * L;
      const V in = sigmoid_of(hidden[g] * wi[g] + bi[g]), change = tanh_of(hidden[g] * wc[g] + bc[g]);
      cell[g] = cell[g] * load(rows + FORGET * plane + i) + in * change;
      const V th = tanh_of(cell[g]);
      hidden[g] = load(rows + OUT * plane + i) * th;
      store(rows + IN * plane + i, in), store(rows + CHANGE * plane + i, change);
      store(rows + CELL * plane + i, cell[g]), store(rows + TANH * plane + i, th);
      store(rows + HIDDEN * plane + i, hidden[g]);
    }
}

// The objective; `soft` becomes its gradient by the outputs if it is asked for.
double losses(const Problem& p, const double* hidden, const double* extra, const double* sequence, double* soft) {
  double total = 0.0;
  V mask[p.groups];
  for (int64_t g = 0; g < p.groups; ++g)
    for (int64_t l = 0; l < L; ++l) mask[g][l] = g * L + l < p.b ? 1.0 : 0.0;
  const double scale = 1.0 / (double)(p.t * p.b);
  for (int64_t t = 0; t < p.t; ++t) {
    V sum = {}, dot = {}, golds = {}, e[p.groups];
    for (int64_t g = 0; g < p.groups; ++g) {
      const V gold = load(sequence + (t + 1) * p.wide + g * L);
      const V y = load(hidden + t * p.wide + g * L) * load(extra + p.wide + g * L) + load(extra + 2 * p.wide + g * L);
      e[g] = exp_of(y) * mask[g];
      sum += e[g], dot += gold * y, golds += gold;
    }
    const double all_gold = sum_of(golds), norm = sum_of(sum) + 2.0;
    total += sum_of(dot) - all_gold * std::log(norm);
    if (soft)
      for (int64_t g = 0; g < p.groups; ++g)
        store(soft + t * p.wide + g * L,
              scale * (e[g] * (all_gold / norm) - load(sequence + (t + 1) * p.wide + g * L)));
  }
  return -total * scale;
}

template <class F> void by_groups(int64_t groups, F&& each) {
  int64_t g = 0;
  for (; g + 2 <= groups; g += 2) each(std::integral_constant<int64_t, 2>(), g * L);
  if (g < groups) each(std::integral_constant<int64_t, 1>(), g * L);
}

double primal(const Problem& p, bool soft) {
  const double* w = padded(work.params, p.main, p.l * 8, p);
  const double* extra = padded(work.extra, p.extra, 3, p);
  const double* state = padded(work.state, p.state, p.l * 2, p);
  const double* sequence = padded(work.sequence, p.sequence, p.t + 1, p);
  const int64_t plane = p.t * p.wide;
  double *input = work.input.get(plane), *rows = work.rows.get(p.l * ROWS * plane);
  for (int64_t t = 0; t < p.t; ++t)
    for (int64_t g = 0; g < p.wide; g += L)
      store(input + t * p.wide + g, load(sequence + t * p.wide + g) * load(extra + g));
  for (int64_t k = 0; k < p.l; ++k) {
    double* mine = rows + k * ROWS * plane;
    by_groups(p.groups, [&](auto g, int64_t at) {
      layer<decltype(g)::value>(p, w + k * 8 * p.wide, state + k * 2 * p.wide, input, mine, at);
    });
    input = mine + HIDDEN * plane;
  }
  return losses(p, input, extra, sequence, soft ? work.soft.get(plane) : nullptr);
}

// The layer backwards: `back` holds the gradient by its outputs and becomes that by its inputs.
template <int64_t G>
void layer_back(const Problem& p, const double* w, const double* state, const double* input, const double* rows,
                double* back, double* dw, int64_t at) {
  const int64_t wide = p.wide, plane = p.t * wide;
  V dhidden[G] = {}, dcell[G] = {}, dweight[4][G] = {}, dbias[4][G] = {}, weight[4][G];
  for (int64_t k = 0; k < 4; ++k)
    for (int64_t g = 0; g < G; ++g) weight[k][g] = load(w + k * wide + at + g * L);
  for (int64_t t = p.t - 1; t >= 0; --t)
    for (int64_t g = 0; g < G; ++g) {
      const int64_t i = t * wide + at + g * L;
      const auto row = [&](Row r) { return load(rows + r * plane + i); };
      const V f = row(FORGET), in = row(IN), o = row(OUT), c = row(CHANGE), th = row(TANH), x = load(input + i);
      const V h = t ? load(rows + HIDDEN * plane + i - wide) : load(state + at + g * L);
      const V before = t ? load(rows + CELL * plane + i - wide) : load(state + wide + at + g * L);
      const V dh = dhidden[g] + load(back + i), dc = dcell[g] + dh * o * (1.0 - th * th);
      const V d[4] = {dc * before * f * (1.0 - f), dc * c * in * (1.0 - in), dh * th * o * (1.0 - o),
                      dc * in * (1.0 - c * c)};
      const V read[4] = {x, h, x, h};
      for (int64_t k = 0; k < 4; ++k) dweight[k][g] += d[k] * read[k], dbias[k][g] += d[k];
      dcell[g] = dc * f;
      dhidden[g] = d[IN] * weight[IN][g] + d[CHANGE] * weight[CHANGE][g];
      store(back + i, d[FORGET] * weight[FORGET][g] + d[OUT] * weight[OUT][g]);
    }
  for (int64_t k = 0; k < 4; ++k)
    for (int64_t g = 0; g < G; ++g) {
      double both[2][L];
      store(both[0], dweight[k][g]), store(both[1], dbias[k][g]);
      for (int64_t l = 0; l < std::min(L, p.b - at - g * L); ++l)
        for (int64_t h = 0; h < 2; ++h) dw[(4 * h + k) * p.b + at + g * L + l] = both[h][l];
    }
}

}  // namespace

BASELINE void lstm_primal(Sizes sizes, Inputs in, Outputs out) {
  *(double*)out[0] = primal(Problem(sizes, in), false);
}

BASELINE void lstm_gradient(Sizes sizes, Inputs in, Outputs out) {
  const Problem p(sizes, in);
  *(double*)out[0] = primal(p, true);
  double *dmain = (double*)out[1], *dextra = (double*)out[2];
  const int64_t plane = p.t * p.wide;
  const double *rows = work.rows.at, *extra = work.extra.at, *sequence = work.sequence.at;
  const double* top = rows + ((p.l - 1) * ROWS + HIDDEN) * plane;
  double* back = work.back.get(plane);
  const auto put = [&](int64_t row, int64_t g, V sum) {
    for (int64_t l = 0; l < std::min(L, p.b - g); ++l) dextra[row * p.b + g + l] = sum[l];
  };
  for (int64_t g = 0; g < p.wide; g += L) {
    V scale = {}, bias = {};
    const V w = load(extra + p.wide + g);
    for (int64_t i = g; i < plane; i += p.wide) {
      const V d = load(work.soft.at + i);
      scale += d * load(top + i), bias += d;
      store(back + i, d * w);
    }
    put(1, g, scale), put(2, g, bias);
  }
  for (int64_t k = p.l - 1; k >= 0; --k)
    by_groups(p.groups, [&](auto g, int64_t at) {
      layer_back<decltype(g)::value>(p, work.params.at + k * 8 * p.wide, work.state.at + k * 2 * p.wide,
                                     k ? rows + ((k - 1) * ROWS + HIDDEN) * plane : work.input.at,
                                     rows + k * ROWS * plane, back, dmain + k * 8 * p.b, at);
    });
  for (int64_t g = 0; g < p.wide; g += L) {
    V sum = {};
    for (int64_t i = g; i < plane; i += p.wide) sum += load(back + i) * load(sequence + i);
    put(0, g, sum);
  }
}
