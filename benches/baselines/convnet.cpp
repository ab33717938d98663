// A small convolutional network in the layout of programs/apps/convnet.ks: twice convolution, rectifier
// and pooling, then a dense layer with rectifier, a dense layer, and the mean cross-entropy; its value
// and its gradient by all weights. `convnet_f32_*` is what is measured, `convnet_f64_*` the same code
// for checks.
//
// Sizes batch, rows, columns, pad (zeros around the input of each convolution), c1, c2 (channels, multiples
// of the lanes of a vector), hidden, classes. Inputs images[batch][1][rows][columns],
// kernels1[c1][1][5][5], bias1[c1], kernels2[c2][c1][5][5], bias2[c2], weights3[hidden][flat],
// bias3[hidden], weights4[classes][hidden], bias4[classes], labels[batch] (integers); flat is channel by
// row by column. Outputs value[1], then the gradient by inputs 1 to 8.
//
// Inside, channels come last, so that lanes are channels: a convolution holds a row of pixels times one or
// two vectors of channels in registers. The gradient by the input of a convolution is a convolution with
// the kernel turned round; that by the kernel holds its taps in registers over all pixels.
#include "vectors.h"

namespace {

constexpr int64_t K = 5;

// W pixels by G vectors of channels. `in` [..][wide][ci], `w` [K][K][ci][co], `out` [..][columns][co].
template <class T, int64_t W, int64_t G>
void tile(const T* __restrict in, int64_t wide, int64_t ci, const T* __restrict w, int64_t co, const T* bias,
          T* __restrict out) {
  constexpr int64_t L = Lanes<T>::count;
  Vec<T> sum[W][G];
  for (int64_t x = 0; x < W; ++x)
    for (int64_t g = 0; g < G; ++g) sum[x][g] = bias ? load(bias + g * L) : Vec<T>{};
  for (int64_t dy = 0; dy < K; ++dy)
    for (int64_t k = 0; k < K * ci; ++k) {
      const T *from = in + dy * wide * ci + k, *tap = w + (dy * K * ci + k) * co;
      Vec<T> f[G];
      for (int64_t g = 0; g < G; ++g) f[g] = load(tap + g * L);
      for (int64_t x = 0; x < W; ++x)
        for (int64_t g = 0; g < G; ++g) sum[x][g] += from[x * ci] * f[g];
    }
  for (int64_t x = 0; x < W; ++x)
    for (int64_t g = 0; g < G; ++g) store(out + x * co + g * L, sum[x][g]);
}

template <class T, int64_t G>
void convolve_row(const T* in, int64_t wide, int64_t ci, const T* w, int64_t co, const T* bias, T* out, int64_t columns) {
  int64_t x = 0;
  const auto run = [&](auto width) {
    constexpr int64_t W = decltype(width)::value;
    for (; x + W <= columns; x += W) tile<T, W, G>(in + x * ci, wide, ci, w, co, bias, out + x * co);
  };
  run(std::integral_constant<int64_t, 14>());
  run(std::integral_constant<int64_t, 12>());
  run(std::integral_constant<int64_t, 8>());
  run(std::integral_constant<int64_t, 4>());
  run(std::integral_constant<int64_t, 1>());
}

template <class T>
void convolve(const T* in, int64_t wide, int64_t ci, const T* w, int64_t co, const T* bias, T* out, int64_t rows,
              int64_t columns) {
  constexpr int64_t L = Lanes<T>::count;
  for (int64_t c = 0; c < co;) {
    const bool two = c + 2 * L <= co;
    for (int64_t y = 0; y < rows; ++y)
      (two ? convolve_row<T, 2> : convolve_row<T, 1>)(in + y * wide * ci, wide, ci, w + c, co, bias ? bias + c : nullptr,
                                                      out + y * columns * co + c, columns);
    c += two ? 2 * L : L;
  }
}

// dw[dy][dx][ci][co] += sum over pixels of in times dout; `dout` has rows of `dwide` pixels.
template <class T, int64_t G, int64_t C>
void taps(const T* __restrict in, int64_t wide, int64_t ci, const T* __restrict dout, int64_t dwide, int64_t co,
          T* __restrict dw, int64_t rows, int64_t columns) {
  constexpr int64_t L = Lanes<T>::count;
  for (int64_t dy = 0; dy < K; ++dy)
    for (int64_t c = 0; c < ci; c += C) {
      Vec<T> sum[K][C][G] = {};
      for (int64_t y = 0; y < rows; ++y)
        for (int64_t x = 0; x < columns; ++x) {
          const T* from = in + ((y + dy) * wide + x) * ci + c;
          Vec<T> d[G];
          for (int64_t g = 0; g < G; ++g) d[g] = load(dout + (y * dwide + x) * co + g * L);
          for (int64_t dx = 0; dx < K; ++dx)
            for (int64_t h = 0; h < C; ++h)
              for (int64_t g = 0; g < G; ++g) sum[dx][h][g] += from[dx * ci + h] * d[g];
        }
      for (int64_t dx = 0; dx < K; ++dx)
        for (int64_t h = 0; h < C; ++h)
          for (int64_t g = 0; g < G; ++g) {
            T* to = dw + ((dy * K + dx) * ci + c + h) * co + g * L;
            store(to, load(to) + sum[dx][h][g]);
          }
    }
}

template <class T>
void kernel_gradient(const T* in, int64_t wide, int64_t ci, const T* dout, int64_t dwide, int64_t co, T* dw, T* dbias,
                     int64_t rows, int64_t columns) {
  constexpr int64_t L = Lanes<T>::count;
  for (int64_t c = 0; c < co;) {
    const bool two = c + 2 * L <= co, even = ci % 2 == 0;
    const auto run = two ? (even ? taps<T, 2, 2> : taps<T, 2, 1>) : (even ? taps<T, 1, 2> : taps<T, 1, 1>);
    run(in, wide, ci, dout + c, dwide, co, dw + c, rows, columns);
    c += two ? 2 * L : L;
  }
  for (int64_t y = 0; y < rows; ++y)
    for (int64_t x = 0; x < columns; ++x)
      for (int64_t c = 0; c < co; c += L) store(dbias + c, load(dbias + c) + load(dout + (y * dwide + x) * co + c));
}

// Rectifier and 2 by 2 maxima; `which` says where the maximum was: 0 to 3, or 4 for the rectifier.
template <class T>
void pool(const T* in, int64_t columns, int64_t channels, T* out, int64_t out_wide, T* which, int64_t rows) {
  constexpr int64_t L = Lanes<T>::count;
  for (int64_t y = 0; y < rows / 2; ++y)
    for (int64_t x = 0; x < columns / 2; ++x)
      for (int64_t c = 0; c < channels; c += L) {
        Vec<T> best = {}, at = all((T)4);
        for (int64_t k = 0; k < 4; ++k) {
          const Vec<T> v = load(in + ((2 * y + k / 2) * columns + 2 * x + k % 2) * channels + c);
          at = v > best ? all((T)k) : at;
          best = v > best ? v : best;
        }
        store(out + (y * out_wide + x) * channels + c, best);
        store(which + (y * (columns / 2) + x) * channels + c, at);
      }
}

template <class T>
void pool_back(const T* d, const T* which, int64_t columns, int64_t channels, T* out, int64_t out_wide, int64_t rows) {
  constexpr int64_t L = Lanes<T>::count;
  for (int64_t y = 0; y < rows / 2; ++y)
    for (int64_t x = 0; x < columns / 2; ++x)
      for (int64_t c = 0; c < channels; c += L) {
        const int64_t i = (y * (columns / 2) + x) * channels + c;
        const Vec<T> at = load(which + i), v = load(d + i);
        for (int64_t k = 0; k < 4; ++k)
          store(out + ((2 * y + k / 2) * out_wide + 2 * x + k % 2) * channels + c, at == all((T)k) ? v : Vec<T>{});
      }
}

template <class T, int64_t M, int64_t G>
void block(int64_t n, int64_t k, const T* __restrict a, int64_t across, int64_t down, const T* __restrict b,
           T* __restrict c) {
  constexpr int64_t L = Lanes<T>::count;
  Vec<T> sum[M][G] = {};
  for (int64_t i = 0; i < k; ++i) {
    Vec<T> row[G];
    for (int64_t g = 0; g < G; ++g) row[g] = load(b + i * n + g * L);
    for (int64_t m = 0; m < M; ++m)
      for (int64_t g = 0; g < G; ++g) sum[m][g] += a[m * across + i * down] * row[g];
  }
  for (int64_t m = 0; m < M; ++m)
    for (int64_t g = 0; g < G; ++g) store(c + m * n + g * L, sum[m][g]);
}

// c[m][n] = sum over k of a[m * across + k * down] * b[k][n]; n is a multiple of the lanes.
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const T* a, int64_t across, int64_t down, const T* b, T* c) {
  constexpr int64_t L = Lanes<T>::count;
  const auto rows = [&](auto width, int64_t j) {
    constexpr int64_t G = decltype(width)::value;
    int64_t i = 0;
    for (; i + 6 <= m; i += 6) block<T, 6, G>(n, k, a + i * across, across, down, b + j, c + i * n + j);
    for (; i < m; ++i) block<T, 1, G>(n, k, a + i * across, across, down, b + j, c + i * n + j);
  };
  int64_t j = 0;
  for (; j + 4 * L <= n; j += 4 * L) rows(std::integral_constant<int64_t, 4>(), j);
  for (; j < n; j += L) rows(std::integral_constant<int64_t, 1>(), j);
}

