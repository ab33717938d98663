// Small objectives and their gradients. Inputs and outputs of each entry stand before it.
#include "vectors.h"

namespace {

constexpr int64_t L = Lanes<double>::count;

struct Work {
  Kept<double> a, b, c, d;
} work;

// y = A x, rows of n; eight rows at once, so that x is read an eighth as often.
void times(int64_t n, const double* __restrict a, const double* __restrict x, double* __restrict y) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    V sum[8] = {};
    double rest[8] = {};
    int64_t j = 0;
    for (; j + L <= n; j += L)
      for (int64_t r = 0; r < 8; ++r) sum[r] += load(a + (i + r) * n + j) * load(x + j);
    for (; j < n; ++j)
      for (int64_t r = 0; r < 8; ++r) rest[r] += a[(i + r) * n + j] * x[j];
    for (int64_t r = 0; r < 8; ++r) y[i + r] = sum_of(sum[r]) + rest[r];
  }
  for (; i < n; ++i) {
    y[i] = 0.0;
    for (int64_t j = 0; j < n; ++j) y[i] += a[i * n + j] * x[j];
  }
}

// y = A' x: sums of rows, eight at once.
void times_transposed(int64_t n, const double* __restrict a, const double* __restrict x, double* __restrict y) {
  std::fill(y, y + n, 0.0);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    int64_t j = 0;
    for (; j + L <= n; j += L) {
      V sum = load(y + j);
      for (int64_t r = 0; r < 8; ++r) sum += x[i + r] * load(a + (i + r) * n + j);
      store(y + j, sum);
    }
    for (; j < n; ++j)
      for (int64_t r = 0; r < 8; ++r) y[j] += x[i + r] * a[(i + r) * n + j];
  }
  for (; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) y[j] += x[i] * a[i * n + j];
}

// |A (B (C x))|^2, all n by n; leaves the product in d.
double chain(Sizes s, Inputs in) {
  const int64_t n = s[0];
  double *c = work.c.get(n), *b = work.b.get(n), *a = work.a.get(n);
  times(n, (const double*)in[2], (const double*)in[3], c);
  times(n, (const double*)in[1], c, b);
  times(n, (const double*)in[0], b, a);
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * a[i];
  return sum;
}

double logsumexp(int64_t n, const double* __restrict x, double* __restrict soft) {
  // What does not fill a vector is filled with the first element, whose share is then left out.
  const int64_t full = n / L * L, left = n - full;
  double tail[L];
  for (int64_t l = 0; l < L; ++l) tail[l] = x[l < left ? full + l : 0];
  V greatest[4] = {load(tail), load(tail), load(tail), load(tail)}, sum[4] = {};
  int64_t i = 0;
  for (; i + 4 * L <= full; i += 4 * L)
    for (int64_t g = 0; g < 4; ++g) greatest[g] = greater(greatest[g], load(x + i + g * L));
  for (; i < full; i += L) greatest[0] = greater(greatest[0], load(x + i));
  const V m = greater(greater(greatest[0], greatest[1]), greater(greatest[2], greatest[3]));
  double top = m[0];
  for (int64_t l = 1; l < L; ++l) top = std::max(top, m[l]);
  const auto put = [&](int64_t at, int64_t g) {
    const V e = exp_of(load(x + at) - top);
    sum[g] += e;
    if (soft) store(soft + at, e);
  };
  for (i = 0; i + 4 * L <= full; i += 4 * L)
    for (int64_t g = 0; g < 4; ++g) put(i + g * L, g);
  for (; i < full; i += L) put(i, 0);
  double total = sum_of((sum[0] + sum[1]) + (sum[2] + sum[3]));
  const V last = exp_of(load(tail) - top);
  for (int64_t l = 0; l < left; ++l) {
    total += last[l];
    if (soft) soft[full + l] = last[l];
  }
  const double share = 1.0 / total;
  for (i = 0; soft && i < n; ++i) soft[i] *= share;
  return top + std::log(total);
}

