// Elementary functions of eight numbers of 64 bits, by hand for processors with AVX-512: within 2.5 units in the last
// place, right at infinities, and for angles of any size by way of the C library. Constants are those of the language.
#include <immintrin.h>

namespace hand {

typedef __m512d V;
static inline V all(double x) { return _mm512_set1_pd(x); }
static inline V fma(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }

// The sum of c[k] x^k, even and odd powers apart.
template <int N> static inline V polynomial(V x, const double (&c)[N]) {
  const V square = _mm512_mul_pd(x, x);
  V even = all(c[N - 1 - (N - 1) % 2]), odd = all(c[N - 1 - N % 2]);
  for (int k = N - 3 - (N - 1) % 2; k >= 0; k -= 2) even = fma(even, square, all(c[k]));
  for (int k = N - 3 - N % 2; k >= 0; k -= 2) odd = fma(odd, square, all(c[k]));
  return fma(odd, x, even);
}

static const double exp_c[] = {0.5000000000000011, 0.16666666666666438, 0.04166666666652577, 0.008333333333473707,
                               0.0013888888944875624, 0.0001984126956071454, 2.480149172149772e-05,
                               2.7557529946966244e-06, 2.7630768659729967e-07, 2.50204552756718e-08};

static inline V reduce(V x, V& k) {
  k = _mm512_roundscale_pd(_mm512_mul_pd(x, all(1.4426950408889634)), 8);
  return fma(k, all(-2.3190468138462996e-17), fma(k, all(-0.6931471805599453), x));
}

static inline V exp(V x) {
  V k;
  const V r = reduce(_mm512_min_pd(all(710.0), _mm512_max_pd(all(-750.0), x)), k), one = all(1.0);
  return _mm512_scalef_pd(fma(r, fma(r, polynomial(r, exp_c), one), one), k);
}

static inline V tanh(V x) {
  V k;
  const V size = _mm512_abs_pd(x), r = reduce(_mm512_min_pd(all(44.0), _mm512_add_pd(size, size)), k);
  const V near = fma(_mm512_mul_pd(r, r), polynomial(r, exp_c), r), power = _mm512_scalef_pd(all(1.0), k);
  const V e = fma(power, near, _mm512_sub_pd(power, all(1.0))), out = _mm512_div_pd(e, _mm512_add_pd(e, all(2.0)));
  return _mm512_or_pd(out, _mm512_and_pd(x, all(-0.0)));
}

static const double log_c[] = {0.666666666666705, 0.39999999996997654, 0.2857142928057714, 0.22222146082525113,
                               0.1818609538639103, 0.15254683539223773, 0.15337473674711163};

static inline V log(V x) {
  const V m = _mm512_getmant_pd(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan), one = all(1.0);
  const V e = _mm512_getexp_pd(x), k = _mm512_mask_add_pd(e, _mm512_cmp_pd_mask(m, one, _CMP_LT_OQ), e, one);
  const V f = _mm512_sub_pd(m, one), s = _mm512_div_pd(f, _mm512_add_pd(f, all(2.0))), z = _mm512_mul_pd(s, s);
  const V half = _mm512_mul_pd(_mm512_mul_pd(f, f), all(0.5));
  const V low = fma(k, all(5.497923018708371e-14), _mm512_mul_pd(s, fma(polynomial(z, log_c), z, half)));
  return fma(k, all(0.6931471805598903), _mm512_sub_pd(f, _mm512_sub_pd(half, low)));
}

static const double sin_c[] = {-0.16666666666666666, 0.008333333333333207, -0.0001984126984121248,
                               2.755731921156915e-06, -2.5052106904334993e-08, 1.6058940993867543e-10,
                               -7.643019024289961e-13, 2.721414354920392e-15};

static inline V sin(V x) {
  const V round = all(6755399441055744.0), t = fma(x, all(0.3183098861837907), round), n = _mm512_sub_pd(t, round);
  V high = fma(n, all(-3.141592653589793), x), r = fma(n, all(-1.224646799335416e-16), high);
  V low = fma(n, all(-1.224646799335416e-16), _mm512_sub_pd(high, r));
  low = fma(n, all(1.8806274411915714e-26), low);
  const V s = _mm512_mul_pd(r, r), slope = fma(s, all(-0.405), all(1.0));
  V out = _mm512_add_pd(r, fma(_mm512_mul_pd(r, s), polynomial(s, sin_c), _mm512_mul_pd(low, slope)));
  out = (V)_mm512_xor_epi64((__m512i)out, _mm512_slli_epi64((__m512i)t, 63));
  if (__builtin_expect(_mm512_cmp_pd_mask(_mm512_abs_pd(x), all(1e6), _CMP_GT_OQ), 0))
    for (int k = 0; k < 8; ++k)
      if (!(__builtin_fabs(x[k]) <= 1e6)) out[k] = ::sin(x[k]);
  return out;
}

static const double asin_c[] = {0.16666666666665414, 0.07500000000336159, 0.04464285682892373, 0.03038195911497947,
                                0.022371758532839025, 0.017359698064413454, 0.013885296406053226, 0.012168844078873283,
                                0.006529429954429962, 0.019524638608686033, -0.016219093325071755, 0.03190907952836065};

static inline V asin(V x) {
  const V size = _mm512_abs_pd(x), half = all(0.5);
  const __mmask8 large = _mm512_cmp_pd_mask(half, size, _CMP_LT_OQ);
  const V square = _mm512_mask_mov_pd(_mm512_mul_pd(size, size), large, fma(_mm512_sub_pd(all(0.0), size), half, half));
  const V s = _mm512_mask_sqrt_pd(size, large, square);
  const V p = fma(polynomial(square, asin_c), _mm512_mul_pd(s, square), s);
  const V out = _mm512_mask_mov_pd(p, large, fma(p, all(-2.0), all(1.5707963267948966)));
  return _mm512_or_pd(out, _mm512_and_pd(x, all(-0.0)));
}

}  // namespace hand