template <class T> struct Network {
  int64_t batch, rows, columns, pad, c1, c2, hidden, classes;
  // Rows and columns of a convolution's padded input, its output, and after pooling.
  int64_t in1[2], out1[2], half1[2], in2[2], out2[2], half2[2], flat;
  const T *images, *kernels1, *bias1, *kernels2, *bias2, *weights3, *bias3, *weights4, *bias4;
  const int64_t* labels;

  Network(Sizes s, Inputs in)
      : batch(s[0]), rows(s[1]), columns(s[2]), pad(s[3]), c1(s[4]), c2(s[5]), hidden(s[6]), classes(s[7]) {
    for (int i = 0; i < 2; ++i) {
      in1[i] = s[1 + i] + 2 * pad, out1[i] = in1[i] - K + 1, half1[i] = out1[i] / 2;
      in2[i] = half1[i] + 2 * pad, out2[i] = in2[i] - K + 1, half2[i] = out2[i] / 2;
    }
    flat = half2[0] * half2[1] * c2;
    const T** all[] = {&images, &kernels1, &bias1, &kernels2, &bias2, &weights3, &bias3, &weights4, &bias4};
    for (int i = 0; i < 9; ++i) *all[i] = (const T*)in[i];
    labels = (const int64_t*)in[9];
  }
  int64_t image1() const { return in1[0] * in1[1]; }
  int64_t image2() const { return in2[0] * in2[1] * c1; }
  int64_t pooled() const { return half1[0] * half1[1] * c1; }
};