// The sum of the squared distances to the nearest mean. Lanes are points, so points become columns; with
// `dmeans`, each point adds its difference to the mean that is nearest, the first of equals.
double kmeans(Sizes s, Inputs in, double* dmeans) {
  const int64_t n = s[0], d = s[1], k = s[2];
  const double *points = (const double*)in[0], *means = (const double*)in[1];
  double *sums = work.a.get(k * d), *counts = work.b.get(k);
  if (dmeans) std::fill(sums, sums + k * d, 0.0), std::fill(counts, counts + k, 0.0);
  constexpr int64_t G = 4, B = G * L;
  double* block = work.c.get(d * B);
  double total = 0.0;
  for (int64_t i = 0; i < n; i += B) {
    const int64_t here = std::min(B, n - i);
    for (int64_t l = 0; l < B; ++l)
      for (int64_t j = 0; j < d; ++j) block[j * B + l] = points[(i + std::min(l, here - 1)) * d + j];
    V best[G], which[G];
    for (int64_t c = 0; c < k; ++c) {
      V sum[G] = {};
      for (int64_t j = 0; j < d; ++j)
        for (int64_t g = 0; g < G; ++g) {
          const V diff = load(block + j * B + g * L) - means[c * d + j];
          sum[g] += diff * diff;
        }
      for (int64_t g = 0; g < G; ++g) {
        const auto less = sum[g] < best[g];
        which[g] = c == 0 ? V{} : less ? all((double)c) : which[g];
        best[g] = c == 0 ? sum[g] : less ? sum[g] : best[g];
      }
    }
    for (int64_t l = 0; l < here; ++l) {
      total += best[l / L][l % L];
      if (!dmeans) continue;
      const int64_t c = (int64_t)which[l / L][l % L];
      counts[c] += 1.0;
      for (int64_t j = 0; j < d; ++j) sums[c * d + j] += points[(i + l) * d + j];
    }
  }
  for (int64_t c = 0; dmeans && c < k; ++c)
    for (int64_t j = 0; j < d; ++j) dmeans[c * d + j] = 2.0 * (counts[c] * means[c * d + j] - sums[c * d + j]);
  return total;
}

// out[k][i] = sum over channels c and taps t of kernels[k][c][t] * in[c][i + taps - 1 - t] for rows of `in`
// with stride `wide` (zeros included), four kernels and two vectors at once. `turned` counts taps backwards.
void convolve(int64_t count, int64_t channels, int64_t taps, int64_t n, const double* kernels, int64_t by_kernel,
              int64_t by_channel, bool turned, const double* in, int64_t wide, double* out, int64_t out_wide) {
  constexpr int64_t M = 4, G = 3;
  for (int64_t k = 0; k < count; k += M)
    for (int64_t i = 0; i < n; i += G * L) {
      V sum[M][G] = {};
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t t = 0; t < taps; ++t) {
          const double* from = in + c * wide + i + (turned ? t : taps - 1 - t);
          V x[G];
          for (int64_t g = 0; g < G; ++g) x[g] = load(from + g * L);
          for (int64_t m = 0; m < M; ++m) {
            const double f = kernels[std::min(k + m, count - 1) * by_kernel + c * by_channel + t];
            for (int64_t g = 0; g < G; ++g) sum[m][g] += f * x[g];
          }
        }
      for (int64_t m = 0; m < std::min(M, count - k); ++m)
        for (int64_t g = 0; g < G; ++g) store(out + (k + m) * out_wide + i + g * L, sum[m][g]);
    }
}

struct Conv {
  int64_t kn, l, taps, n, left, right, wide;
  const double *kernels, *signal;
  Conv(Sizes s, Inputs in)
      : kn(s[0]), l(s[1]), taps(s[2]), n(s[3]), left(taps - 1 - taps / 2), right(taps / 2),
        wide(round_up(n, 3 * L) + 2 * taps), kernels((const double*)in[0]), signal((const double*)in[1]) {}
};

// Rows of n with `before` zeros before them and zeros after them.
double* widened(Kept<double>& to, const double* from, int64_t stride, int64_t rows, int64_t n, int64_t before, int64_t wide) {
  double* out = to.get(rows * wide);
  std::fill(out, out + rows * wide, 0.0);
  for (int64_t r = 0; r < rows; ++r) std::memcpy(out + r * wide + before, from + r * stride, n * sizeof(double));
  return out;
}

