// What the hand-written baselines share: vectors as wide as the machine's, memory that is kept, and the
// exponential of a vector.
//
// Every entry has the signature `Entry`: sizes, inputs and outputs as pointers to plain arrays, in
// the order that its file states. `T` is the float type of a baseline. Blocks of registers are chosen for
// AVX-512: with narrower vectors all is as right, but not as fast as it could be.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

// Wider vectors than the machine has go through memory, twenty times as slow.
#if defined(__AVX512F__)
constexpr int64_t VECTOR = 64;
#else
constexpr int64_t VECTOR = 32;
#endif

#define BASELINE extern "C" __attribute__((visibility("default")))
using Sizes = const int64_t*;
using Inputs = const void* const*;
using Outputs = void* const*;

template <class T> struct Lanes;
template <> struct Lanes<double> {
  typedef double vec __attribute__((vector_size(VECTOR)));
  typedef double loose __attribute__((vector_size(VECTOR), aligned(8), may_alias));
  static constexpr int64_t count = VECTOR / 8;
};
template <> struct Lanes<float> {
  typedef float vec __attribute__((vector_size(VECTOR)));
  typedef float loose __attribute__((vector_size(VECTOR), aligned(4), may_alias));
  static constexpr int64_t count = VECTOR / 4;
};
template <class T> using Vec = typename Lanes<T>::vec;
using V = Vec<double>;

template <class T> static inline Vec<T> load(const T* p) { return *(const typename Lanes<T>::loose*)p; }
template <class T> static inline void store(T* p, Vec<T> v) { *(typename Lanes<T>::loose*)p = v; }
template <class T> static inline Vec<T> all(T x) { return Vec<T>{} + x; }

template <class T> static inline T sum_of(Vec<T> v) {
  T out = 0;
  for (int64_t i = 0; i < Lanes<T>::count; ++i) out += v[i];
  return out;
}

static inline double sum_of(V v) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_pd((__m512d)v);
#else
  return sum_of<double>(v);
#endif
}

static inline V greater(V a, V b) {
#if defined(__AVX512F__)
  return (V)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif defined(__AVX2__) && defined(__FMA__)
  return (V)_mm256_max_pd((__m256d)a, (__m256d)b);
#else
  return a > b ? a : b;
#endif
}

#if defined(__AVX2__) && defined(__FMA__)
// e^r for |r| <= log 2 / 2, by its Taylor polynomial.
static inline V exp_of_small(V s) {
  const V s2 = s * s, s4 = s2 * s2;
  // Pairs of terms side by side: a chain of thirteen would wait for each product.
  const V a = (1.0 + s) + s2 * (1.0 / 2 + s * (1.0 / 6));
  const V b = (1.0 / 24 + s * (1.0 / 120)) + s2 * (1.0 / 720 + s * (1.0 / 5040));
  const V c = (1.0 / 40320 + s * (1.0 / 362880)) + s2 * (1.0 / 3628800 + s * (1.0 / 39916800));
  const V d = 1.0 / 479001600 + s * (1.0 / 6227020800);
  return a + s4 * (b + s4 * (c + s4 * d));
}
#endif

// e^x within two units in the last place: x = k log 2 + r. With AVX2 and FMA alone x is kept where e^x is a normal number;
// with neither, the library's function is called for each lane.
static inline V exp_of(V x) {
#if defined(__AVX512F__)
  const __m512d k = _mm512_roundscale_pd((__m512d)(x * 1.4426950408889634), 8);
  __m512d r = _mm512_fnmadd_pd(k, _mm512_set1_pd(6.93147180369123816490e-01), (__m512d)x);
  r = _mm512_fnmadd_pd(k, _mm512_set1_pd(1.90821492927058770002e-10), r);
  return (V)_mm512_scalef_pd((__m512d)exp_of_small((V)r), k);
#elif defined(__AVX2__) && defined(__FMA__)
  const __m256d in = _mm256_min_pd(_mm256_max_pd((__m256d)x, _mm256_set1_pd(-708.0)), _mm256_set1_pd(709.0));
  const __m256d k = _mm256_round_pd(in * 1.4426950408889634, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256d r = _mm256_fnmadd_pd(k, _mm256_set1_pd(6.93147180369123816490e-01), in);
  r = _mm256_fnmadd_pd(k, _mm256_set1_pd(1.90821492927058770002e-10), r);
  const __m128i exponent = _mm_add_epi32(_mm256_cvtpd_epi32(k), _mm_set1_epi32(1023));
  return exp_of_small((V)r) * (V)_mm256_slli_epi64(_mm256_cvtepi32_epi64(exponent), 52);
#else
  for (int64_t i = 0; i < Lanes<double>::count; ++i) x[i] = std::exp(x[i]);
  return x;
#endif
}

static inline V sigmoid_of(V x) { return 1.0 / (1.0 + exp_of(-x)); }
static inline V tanh_of(V x) { return 1.0 - 2.0 / (1.0 + exp_of(2.0 * x)); }

static inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// The bytes of all such memory since a start, of which there may be several.
static int64_t kept_bytes = 0, kept_start = 0;

// Memory that stays from call to call, as in a library with a workspace: it grows, and is aligned.
template <class T> struct Kept {
  T* at = nullptr;
  int64_t room = 0, start = 0;
  T* get(int64_t n) {
    if (start != kept_start) room = 0, start = kept_start;
    if (n > room) {
      std::free(at);
      const auto bytes = [](int64_t count) { return round_up(count * (int64_t)sizeof(T), 64); };
      kept_bytes += bytes(n) - bytes(room);
      room = n;
      at = (T*)std::aligned_alloc(64, (size_t)bytes(n));
      if (!at) std::abort();
    }
    return at;
  }
};

// The bytes that calls have taken since the last start, which is here.
extern "C" __attribute__((visibility("default"))) int64_t memory_taken() {
  const int64_t taken = kept_bytes;
  kept_bytes = 0, ++kept_start;
  return taken;
}
