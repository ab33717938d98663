// The GMM objective of programs/apps/gmm.ks and its gradient by alphas, means, qs and ls.
//
// Sizes n, d, k. Inputs x[n][d], alphas[k], means[k][d], qs[k][d], ls[k][d(d-1)/2] (packed by columns),
// gamma[1], m[1] (integer). Outputs value[1], then the gradient in the order of the parameters.
//
// `gmm_batched_*` takes all points at once. Lanes are points. First all |Q_c (x - mu_c)|^2: a triangular
// matrix times the matrix of points. The gradient needs no product of that kind per point: with the
// weights w of the softmax and s, m, M the moments of order 0, 1, 2 of the points under w, it is
// dQ = -Q S and dmu = Q'Q (m - s mu), where S = M - m mu' - mu m' + s mu mu'. The moments of all parts
// are one product of the weights (k by n) with the pairs of coordinates (n by (d+1)(d+2)/2).
// `gmm_pointwise_*` goes from point to point, as the formula reads.
#include "vectors.h"

namespace {

struct Problem {
  int64_t n, d, k, t, m;
  const double *x, *alphas, *means, *qs, *ls;
  double gamma;
  Problem(Sizes s, Inputs in)
      : n(s[0]), d(s[1]), k(s[2]), t(d * (d - 1) / 2), m(*(const int64_t*)in[6]), x((const double*)in[0]),
        alphas((const double*)in[1]), means((const double*)in[2]), qs((const double*)in[3]),
        ls((const double*)in[4]), gamma(*(const double*)in[5]) {}
};

double log_gamma_distrib(double a, int64_t p) {
  double sum = 0.0;
  for (int64_t j = 0; j < p; ++j) sum += std::lgamma(a - 0.5 * (double)j);
  return 0.25 * (double)(p * (p - 1)) * std::log(M_PI) + sum;
}

// log of the sum of e^x; `soft` becomes the softmax if it is asked for.
double logsumexp(const double* x, int64_t n, double* soft) {
  double greatest = x[0], sum = 0.0;
  for (int64_t i = 1; i < n; ++i) greatest = std::max(greatest, x[i]);
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - greatest);
  if (soft)
    for (int64_t i = 0; i < n; ++i) soft[i] = std::exp(x[i] - greatest) / sum;
  return greatest + std::log(sum);
}

// All of the objective but the sum over points.
double rest(const Problem& p) {
  double squares = 0.0, sums = 0.0;
  for (int64_t j = 0; j < p.k * p.d; ++j) squares += std::exp(2.0 * p.qs[j]), sums += p.qs[j];
  for (int64_t j = 0; j < p.k * p.t; ++j) squares += p.ls[j] * p.ls[j];
  const int64_t free = p.d + p.m + 1;
  const double c = (double)(free * p.d) * (std::log(p.gamma) - 0.5 * std::log(2.0)) -
                   log_gamma_distrib(0.5 * (double)free, p.d);
  return 0.5 * p.gamma * p.gamma * squares - (double)p.m * sums - (double)p.k * c -
         0.5 * (double)(p.n * p.d) * std::log(2.0 * M_PI) - (double)p.n * logsumexp(p.alphas, p.k, nullptr);
}

constexpr int64_t L = Lanes<double>::count, ACROSS = 6, DOWN = 4, PAIRS = 5, PARTS = 5;

struct Work {
  Kept<double> points, q, weights, moments, pairs, s;
} work;

// Points as columns, without their mean, so that the moments do not cancel; rows of `wide` points, the
// last row is 1.
void columns(const Problem& p, int64_t wide, double* points, double* centre) {
  for (int64_t j = 0; j < p.d; ++j) centre[j] = 0.0;
  for (int64_t i = 0; i < p.n; ++i)
    for (int64_t j = 0; j < p.d; ++j) centre[j] += p.x[i * p.d + j];
  for (int64_t j = 0; j < p.d; ++j) centre[j] /= (double)p.n;
  for (int64_t i = 0; i < p.n; i += L)
    for (int64_t j = 0; j < p.d; ++j)
      for (int64_t l = 0; l < std::min(L, p.n - i); ++l)
        points[j * wide + i + l] = p.x[(i + l) * p.d + j] - centre[j];
  for (int64_t j = 0; j <= p.d; ++j)
    for (int64_t i = p.n; i < wide; ++i) points[j * wide + i] = 0.0;
  for (int64_t i = 0; i < wide; ++i) points[p.d * wide + i] = 1.0;
}