template <class T> struct Work {
  Kept<T> input1, input2, which1, which2, w1, w2, turned, conv, pooled, features, permuted, transposed, hidden, scores;
  Kept<T> dscores, dhidden, dfeatures, dconv, dpooled, dw1, dw2, dpermuted;
};
template <class T> Work<T> work;

// [o][c][taps] to [taps][c][o] or back.
template <class T> void channels_last(const T* from, int64_t o, int64_t c, T* to, bool back) {
  for (int64_t i = 0; i < o; ++i)
    for (int64_t j = 0; j < c; ++j)
      for (int64_t t = 0; t < K * K; ++t) {
        const int64_t plain = (i * c + j) * K * K + t, last = (t * c + j) * o + i;
        to[back ? plain : last] = from[back ? last : plain];
      }
}

template <class T> void layouts(const Network<T>& n, Work<T>& w) {
  channels_last(n.kernels1, n.c1, 1, w.w1.get(K * K * n.c1), false);
  channels_last(n.kernels2, n.c2, n.c1, w.w2.get(K * K * n.c1 * n.c2), false);
  const int64_t area = n.flat / n.c2;
  T *permuted = w.permuted.get(n.hidden * n.flat), *transposed = w.transposed.get(n.hidden * n.flat);
  for (int64_t h = 0; h < n.hidden; ++h)
    for (int64_t i = 0; i < area; ++i)
      for (int64_t c = 0; c < n.c2; ++c)
        permuted[h * n.flat + i * n.c2 + c] = n.weights3[h * n.flat + c * area + i];
  constexpr int64_t B = 16;
  for (int64_t h = 0; h < n.hidden; h += B)
    for (int64_t i = 0; i < n.flat; i += B)
      for (int64_t j = i; j < std::min(i + B, n.flat); ++j)
        for (int64_t g = h; g < std::min(h + B, n.hidden); ++g) transposed[j * n.hidden + g] = permuted[g * n.flat + j];
}

