// The operations in which elementary functions are written (`ir/elementary/`), on numbers and on vectors of any
// length. F is a number or a vector; conditions on vectors are vectors of 0 and -1.
namespace ks {

template <class F> constexpr bool is_vector = !std::is_arithmetic_v<F>;
template <class F, bool = is_vector<F>> struct Shape {
  typedef F Number;
  typedef bool Mask;
  typedef std::conditional_t<sizeof(F) == 8, int64_t, int32_t> Whole;
  typedef std::make_unsigned_t<Whole> Bits;
};
template <class F> struct Shape<F, true> {
  typedef std::remove_cv_t<std::remove_reference_t<decltype(std::declval<F>()[0])>> Number;
  typedef decltype(std::declval<F>() < std::declval<F>()) Mask;
  typedef Mask Whole;
  typedef typename Shape<Number>::Bits Bits __attribute__((vector_size(sizeof(F))));
};
template <class F> using Number = typename Shape<F>::Number;
template <class F> using Truth = typename Shape<F>::Mask;
template <class F> using Whole = typename Shape<F>::Whole;
template <class F> using Bits = typename Shape<F>::Bits;
template <class F> constexpr bool is_wide = sizeof(Number<F>) == 8;
template <class F> constexpr int length = sizeof(F) / sizeof(Number<F>);

// The bits of a mantissa, and what is added to exponents.
template <class F> constexpr int digits = is_wide<F> ? 52 : 23;
template <class F> constexpr int bias = is_wide<F> ? 1023 : 127;
// What rounds to whole numbers.
template <class F> constexpr Number<F> to_whole = is_wide<F> ? 6755399441055744.0 : 12582912.0f;

template <class F> KS_INLINE F spread(Number<F> x) {
  if constexpr (is_vector<F>) return F{} + x;
  else return x;
}
template <class F> KS_INLINE Whole<F> bits(F x) { return __builtin_bit_cast(Whole<F>, x); }
template <class F> KS_INLINE F number(Whole<F> n) { return __builtin_bit_cast(F, n); }

template <class F, class G> KS_INLINE F each_of(G g) {
  if constexpr (is_vector<F>) {
    F out;
    for (int k = 0; k < length<F>; ++k) out[k] = g([&](auto x) { return x[k]; });
    return out;
  } else return g([](auto x) { return x; });
}
template <class F> KS_INLINE F fma(F a, F b, F c) {
  return each_of<F>([&](auto at) {
    if constexpr (is_wide<F>) return __builtin_fma(at(a), at(b), at(c));
    else return __builtin_fmaf(at(a), at(b), at(c));
  });
}
template <class F> KS_INLINE F sqrt(F x) {
  return each_of<F>([&](auto at) {
    if constexpr (is_wide<F>) return __builtin_sqrt(at(x));
    else return __builtin_sqrtf(at(x));
  });
}
template <class F> KS_INLINE F floor(F x) {
  return each_of<F>([&](auto at) {
    if constexpr (is_wide<F>) return __builtin_floor(at(x));
    else return __builtin_floorf(at(x));
  });
}
template <class F> KS_INLINE F ceil(F x) {
  return each_of<F>([&](auto at) {
    if constexpr (is_wide<F>) return __builtin_ceil(at(x));
    else return __builtin_ceilf(at(x));
  });
}

template <class F> using Word = std::conditional_t<is_wide<F>, int64_t, int32_t>;
template <class F> constexpr Word<F> sign_bit = (Word<F>)((uint64_t)1 << (8 * sizeof(Number<F>) - 1));
template <class F> KS_INLINE F magnitude(F x) { return number<F>(bits(x) & ~sign_bit<F>); }
template <class F> KS_INLINE F with_sign(F x, F sign) {
  return number<F>((bits(x) & ~sign_bit<F>) | (bits(sign) & sign_bit<F>));
}
template <class F> KS_INLINE F negated_by(F x, F t) {
  return number<F>(bits(x) ^ (bits(t) << (8 * sizeof(Number<F>) - 1)));
}
template <class F> KS_INLINE Truth<F> last_bit(F t) { return (bits(t) & 1) != 0; }
template <class M> KS_INLINE M negate(M mask) {
  if constexpr (std::is_same_v<M, bool>) return !mask;
  else return ~mask;
}
template <class F, int N> KS_INLINE F lookup(F at, const Number<F> (&table)[N]) {
  return each_of<F>([&](auto lane) {
    const auto k = lane(at);
    return k >= 0 && k < N ? table[(int)k] : 0;
  });
}

template <class F> KS_INLINE F at_least(F x, F bound) { return x < bound ? bound : x; }
template <class F> KS_INLINE F at_most(F x, F bound) { return bound < x ? bound : x; }

// The same operations on whole vectors in one instruction each: compilers do not always find them in loops.
typedef double Double8 __attribute__((vector_size(64)));
typedef double Double4 __attribute__((vector_size(32)));
typedef float Float16 __attribute__((vector_size(64)));
typedef float Float8 __attribute__((vector_size(32)));
template <class M> KS_INLINE bool any_lane(M mask) {
  if constexpr (std::is_same_v<M, bool>) return mask;
  else {
    auto out = mask[0];
    for (int k = 1; k < (int)(sizeof(M) / sizeof(mask[0])); ++k) out |= mask[k];
    return out != 0;
  }
}
#if defined(__GNUC__) && !defined(__clang__)
#ifdef __AVX512F__
#define KS_512(F, t)                                                                                          \
  KS_INLINE F fma(F a, F b, F c) { return __builtin_ia32_vfmadd##t##512_mask(a, b, c, -1, 4); }               \
  KS_INLINE F sqrt(F x) { return __builtin_ia32_sqrt##t##512_mask(x, x, -1, 4); }                             \
  KS_INLINE F floor(F x) { return __builtin_ia32_rndscale##t##_mask(x, 9, x, -1, 4); }                        \
  KS_INLINE F ceil(F x) { return __builtin_ia32_rndscale##t##_mask(x, 10, x, -1, 4); }                        \
  KS_INLINE F at_least(F x, F bound) { return __builtin_ia32_max##t##512_mask(bound, x, x, -1, 4); }          \
  KS_INLINE F at_most(F x, F bound) { return __builtin_ia32_min##t##512_mask(bound, x, x, -1, 4); }           \
  KS_INLINE F scale_at_once(F x, F k) { return __builtin_ia32_scalef##t##512_mask(x, k, x, -1, 4); }          \
  KS_INLINE F mantissa_at_once(F x) { return __builtin_ia32_getmant##t##512_mask(x, 15, x, -1, 4); }          \
  KS_INLINE F exponent_at_once(F x) { return __builtin_ia32_getexp##t##512_mask(x, x, -1, 4); }
KS_512(Double8, pd)
KS_512(Float16, ps)
#undef KS_512
#endif
#ifdef __AVX512DQ__
KS_INLINE bool any_lane(Truth<Double8> mask) { return __builtin_ia32_cvtq2mask512((Longs)mask) != 0; }
KS_INLINE bool any_lane(Truth<Float16> mask) { return __builtin_ia32_cvtd2mask512(mask) != 0; }
#endif
#ifdef __FMA__
#define KS_256(F, t)                                                                   \
  KS_INLINE F fma(F a, F b, F c) { return __builtin_ia32_vfmadd##t##256(a, b, c); }    \
  KS_INLINE F sqrt(F x) { return __builtin_ia32_sqrt##t##256(x); }                     \
  KS_INLINE F at_least(F x, F bound) { return __builtin_ia32_max##t##256(bound, x); }  \
  KS_INLINE F at_most(F x, F bound) { return __builtin_ia32_min##t##256(bound, x); }   \
  KS_INLINE F floor(F x) { return __builtin_ia32_round##t##256(x, 9); }                \
  KS_INLINE F ceil(F x) { return __builtin_ia32_round##t##256(x, 10); }
KS_256(Double4, pd)
KS_256(Float8, ps)
#undef KS_256
KS_INLINE bool any_lane(Truth<Double4> mask) { return __builtin_ia32_movmskpd256((Double4)mask) != 0; }
KS_INLINE bool any_lane(Truth<Float8> mask) { return __builtin_ia32_movmskps256((Float8)mask) != 0; }
#endif
#endif
#if defined(__AVX512VL__) && defined(__GNUC__) && !defined(__clang__)
typedef double Double2 __attribute__((vector_size(16)));
typedef float Float4 __attribute__((vector_size(16)));
#define KS_SCALING(F, t, bits, mask)                                                                          \
  KS_INLINE F scale_at_once(F x, F k) { return __builtin_ia32_scalef##t##bits##_mask(x, k, x, mask); }        \
  KS_INLINE F mantissa_at_once(F x) { return __builtin_ia32_getmant##t##bits##_mask(x, 15, x, mask); }        \
  KS_INLINE F exponent_at_once(F x) { return __builtin_ia32_getexp##t##bits##_mask(x, x, mask); }
KS_SCALING(Double4, pd, 256, 15)
KS_SCALING(Float8, ps, 256, 255)
KS_SCALING(Double2, pd, 128, 3)
KS_SCALING(Float4, ps, 128, 15)
#undef KS_SCALING
KS_INLINE double scale_at_once(double x, double k) { return scale_at_once(Double2{x}, Double2{k})[0]; }
KS_INLINE double mantissa_at_once(double x) { return mantissa_at_once(Double2{x})[0]; }
KS_INLINE double exponent_at_once(double x) { return exponent_at_once(Double2{x})[0]; }
KS_INLINE float scale_at_once(float x, float k) { return scale_at_once(Float4{x}, Float4{k})[0]; }
KS_INLINE float mantissa_at_once(float x) { return mantissa_at_once(Float4{x})[0]; }
KS_INLINE float exponent_at_once(float x) { return exponent_at_once(Float4{x})[0]; }
template <class F> constexpr bool has_scaling = sizeof(F) <= 64;
#elif defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
template <class F> constexpr bool has_scaling = is_vector<F> && sizeof(F) == 64;
#else
template <class F> constexpr bool has_scaling = false;
template <class F> F scale_at_once(F x, F);
template <class F> F mantissa_at_once(F x);
template <class F> F exponent_at_once(F x);
#endif

// Whether a condition holds in any lane, which is rare.
template <class M> KS_INLINE bool any(M mask) { return __builtin_expect(any_lane(mask), 0); }

// The lowest bits of a number of which `to_whole` is a part are those of a whole number; in the exponent's place they
// are all that is left of it.
template <class F> KS_INLINE F two_to(Bits<F> k) { return number<F>((Whole<F>)((k + bias<F>) << digits<F>)); }

template <class F> KS_INLINE F power_of_two(F t) {
  if constexpr (has_scaling<F>) return scale_at_once(spread<F>(1), t - to_whole<F>);
  else return two_to<F>((Bits<F>)bits(t));
}
template <class F> KS_INLINE F scale(F x, F t) {
  if constexpr (has_scaling<F>) return scale_at_once(x, t - to_whole<F>);
  else {
    // The first of two steps does not round.
    const Bits<F> k = (Bits<F>)bits(t), half = k >> 1;
    return x * two_to<F>(half) * two_to<F>(k - half);
  }
}

// Where 0 is chosen, nothing is computed that is below the normal numbers: processors that scale at once have a 1 there, others
// a power of two that is still one, before it is 0.
template <class F> KS_INLINE F settled(F x, F least, Truth<F> below) {
  if constexpr (has_scaling<F> || !is_vector<F>) return below ? F{} : x;
  else return at_least(x, least);
}
template <class F> KS_INLINE F scaled_sum(F r, F q, F t, Truth<F> zero) {
  if constexpr (!is_vector<F> || has_scaling<F>) {
    const F scaled = scale(fma(r, q, spread<F>(1)), t);
    return zero ? F{} : scaled;
  } else {
    // What is exact is done before the sum.
    const Bits<F> k = (Bits<F>)bits(t), half = k >> 1;
    const F first = two_to<F>(half), second = number<F>(bits(two_to<F>(k - half)) & ~zero);
    return fma(r * first, q, first) * second;
  }
}

template <class F> struct Parts {
  F k, m;
};
template <class F> KS_INLINE Parts<F> split(F x) {
  if constexpr (has_scaling<F>) {
    const F m = mantissa_at_once(x), k = exponent_at_once(x);
    return {m < 1 ? k + 1 : k, m};
  } else {
    const Number<F> least = is_wide<F> ? 0x1p-1022 : 0x1p-126f, all = (Number<F>)__builtin_inf();
    const Bits<F> low = (Bits<F>)bits(spread<F>(0.75f)), up = (Bits<F>)bits(spread<F>(1)) - low;
    // Whole numbers that stand in the lowest bits of this number become numbers by a subtraction.
    const F one = spread<F>((Number<F>)((int64_t)1 << digits<F>));
    F normal = x, shift = one + bias<F>;
    const bool odd = any(negate((Truth<F>)((x >= least) & (x < all))));
    if (odd) {
      const auto tiny = x < least;
      normal = tiny ? x * (Number<F>)((int64_t)1 << (digits<F> + 1)) : x;
      shift = tiny ? shift + (digits<F> + 1) : shift;
    }
    const Bits<F> n = (Bits<F>)bits(normal) + up, fraction = n & (((Bits<F>{} + 1) << digits<F>) - 1);
    F k = number<F>((Whole<F>)(n >> digits<F> | (Bits<F>)bits(one))) - shift;
    if (odd) {
      k = x < all ? k : x;
      k = x > 0 ? k : x == 0 ? spread<F>(-all) : spread<F>(__builtin_nan(""));
    }
    return {k, number<F>((Whole<F>)(fraction + low))};
  }
}

}  // namespace ks