// Q of one part, rows of `tall`, zero above the diagonal and below the last row.
void triangle(const Problem& p, int64_t c, int64_t tall, double* q) {
  std::fill(q, q + tall * tall, 0.0);
  const double* l = p.ls + c * p.t;
  for (int64_t j = 0; j < p.d; ++j) {
    q[j * tall + j] = std::exp(p.qs[c * p.d + j]);
    for (int64_t r = j + 1; r < p.d; ++r) q[r * tall + j] = *l++;
  }
}

// out[i] = base - 0.5 |Q x_i - b|^2 for all points.
void norms(int64_t d, int64_t wide, int64_t tall, const double* __restrict q, const double* __restrict b,
           const double* __restrict points, double base, double* __restrict out) {
  for (int64_t i = 0; i < wide; i += ACROSS * L) {
    V norm[ACROSS] = {};
    for (int64_t r = 0; r < d; r += DOWN) {
      V y[DOWN][ACROSS];
      for (int64_t g = 0; g < DOWN; ++g)
        for (int64_t a = 0; a < ACROSS; ++a) y[g][a] = all(-b[r + g]);
      for (int64_t j = 0; j < std::min(d, r + DOWN); ++j) {
        V x[ACROSS];
        for (int64_t a = 0; a < ACROSS; ++a) x[a] = load(points + j * wide + i + a * L);
        for (int64_t g = 0; g < DOWN; ++g)
          for (int64_t a = 0; a < ACROSS; ++a) y[g][a] += q[(r + g) * tall + j] * x[a];
      }
      for (int64_t g = 0; g < DOWN; ++g)
        for (int64_t a = 0; a < ACROSS; ++a) norm[a] += y[g][a] * y[g][a];
    }
    for (int64_t a = 0; a < ACROSS; ++a) store(out + i + a * L, base - 0.5 * norm[a]);
  }
}

// The sum over points of the log-sum-exp over parts; `rows` [k][wide] becomes the softmax if asked.
double mix(int64_t n, int64_t k, int64_t wide, double* __restrict rows, bool soft) {
  V total = {}, product = all(1.0);
  double logs = 0.0;
  for (int64_t i = 0; i < wide; i += L) {
    V greatest = load(rows + i), sum = {};
    for (int64_t c = 1; c < k; ++c) greatest = greater(greatest, load(rows + c * wide + i));
    for (int64_t c = 0; c < k; ++c) {
      const V e = exp_of(load(rows + c * wide + i) - greatest);
      sum += e;
      if (soft) store(rows + c * wide + i, e);
    }
    V share = 1.0 / sum;
    for (int64_t l = std::max<int64_t>(0, n - i); l < L; ++l) greatest[l] = 0.0, sum[l] = 1.0, share[l] = 0.0;
    if (soft)
      for (int64_t c = 0; c < k; ++c) store(rows + c * wide + i, load(rows + c * wide + i) * share);
    total += greatest;
    product *= sum;
    // A sum is between 1 and k: a few of them multiply before one logarithm is taken of all.
    if (i / L % 16 == 15 || i + L == wide)
      for (int64_t l = 0; l < L; ++l) logs += std::log(product[l]), product[l] = 1.0;
  }
  return sum_of(total) + logs;
}

struct Shape {
  int64_t wide, tall;
  explicit Shape(const Problem& p) : wide(round_up(p.n, ACROSS * L)), tall(round_up(p.d, L)) {}
};

// Leaves points, all Q, and in `weights` the rows that `mix` made; gives the objective.
double primal(const Problem& p, const Shape& s, double* centre, bool soft) {
  double* points = work.points.get((p.d + 1) * s.wide);
  double* q = work.q.get(p.k * s.tall * s.tall);
  double* rows = work.weights.get(round_up(p.k, PARTS) * s.wide);
  columns(p, s.wide, points, centre);
  double* b = work.s.get(s.tall * (s.tall + 2));
  for (int64_t c = 0; c < p.k; ++c) {
    double *qc = q + c * s.tall * s.tall, base = p.alphas[c];
    triangle(p, c, s.tall, qc);
    for (int64_t r = 0; r < s.tall; ++r) {
      b[r] = 0.0;
      for (int64_t j = 0; j < p.d; ++j) b[r] += qc[r * s.tall + j] * (p.means[c * p.d + j] - centre[j]);
    }
    for (int64_t j = 0; j < p.d; ++j) base += p.qs[c * p.d + j];
    norms(p.d, s.wide, s.tall, qc, b, points, base, rows + c * s.wide);
  }
  return mix(p.n, p.k, s.wide, rows, soft) + rest(p);
}

