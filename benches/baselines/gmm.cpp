// The GMM objective of programs/apps/gmm.ks as a person would write it: plain loops, no temporaries
// but one row, invariants out of the loops. Prints the least and the median time, the value, and the
// most heap memory at once.
//
// benches/kernels.rs compiles it with the flags of src/run/toolchain.rs without `-shared -fPIC`.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <vector>

static int64_t live = 0, peak = 0;

void* operator new(size_t n) {
  void* p = std::malloc(n);
  if (!p) throw std::bad_alloc();
  live += malloc_usable_size(p);
  peak = std::max(peak, live);
  return p;
}

void operator delete(void* p) noexcept {
  live -= malloc_usable_size(p);
  std::free(p);
}

void operator delete(void* p, size_t) noexcept { operator delete(p); }

static double ranhash(int64_t x) {
  uint64_t v = (uint64_t)x * 3935559000370003845u + 2691343689449507681u;
  v ^= v >> 21;
  v ^= v << 37;
  v ^= v >> 4;
  v *= 4768777513237032717u;
  v ^= v << 20;
  v ^= v >> 41;
  v ^= v << 5;
  return 5.421010862427522e-20 * (double)v;
}

static std::vector<double> random_rows(int64_t seed, int64_t n) {
  std::vector<double> out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = ranhash(seed + i);
  return out;
}

static double logsumexp(const double* x, int64_t n) {
  double greatest = -INFINITY, sum = 0.0;
  for (int64_t i = 0; i < n; ++i) greatest = greatest > x[i] ? greatest : x[i];
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - greatest);
  return greatest + std::log(sum);
}

static double log_gamma_distrib(double a, int64_t p) {
  double sum = 0.0;
  for (int64_t j = 0; j < p; ++j) sum += std::lgamma(a - 0.5 * (double)j);
  return 0.25 * (double)(p * (p - 1)) * std::log(M_PI) + sum;
}

static __attribute__((noinline)) double gmm(const double* x, const double* alphas, const double* means,
                                            const double* qs, const double* ls, int64_t n, int64_t d, int64_t k,
                                            double gamma, int64_t m) {
  const int64_t t = d * (d - 1) / 2;
  std::vector<double> diagonal(k * d), sums(k), centered(d), row(k);
  for (int64_t c = 0; c < k; ++c) {
    double sum = 0.0;
    for (int64_t j = 0; j < d; ++j) {
      diagonal[c * d + j] = std::exp(qs[c * d + j]);
      sum += qs[c * d + j];
    }
    sums[c] = sum;
  }
  double slse = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < k; ++c) {
      const double *l = ls + c * t, *q = &diagonal[c * d];
      for (int64_t j = 0; j < d; ++j) centered[j] = x[i * d + j] - means[c * d + j];
      double norm = 0.0;
      for (int64_t r = 0; r < d; ++r) {
        double v = 0.0;
        // Column j of the packed triangle starts where the columns before it end.
        for (int64_t j = 0, at = r - 1; j < r; at += d - 2 - j, ++j) v += l[at] * centered[j];
        v += q[r] * centered[r];
        norm += v * v;
      }
      row[c] = alphas[c] + sums[c] - 0.5 * norm;
    }
    slse += logsumexp(row.data(), k);
  }
  double prior = 0.0;
  for (int64_t c = 0; c < k; ++c) {
    double squares = 0.0, lower = 0.0;
    for (int64_t j = 0; j < d; ++j) squares += diagonal[c * d + j] * diagonal[c * d + j];
    for (int64_t j = 0; j < t; ++j) lower += ls[c * t + j] * ls[c * t + j];
    prior += 0.5 * gamma * gamma * (squares + lower) - (double)m * sums[c];
  }
  const int64_t free = d + m + 1;
  prior -= (double)k * ((double)(free * d) * (std::log(gamma) - 0.5 * std::log(2.0)) -
                        log_gamma_distrib(0.5 * (double)free, d));
  return -0.5 * (double)(n * d) * std::log(2.0 * M_PI) + slse - (double)n * logsumexp(alphas, k) + prior;
}

int main(int argc, char** argv) {
  const int64_t n = 1000, d = 10, k = 25;
  const int repeats = argc > 1 ? std::max(1, std::atoi(argv[1])) : 100;
  std::vector<double> ms;
  double value = 0.0;
  for (int r = 0; r < repeats; ++r) {
    // As in the program's `main`, making the inputs is part of the work.
    const auto from = std::chrono::steady_clock::now();
    const auto x = random_rows(0, n * d), alphas = random_rows(100000, k), means = random_rows(200000, k * d),
               qs = random_rows(300000, k * d), ls = random_rows(400000, k * (d * (d - 1) / 2));
    value = gmm(x.data(), alphas.data(), means.data(), qs.data(), ls.data(), n, d, k, 1.0, 0);
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count());
  }
  std::sort(ms.begin(), ms.end());
  std::printf("min %.4f ms, median %.4f ms, value %.17g, peak %lld bytes\n", ms[0], ms[ms.size() / 2], value,
              (long long)peak);
}