// Everything up to the scores; leaves in `work` what the gradient needs.
template <class T> void scores(const Network<T>& n, Work<T>& w) {
  layouts(n, w);
  const int64_t plane2 = n.half2[0] * n.half2[1] * n.c2;
  T* input1 = w.input1.get(n.batch * n.image1());
  T* input2 = w.input2.get(n.batch * n.image2());
  T *which1 = w.which1.get(n.batch * n.pooled()), *which2 = w.which2.get(n.batch * plane2);
  T* conv = w.conv.get(std::max(n.out1[0] * n.out1[1] * n.c1, n.out2[0] * n.out2[1] * n.c2));
  T* features = w.features.get(n.batch * n.flat);
  std::fill(input1, input1 + n.batch * n.image1(), (T)0);
  std::fill(input2, input2 + n.batch * n.image2(), (T)0);
  for (int64_t b = 0; b < n.batch; ++b) {
    T *one = input1 + b * n.image1(), *two = input2 + b * n.image2();
    for (int64_t y = 0; y < n.rows; ++y)
      std::memcpy(one + (y + n.pad) * n.in1[1] + n.pad, n.images + (b * n.rows + y) * n.columns, n.columns * sizeof(T));
    convolve(one, n.in1[1], 1, w.w1.at, n.c1, n.bias1, conv, n.out1[0], n.out1[1]);
    pool(conv, n.out1[1], n.c1, two + (n.pad * n.in2[1] + n.pad) * n.c1, n.in2[1], which1 + b * n.pooled(), n.out1[0]);
    convolve(two, n.in2[1], n.c1, w.w2.at, n.c2, n.bias2, conv, n.out2[0], n.out2[1]);
    pool(conv, n.out2[1], n.c2, features + b * n.flat, n.half2[1], which2 + b * plane2, n.out2[0]);
  }
  T *hidden = w.hidden.get(n.batch * n.hidden), *out = w.scores.get(n.batch * n.classes);
  multiply(n.batch, n.hidden, n.flat, features, n.flat, 1, w.transposed.at, hidden);
  for (int64_t b = 0; b < n.batch; ++b) {
    T* h = hidden + b * n.hidden;
    for (int64_t i = 0; i < n.hidden; ++i) h[i] = std::max(h[i] + n.bias3[i], (T)0);
    for (int64_t o = 0; o < n.classes; ++o) {
      Vec<T> sum = {};
      for (int64_t i = 0; i < n.hidden; i += Lanes<T>::count) sum += load(n.weights4 + o * n.hidden + i) * load(h + i);
      out[b * n.classes + o] = n.bias4[o] + sum_of<T>(sum);
    }
  }
}

// The mean cross-entropy; `d` becomes its gradient by the scores if it is asked for.
template <class T> T cross_entropy(const Network<T>& n, const T* scores, T* d) {
  T total = 0;
  for (int64_t b = 0; b < n.batch; ++b) {
    const T* s = scores + b * n.classes;
    const T greatest = *std::max_element(s, s + n.classes);
    T sum = 0;
    for (int64_t o = 0; o < n.classes; ++o) sum += std::exp(s[o] - greatest);
    total += greatest + std::log(sum) - s[n.labels[b]];
    for (int64_t o = 0; d && o < n.classes; ++o)
      d[b * n.classes + o] = (std::exp(s[o] - greatest) / sum - (o == n.labels[b] ? 1 : 0)) / (T)n.batch;
  }
  return total / (T)n.batch;
}

// The dense layers backwards: leaves the gradient by the features.
template <class T> void dense_back(const Network<T>& n, Work<T>& w, T* dw3, T* db3, T* dw4, T* db4) {
  T *dhidden = w.dhidden.get(n.batch * n.hidden), *ds = w.dscores.at, *h = w.hidden.at;
  std::fill(dw4, dw4 + n.classes * n.hidden, (T)0), std::fill(db4, db4 + n.classes, (T)0);
  std::fill(db3, db3 + n.hidden, (T)0), std::fill(dhidden, dhidden + n.batch * n.hidden, (T)0);
  for (int64_t b = 0; b < n.batch; ++b) {
    T *__restrict dh = dhidden + b * n.hidden, *__restrict hb = h + b * n.hidden;
    for (int64_t o = 0; o < n.classes; ++o) {
      const T d = ds[b * n.classes + o], *__restrict row = n.weights4 + o * n.hidden;
      T* __restrict dw = dw4 + o * n.hidden;
      db4[o] += d;
      for (int64_t i = 0; i < n.hidden; ++i) dh[i] += d * row[i], dw[i] += d * hb[i];
    }
    for (int64_t i = 0; i < n.hidden; ++i) dh[i] = hb[i] > 0 ? dh[i] : 0, db3[i] += dh[i];
  }
  T* dpermuted = w.dpermuted.get(n.hidden * n.flat);
  multiply(n.hidden, n.flat, n.batch, dhidden, 1, n.hidden, w.features.at, dpermuted);
  multiply(n.batch, n.flat, n.hidden, dhidden, n.hidden, 1, w.permuted.at, w.dfeatures.get(n.batch * n.flat));
  const int64_t area = n.flat / n.c2;
  for (int64_t j = 0; j < n.hidden; ++j)
    for (int64_t c = 0; c < n.c2; ++c)
      for (int64_t i = 0; i < area; ++i) dw3[j * n.flat + c * area + i] = dpermuted[j * n.flat + i * n.c2 + c];
}