// out[c][pair] = sum over points of weight c times the coordinates of the pair, for the pairs (a, b) with
// b from `from` to `to` (at most PAIRS of them).
void moments(int64_t k, int64_t wide, const double* __restrict points, const double* __restrict weights, int64_t a,
             int64_t from, int64_t to, double* __restrict pairs, double* __restrict out, int64_t stride) {
  for (int64_t i = 0; i < wide; i += L)
    for (int64_t g = 0; g < PAIRS; ++g)
      store(pairs + i * PAIRS + g * L,
            load(points + a * wide + i) * load(points + std::min(from + g, to - 1) * wide + i));
  for (int64_t c = 0; c < k; c += PARTS) {
    V sum[PARTS][PAIRS] = {};
    for (int64_t i = 0; i < wide; i += L) {
      V pair[PAIRS];
      for (int64_t g = 0; g < PAIRS; ++g) pair[g] = load(pairs + i * PAIRS + g * L);
      for (int64_t h = 0; h < PARTS; ++h) {
        const V w = load(weights + (c + h) * wide + i);
        for (int64_t g = 0; g < PAIRS; ++g) sum[h][g] += w * pair[g];
      }
    }
    for (int64_t h = 0; h < std::min(PARTS, k - c); ++h)
      for (int64_t g = 0; g < to - from; ++g) out[(c + h) * stride + from + g] = sum_of(sum[h][g]);
  }
}

}  // namespace

BASELINE void gmm_batched_primal(Sizes sizes, Inputs in, Outputs out) {
  const Problem p(sizes, in);
  double centre[p.d];
  *(double*)out[0] = primal(p, Shape(p), centre, false);
}

BASELINE void gmm_batched_gradient(Sizes sizes, Inputs in, Outputs out) {
  const Problem p(sizes, in);
  const Shape sh(p);
  const int64_t d = p.d, k = p.k, tall = sh.tall, wide = sh.wide;
  double centre[d], mu[d], first[tall], v[tall], soft[k];
  *(double*)out[0] = primal(p, sh, centre, true);
  double *dalphas = (double*)out[1], *dmeans = (double*)out[2], *dqs = (double*)out[3], *dls = (double*)out[4];
  const double *points = work.points.at, *weights = work.weights.at;
  std::fill(work.weights.at + k * wide, work.weights.at + round_up(k, PARTS) * wide, 0.0);
  // Row a of the moments of a part starts at a(a+1)/2.
  const int64_t stride = (d + 1) * (d + 2) / 2;
  double *all_moments = work.moments.get(k * stride), *pairs = work.pairs.get(PAIRS * wide);
  for (int64_t a = 0; a <= d; ++a)
    for (int64_t b = 0; b <= a; b += PAIRS)
      moments(k, wide, points, weights, a, b, std::min(b + PAIRS, a + 1), pairs, all_moments + a * (a + 1) / 2, stride);
  logsumexp(p.alphas, k, soft);
  double* s = work.s.get(tall * (tall + 2));
  for (int64_t c = 0; c < k; ++c) {
    const double *mom = all_moments + c * stride, *one = mom + d * (d + 1) / 2, count = one[d];
    const double* q = work.q.at + c * tall * tall;
    for (int64_t j = 0; j < d; ++j) mu[j] = p.means[c * d + j] - centre[j], first[j] = one[j] - count * mu[j];
    std::fill(s, s + tall * tall, 0.0);
    for (int64_t a = 0; a < d; ++a)
      for (int64_t b = 0; b <= a; ++b)
        s[a * tall + b] = s[b * tall + a] = mom[a * (a + 1) / 2 + b] - one[a] * mu[b] - mu[a] * first[b];
    dalphas[c] = count - (double)p.n * soft[c];
    std::fill(v, v + tall, 0.0);
    for (int64_t r = 0; r < d; ++r) {
      double y = 0.0;
      for (int64_t j = 0; j <= r; ++j) y += q[r * tall + j] * first[j];
      for (int64_t j = 0; j <= r; ++j) v[j] += q[r * tall + j] * y;
    }
    for (int64_t j = 0; j < d; ++j) dmeans[c * d + j] = v[j];
    const double g2 = p.gamma * p.gamma;
    for (int64_t r = 0; r < d; ++r) {
      double row[tall] __attribute__((aligned(64)));
      std::fill(row, row + tall, 0.0);
      for (int64_t l = 0; l <= r; ++l) {
        const double f = q[r * tall + l];
        for (int64_t j = 0; j < round_up(r + 1, L); ++j) row[j] -= f * s[l * tall + j];
      }
      const double e = q[r * tall + r];
      dqs[c * d + r] = count + row[r] * e + g2 * e * e - (double)p.m;
      double* column = dls + c * p.t;
      for (int64_t j = 0, at = r - 1; j < r; at += d - 2 - j, ++j)
        column[at] = row[j] + g2 * p.ls[c * p.t + at];
    }
  }
}