double conv1d(const Conv& p, double*& out) {
  const double* in = widened(work.a, p.signal, p.n, p.l, p.n, p.left, p.wide);
  out = work.b.get(p.kn * p.wide);
  convolve(p.kn, p.l, p.taps, p.n, p.kernels, p.l * p.taps, p.taps, false, in, p.wide, out, p.wide);
  double sum = 0.0;
  for (int64_t k = 0; k < p.kn; ++k)
    for (int64_t i = 0; i < p.n; ++i) sum += out[k * p.wide + i] * out[k * p.wide + i];
  return sum;
}

}  // namespace

// Size n. Inputs a, b, c [n][n], x[n]. Output value[1] = |a (b (c x))|^2; the gradient is by x.
BASELINE void chain_primal(Sizes s, Inputs in, Outputs out) { *(double*)out[0] = chain(s, in); }
BASELINE void chain_gradient(Sizes s, Inputs in, Outputs out) {
  *(double*)out[0] = chain(s, in);
  const int64_t n = s[0];
  double *a = work.a.at, *b = work.b.at, *c = work.c.at;
  for (int64_t i = 0; i < n; ++i) a[i] *= 2.0;
  times_transposed(n, (const double*)in[0], a, b);
  times_transposed(n, (const double*)in[1], b, c);
  times_transposed(n, (const double*)in[2], c, (double*)out[1]);
}

// Size n. Input x[n]. Output value[1]; the gradient is by x.
BASELINE void logsumexp_primal(Sizes s, Inputs in, Outputs out) {
  *(double*)out[0] = logsumexp(s[0], (const double*)in[0], nullptr);
}
BASELINE void logsumexp_gradient(Sizes s, Inputs in, Outputs out) {
  *(double*)out[0] = logsumexp(s[0], (const double*)in[0], (double*)out[1]);
}

// `objective` of programs/apps/kmeans.ks. Sizes n, d, k. Inputs points[n][d], means[k][d]. Output value[1]; the
// gradient is by means.
BASELINE void kmeans_primal(Sizes s, Inputs in, Outputs out) { *(double*)out[0] = kmeans(s, in, nullptr); }
BASELINE void kmeans_gradient(Sizes s, Inputs in, Outputs out) { *(double*)out[0] = kmeans(s, in, (double*)out[1]); }

// The sum of the squares of `conv1d` of programs/apps/conv1d.ks. Sizes kernels, channels, taps, n. Inputs
// kernels[][channels][taps], signal[channels][n]. Output value[1]; the gradient is by both.
BASELINE void conv1d_primal(Sizes s, Inputs in, Outputs out) {
  double* made;
  *(double*)out[0] = conv1d(Conv(s, in), made);
}
BASELINE void conv1d_gradient(Sizes s, Inputs in, Outputs out) {
  const Conv p(s, in);
  double *made, *dkernels = (double*)out[1], *dsignal = (double*)out[2];
  *(double*)out[0] = conv1d(p, made);
  for (int64_t k = 0; k < p.kn; ++k)
    for (int64_t i = 0; i < p.n; ++i) made[k * p.wide + i] *= 2.0;
  const double* d = widened(work.c, made, p.wide, p.kn, p.n, p.right, p.wide);
  double* back = work.d.get(p.l * p.wide);
  convolve(p.l, p.kn, p.taps, p.n, p.kernels, p.taps, p.l * p.taps, true, d, p.wide, back, p.wide);
  for (int64_t c = 0; c < p.l; ++c) std::memcpy(dsignal + c * p.n, back + c * p.wide, p.n * sizeof(double));
  // By a tap: the inner product of a row of d with a shifted row of the input, a few kernels at once. Past n
  // the rows of d are zero.
  constexpr int64_t M = 8;
  for (int64_t k = 0; k < p.kn; k += M)
    for (int64_t c = 0; c < p.l; ++c)
      for (int64_t t = 0; t < p.taps; ++t) {
        V sum[M] = {};
        const double* in_row = work.a.at + c * p.wide + p.taps - 1 - t;
        for (int64_t i = 0; i < p.n; i += L) {
          const V x = load(in_row + i);
          for (int64_t m = 0; m < M; ++m) sum[m] += x * load(d + std::min(k + m, p.kn - 1) * p.wide + p.right + i);
        }
        for (int64_t m = 0; m < std::min(M, p.kn - k); ++m) dkernels[((k + m) * p.l + c) * p.taps + t] = sum_of(sum[m]);
      }
}