template <class T> void gradient(const Network<T>& n, Outputs out) {
  Work<T>& w = work<T>;
  scores(n, w);
  T* const* d = (T* const*)out + 1;
  *(T*)out[0] = cross_entropy(n, w.scores.at, w.dscores.get(n.batch * n.classes));
  dense_back(n, w, d[4], d[5], d[6], d[7]);
  // The kernel turned round, with input and output channels exchanged.
  T* turned = w.turned.get(K * K * n.c1 * n.c2);
  for (int64_t t = 0; t < K * K; ++t)
    for (int64_t i = 0; i < n.c1; ++i)
      for (int64_t o = 0; o < n.c2; ++o) turned[(t * n.c2 + o) * n.c1 + i] = w.w2.at[((K * K - 1 - t) * n.c1 + i) * n.c2 + o];
  const int64_t edge = K - 1 - n.pad, wide = n.out2[1] + 2 * edge, tall = n.out2[0] + 2 * edge;
  const int64_t plane1 = n.out1[0] * n.out1[1] * n.c1;
  T *dconv2 = w.dconv.get(tall * wide * n.c2 + plane1), *dconv1 = dconv2 + tall * wide * n.c2;
  T *dpooled = w.dpooled.get(n.pooled()), *dw1 = w.dw1.get(K * K * n.c1), *dw2 = w.dw2.get(K * K * n.c1 * n.c2);
  std::fill(dconv2, dconv1 + plane1, (T)0);
  std::fill(dw1, dw1 + K * K * n.c1, (T)0), std::fill(dw2, dw2 + K * K * n.c1 * n.c2, (T)0);
  std::fill(d[1], d[1] + n.c1, (T)0), std::fill(d[3], d[3] + n.c2, (T)0);
  for (int64_t b = 0; b < n.batch; ++b) {
    T* inside = dconv2 + (edge * wide + edge) * n.c2;
    const int64_t plane2 = n.half2[0] * n.half2[1] * n.c2;
    pool_back(w.dfeatures.at + b * n.flat, w.which2.at + b * plane2, n.out2[1], n.c2, inside, wide, n.out2[0]);
    kernel_gradient(w.input2.at + b * n.image2(), n.in2[1], n.c1, inside, wide, n.c2, dw2, d[3], n.out2[0], n.out2[1]);
    convolve<T>(dconv2, wide, n.c2, turned, n.c1, nullptr, dpooled, n.half1[0], n.half1[1]);
    pool_back(dpooled, w.which1.at + b * n.pooled(), n.out1[1], n.c1, dconv1, n.out1[1], n.out1[0]);
    kernel_gradient(w.input1.at + b * n.image1(), n.in1[1], (int64_t)1, dconv1, n.out1[1], n.c1, dw1, d[1], n.out1[0],
                    n.out1[1]);
  }
  channels_last(dw1, n.c1, 1, d[0], true);
  channels_last(dw2, n.c2, n.c1, d[2], true);
}

template <class T> void primal(const Network<T>& n, Outputs out) {
  scores(n, work<T>);
  *(T*)out[0] = cross_entropy<T>(n, work<T>.scores.at, nullptr);
}

}  // namespace

BASELINE void convnet_f32_primal(Sizes s, Inputs in, Outputs out) { primal(Network<float>(s, in), out); }
BASELINE void convnet_f32_gradient(Sizes s, Inputs in, Outputs out) { gradient(Network<float>(s, in), out); }
BASELINE void convnet_f64_primal(Sizes s, Inputs in, Outputs out) { primal(Network<double>(s, in), out); }
BASELINE void convnet_f64_gradient(Sizes s, Inputs in, Outputs out) { gradient(Network<double>(s, in), out); }