namespace {

// y = Q (x - mu) by columns of Q; the packed columns below the diagonal lie one after another.
inline void product(int64_t d, const double* __restrict e, const double* __restrict l, const double* __restrict xc,
                    double* __restrict y) {
  for (int64_t r = 0; r < d; ++r) y[r] = e[r] * xc[r];
  for (int64_t j = 0; j < d; ++j) {
    for (int64_t r = j + 1; r < d; ++r) y[r] += l[r - j - 1] * xc[j];
    l += d - 1 - j;
  }
}

double pointwise(const Problem& p, Outputs out) {
  const int64_t d = p.d, k = p.k;
  double row[k], soft[k], xc[d], sums[k];
  double *e = work.q.get(k * d), *ys = work.s.get(k * d);
  for (int64_t c = 0; c < k; ++c) {
    sums[c] = p.alphas[c];
    for (int64_t j = 0; j < d; ++j) e[c * d + j] = std::exp(p.qs[c * d + j]), sums[c] += p.qs[c * d + j];
  }
  double *da = nullptr, *dm = nullptr, *dq = nullptr, *dl = nullptr;
  if (out) {
    da = (double*)out[1], dm = (double*)out[2], dq = (double*)out[3], dl = (double*)out[4];
    const double g2 = p.gamma * p.gamma;
    logsumexp(p.alphas, k, soft);
    for (int64_t c = 0; c < k; ++c) da[c] = -(double)p.n * soft[c];
    for (int64_t j = 0; j < k * d; ++j) dm[j] = 0.0, dq[j] = g2 * e[j] * e[j] - (double)p.m;
    for (int64_t j = 0; j < k * p.t; ++j) dl[j] = g2 * p.ls[j];
  }
  double total = 0.0;
  for (int64_t i = 0; i < p.n; ++i) {
    for (int64_t c = 0; c < k; ++c) {
      double *y = ys + c * d, norm = 0.0;
      for (int64_t j = 0; j < d; ++j) xc[j] = p.x[i * d + j] - p.means[c * d + j];
      product(d, e + c * d, p.ls + c * p.t, xc, y);
      for (int64_t j = 0; j < d; ++j) norm += y[j] * y[j];
      row[c] = sums[c] - 0.5 * norm;
    }
    total += logsumexp(row, k, out ? soft : nullptr);
    for (int64_t c = 0; out && c < k; ++c) {
      const double w = soft[c], *l = p.ls + c * p.t, *__restrict y = ys + c * d;
      double *__restrict g = dl + c * p.t, *__restrict m = dm + c * d, *__restrict q = dq + c * d;
      da[c] += w;
      for (int64_t j = 0; j < d; ++j) {
        const double x = p.x[i * d + j] - p.means[c * d + j];
        double back = e[c * d + j] * y[j];
        for (int64_t r = j + 1; r < d; ++r) back += l[r - j - 1] * y[r], g[r - j - 1] -= w * x * y[r];
        m[j] += w * back;
        q[j] += w * (1.0 - e[c * d + j] * x * y[j]);
        l += d - 1 - j, g += d - 1 - j;
      }
    }
  }
  return total + rest(p);
}

}  // namespace

BASELINE void gmm_pointwise_primal(Sizes sizes, Inputs in, Outputs out) {
  *(double*)out[0] = pointwise(Problem(sizes, in), nullptr);
}

BASELINE void gmm_pointwise_gradient(Sizes sizes, Inputs in, Outputs out) {
  *(double*)out[0] = pointwise(Problem(sizes, in), out);
}
