// The exponential, the logarithm and the hyperbolic tangent of one number or of a vector, bit for bit those of
// `ir/elementary.rs`, where all is explained. F is double or Floats.
namespace ks {

constexpr double ln2_high = 0.6931471805598903, ln2_low = 5.497923018708371e-14, to_whole = 6755399441055744.0;
constexpr int64_t to_whole_bits = 0x4338000000000000, half_root = 0x3fe6a09e00000000, one_bits = 0x3ff0000000000000;

KS_INLINE int64_t bits(double x) { return __builtin_bit_cast(int64_t, x); }
KS_INLINE double floating(int64_t n) { return __builtin_bit_cast(double, n); }
KS_INLINE Ints bits(Floats x) { return (Ints)x; }
KS_INLINE Floats floating(Ints n) { return (Floats)n; }

template <class F, class T> KS_INLINE auto spread(T x) {
  if constexpr (std::is_same_v<F, double>) return x;
  else return all(x);
}

template <class I> KS_INLINE auto power(I n) { return floating((n + 1023) << 52); }

template <class F> KS_INLINE F reduce(F x, F& k) {
  k = (x * 1.4426950408889634 + to_whole) - to_whole;
  const F high = x - k * ln2_high, low = k * ln2_low, r = high - low;
  const F rest = (high - r) - low;
  const F r2 = r * r, r4 = r2 * r2;
  const F first = (0.5 + 0.1666666666666667 * r) + r2 * (0.04166666666666667 + 0.008333333333326084 * r);
  const F second = (0.0013888888888883711 + 0.0001984126987500228 * r) +
                   r2 * (2.480158732567746e-05 + 2.755725517000089e-06 * r);
  const F third = (2.755727347871858e-07 + 2.5105312729622103e-08 * r) + r2 * 2.09147553258932e-09;
  return r + (r2 * (first + r4 * (second + r4 * third)) + rest);
}

template <class F> KS_INLINE F exp_of(F x) {
  F near = x < -750.0 ? spread<F>(-750.0) : x, k;
  near = near > 710.0 ? spread<F>(710.0) : near;
  const F rest = reduce(near, k);
  const auto half = bits(k * 0.5 + to_whole) - to_whole_bits, whole = bits(k + to_whole) - to_whole_bits;
  const F out = ((1.0 + rest) * power(half)) * power(whole - half);
  return x == x ? out : x;
}

template <class F> KS_INLINE F log_of(F x) {
  const auto tiny = x < 2.2250738585072014e-308;
  const F scaled = tiny ? x * 18014398509481984.0 : x;
  const auto n = bits(scaled) + (one_bits - half_root);
  const auto shift = tiny ? spread<F>((int64_t)(1023 + 54)) : spread<F>((int64_t)1023);
  const F k = floating((n >> 52) - shift + to_whole_bits) - to_whole;
  const F f = floating((n & (int64_t)0x000fffffffffffff) + half_root) - 1.0;
  const F half = 0.5 * f * f, s = f / (2.0 + f), z = s * s, w = z * z;
  const F odd = w * (0.40000000000000885 + w * (0.22222222392581045 + w * (0.15386244737621665 + w * 0.13088034850927555)));
  const F even = z * (0.6666666666666666 + w * (0.28571428570799784 + w * (0.18181795547521137 + w * 0.13268638369266825)));
  F out = ((s * (half + (odd + even)) + k * ln2_low) - half) + f + k * ln2_high;
  out = x < __builtin_inf() ? out : x;
  out = x < 0.0 ? spread<F>(__builtin_nan("")) : out;
  return x == 0.0 ? spread<F>(-__builtin_inf()) : out;
}

template <class F> KS_INLINE F tanh_of(F x) {
  const F twice = floating(bits(x) & INT64_MAX) * 2.0;
  F k;
  const F rest = reduce<F>(twice > 44.0 ? spread<F>(44.0) : twice, k);
  const F scale = power(bits(k + to_whole) - to_whole_bits);
  const F e = scale * rest + (scale - 1.0);
  const F out = floating(bits(e / (e + 2.0)) | (bits(x) & INT64_MIN));
  return x == x ? out : x;
}

// Single numbers stand in functions of their own, vectors where they are used.
static double exp(double x) { return exp_of(x); }
static double log(double x) { return log_of(x); }
static double tanh(double x) { return tanh_of(x); }
static float exp(float x) { return (float)exp((double)x); }
static float log(float x) { return (float)log((double)x); }
static float tanh(float x) { return (float)tanh((double)x); }
KS_INLINE Floats exp(Floats x) { return exp_of(x); }
KS_INLINE Floats log(Floats x) { return log_of(x); }
KS_INLINE Floats tanh(Floats x) { return tanh_of(x); }

}  // namespace ks
#undef KS_INLINE
