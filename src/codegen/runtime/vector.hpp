// Vectors: a number in each of N lanes. In a mask what is true is -1, what is false 0.
namespace ks {

#define KS_INLINE static inline __attribute__((always_inline))

template <class T, int N> struct VectorOf {
  typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
template <class T, int N> using Vec = typename VectorOf<T, N>::type;

template <int Bytes> struct IntOf;
template <> struct IntOf<1> { typedef int8_t type; };
template <> struct IntOf<2> { typedef int16_t type; };
template <> struct IntOf<4> { typedef int32_t type; };
template <> struct IntOf<8> { typedef int64_t type; };

// The lanes of a mask are as wide as those of one vector register with as many.
#if defined(__AVX512F__)
constexpr int register_bytes = 64;
#elif defined(__AVX__)
constexpr int register_bytes = 32;
#else
constexpr int register_bytes = 16;
#endif
constexpr int mask_bytes(int n) { return register_bytes / n > 8 ? 8 : register_bytes / n < 1 ? 1 : register_bytes / n; }
template <int N> using Mask = Vec<typename IntOf<mask_bytes(N)>::type, N>;
template <class T, int N> struct RegisterOf { typedef Vec<T, N> type; };
template <int N> struct RegisterOf<bool, N> { typedef Mask<N> type; };
template <class T, int N> using Register = typename RegisterOf<T, N>::type;
template <class V> using LaneOf = std::remove_reference_t<decltype(std::declval<V&>()[0])>;

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define KS_SHUFFLES
#endif
#endif
// Whether a vector takes more than one register: comparisons and choices of such are made half by half, since g++ takes
// them apart lane by lane.
#ifdef KS_SHUFFLES
template <class V> constexpr bool is_long = sizeof(V) > register_bytes;
template <int first, class V, int... I> KS_INLINE auto part(V x, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, x, (first + I)...);
}
template <class V, int... I> KS_INLINE auto joined(V a, V b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, I...);
}
#else
template <class V> constexpr bool is_long = false;
template <int first, class V, class I> KS_INLINE V part(V x, I) { return x; }
template <class V, class I> KS_INLINE V joined(V a, V, I) { return a; }
#endif
template <class V> constexpr int lanes_in = sizeof(V) / sizeof(LaneOf<V>);
template <class V> KS_INLINE auto low(V x) { return part<0>(x, std::make_integer_sequence<int, lanes_in<V> / 2>()); }
template <class V> KS_INLINE auto high(V x) {
  return part<lanes_in<V> / 2>(x, std::make_integer_sequence<int, lanes_in<V> / 2>());
}
template <class V> KS_INLINE auto joined(V a, V b) {
  return joined(a, b, std::make_integer_sequence<int, 2 * lanes_in<V>>());
}

// Lanes of another type. Lanes become twice or half as wide at a time: more than that g++ 12 converts one by one.
template <class To, int N, class V> KS_INLINE Vec<To, N> convert(V x) {
  typedef LaneOf<V> From;
  constexpr bool whole = std::is_integral_v<From>;
  if constexpr (std::is_same_v<To, From>) return x;
  else if constexpr (whole && std::is_integral_v<To> && sizeof(From) >= 4 * sizeof(To))
    return convert<To, N>(__builtin_convertvector(x, Vec<typename IntOf<sizeof(From) / 2>::type, N>));
  else if constexpr (whole && sizeof(To) >= 4 * sizeof(From) && std::is_signed_v<From>)
    return convert<To, N>(__builtin_convertvector(x, Vec<typename IntOf<2 * sizeof(From)>::type, N>));
  else if constexpr (whole && sizeof(To) >= 4 * sizeof(From))
    return convert<To, N>(__builtin_convertvector(x, Vec<std::make_unsigned_t<typename IntOf<2 * sizeof(From)>::type>, N>));
  else if constexpr (whole && std::is_floating_point_v<To> && sizeof(From) < 4)
    return convert<To, N>(__builtin_convertvector(x, Vec<int32_t, N>));
  else return __builtin_convertvector(x, Vec<To, N>);
}

typedef Vec<double, 8> Floats;
typedef Vec<int64_t, 8> Ints;

template <int N, class T, int... I> KS_INLINE Vec<T, N> all_of(T x, std::integer_sequence<int, I...>) {
  return Vec<T, N>{((void)I, x)...};
}
template <int N, class T> KS_INLINE Register<T, N> all(T x) {
  if constexpr (std::is_same_v<T, bool>) return all<N>((LaneOf<Mask<N>>)-(int)x);
  else return all_of<N, T>(x, std::make_integer_sequence<int, N>());
}
KS_INLINE Floats all(double x) { return all<8>(x); }
KS_INLINE Ints all(int64_t x) { return all<8>(x); }

template <int N, class T, int... I> KS_INLINE Vec<T, N> lanes_of(std::integer_sequence<int, I...>) {
  return Vec<T, N>{(T)I...};
}
// 0, 1, 2, …
template <int N, class T> KS_INLINE Vec<T, N> lanes() { return lanes_of<N, T>(std::make_integer_sequence<int, N>()); }
template <int N> KS_INLINE Vec<int64_t, N> ramp(int64_t first, int64_t step) {
  return all<N>(first) + lanes<N, int64_t>() * all<N>(step);
}

// What a comparison gives has lanes as wide as what was compared.
template <int N, class V> KS_INLINE Mask<N> mask(V found) {
  if constexpr (std::is_same_v<V, Mask<N>>) return found;
  else if constexpr (sizeof(V) == sizeof(Mask<N>)) return (Mask<N>)found;
  else return convert<LaneOf<Mask<N>>, N>(found);
}
template <int N> KS_INLINE Mask<N> first(int64_t live) {
  typedef LaneOf<Mask<N>> T;
  return mask<N>(lanes<N, T>() < all<N>((T)(live > N ? N : live)));
}
template <int N, class V> KS_INLINE V select(Mask<N> which, V a, V b) {
  typedef Vec<typename IntOf<sizeof(LaneOf<V>)>::type, N> Own;
  if constexpr (is_long<V>) {
    typedef LaneOf<Mask<N / 2>> Half;
    return joined(select<N / 2>(convert<Half, N / 2>(low(which)), low(a), low(b)),
                  select<N / 2>(convert<Half, N / 2>(high(which)), high(a), high(b)));
  } else if constexpr (sizeof(Own) == sizeof(Mask<N>)) return (Own)which ? a : b;
  else return convert<LaneOf<Own>, N>(which) ? a : b;
}
#define KS_COMPARE(name, sign)                                                                  \
  template <int N, class V> KS_INLINE Mask<N> name(V a, V b) {                                  \
    if constexpr (is_long<V>) {                                                      \
      const auto first = name<N / 2>(low(a), low(b)), last = name<N / 2>(high(a), high(b));     \
      return joined(convert<LaneOf<Mask<N>>, N / 2>(first), convert<LaneOf<Mask<N>>, N / 2>(last)); \
    } else return mask<N>(a sign b);                                                            \
  }
KS_COMPARE(less, <)
KS_COMPARE(at_most, <=)
KS_COMPARE(greater, >)
KS_COMPARE(at_least, >=)
KS_COMPARE(equal, ==)
KS_COMPARE(unequal, !=)
#undef KS_COMPARE
typedef Vec<long long, 8> Longs;
// Whether one instruction makes bits of a mask of so many lanes.
constexpr bool has_bits([[maybe_unused]] int n) {
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__) && defined(__AVX512DQ__)
  return n == 8 || n == 16;
#elif defined(__GNUC__) && !defined(__clang__) && defined(__AVX__) && !defined(__AVX512F__)
  return n == 4 || n == 8;
#else
  return false;
#endif
}
// Bit k says whether lane k is true.
template <int N> KS_INLINE uint64_t bits(Mask<N> ok) {
#if defined(__GNUC__) && !defined(__clang__)
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  if constexpr (N == 8) return (uint8_t)__builtin_ia32_cvtq2mask512((Longs)ok);
  else if constexpr (N == 16) return (uint16_t)__builtin_ia32_cvtd2mask512(ok);
  else
#elif defined(__AVX__) && !defined(__AVX512F__)
  if constexpr (N == 4) return (unsigned)__builtin_ia32_movmskpd256((Vec<double, 4>)ok);
  else if constexpr (N == 8) return (unsigned)__builtin_ia32_movmskps256((Vec<float, 8>)ok);
  else
#endif
#endif
  {
    uint64_t out = 0;
    for (int k = 0; k < N; ++k) out |= (uint64_t)(ok[k] != 0) << k;
    return out;
  }
}
// Whether all lanes are true.
template <class M> KS_INLINE bool every(M ok) {
  constexpr int n = sizeof(M) / sizeof(LaneOf<M>);
  if constexpr (std::is_same_v<M, Mask<n>> && has_bits(n)) return bits<n>(ok) == ((uint64_t)1 << n) - 1;
  else {
    LaneOf<M> out = -1;
    for (int k = 0; k < n; ++k) out &= ok[k];
    return out != 0;
  }
}

// The other sign, as `neg` has it.
template <int N, class V> KS_INLINE V negated(V a) {
#ifdef KS_FUSES
  if constexpr (std::is_floating_point_v<LaneOf<V>>) {
    typedef typename IntOf<sizeof(LaneOf<V>)>::type Bits;
    return (V)((Vec<Bits, N>)a ^ all<N>((Bits)((Bits)1 << (8 * sizeof(Bits) - 1))));
  } else
#endif
    return -a;
}

// The size without the sign; the least integer wraps to itself.
template <int N, class V> KS_INLINE V absolute(V a) {
  typedef LaneOf<V> T;
  if constexpr (std::is_floating_point_v<T>) {
    typedef typename IntOf<sizeof(T)>::type Bits;
    return (V)((Vec<Bits, N>)a & all<N>((Bits)~((Bits)1 << (8 * sizeof(Bits) - 1))));
  } else if constexpr (std::is_signed_v<T> && is_long<V>) return joined(absolute<N / 2>(low(a)), absolute<N / 2>(high(a)));
  else if constexpr (std::is_signed_v<T>) return a < 0 ? -a : a;
  else return a;
}

// The first where it is less, or greater, and else the second. Of integers g++ knows these in vectors of any length.
template <class V> KS_INLINE V least(V a, V b) {
  if constexpr (is_long<V> && std::is_floating_point_v<LaneOf<V>>) return joined(least(low(a), low(b)), least(high(a), high(b)));
  else return a < b ? a : b;
}
template <class V> KS_INLINE V greatest(V a, V b) {
  if constexpr (is_long<V> && std::is_floating_point_v<LaneOf<V>>)
    return joined(greatest(low(a), low(b)), greatest(high(a), high(b)));
  else return a > b ? a : b;
}

// The least and the greatest: of floats NaN where one is none, and -0 below +0, so that no order shows. Where neither is
// less, both are equal, and their bits differ in the sign of 0 alone, or one is no number, which all bits of both are, too.
template <class T> KS_INLINE T minimum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a < b ? a : b < a ? b : a == b ? (__builtin_signbit(a) ? a : b) : a + b;
  else if constexpr (std::is_arithmetic_v<T>) return a < b ? a : b;
  else if constexpr (!std::is_floating_point_v<LaneOf<T>>) return a < b ? a : b;
  else if constexpr (is_long<T>) return joined(minimum(low(a), low(b)), minimum(high(a), high(b)));
  else {
    typedef Vec<typename IntOf<sizeof(LaneOf<T>)>::type, sizeof(T) / sizeof(LaneOf<T>)> Bits;
    const T other = b < a ? b : (T)((Bits)a | (Bits)b);
    return a < b ? a : other;
  }
}
template <class T> KS_INLINE T maximum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a > b ? a : b > a ? b : a == b ? (__builtin_signbit(a) ? b : a) : a + b;
  else if constexpr (std::is_arithmetic_v<T>) return a > b ? a : b;
  else if constexpr (!std::is_floating_point_v<LaneOf<T>>) return a > b ? a : b;
  else if constexpr (is_long<T>) return joined(maximum(low(a), low(b)), maximum(high(a), high(b)));
  else {
    typedef Vec<typename IntOf<sizeof(LaneOf<T>)>::type, sizeof(T) / sizeof(LaneOf<T>)> Bits;
    const T equal = (T)((Bits)a & (Bits)b), other = a == b ? equal : (T)((Bits)a | (Bits)b);
    const T right = b > a ? b : other;
    return a > b ? a : right;
  }
}
// Whether one is found before the other where the least is looked for: what is no number is, and -0 before +0.
template <class T> KS_INLINE auto precedes(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a != a ? b == b : a < b || (a == b && __builtin_signbit(a) && !__builtin_signbit(b));
  else if constexpr (std::is_arithmetic_v<T>) return a < b;
  else if constexpr (!std::is_floating_point_v<LaneOf<T>>) return a < b;
  else {
    typedef Vec<typename IntOf<sizeof(LaneOf<T>)>::type, sizeof(T) / sizeof(LaneOf<T>)> Bits;
    // Equal numbers differ in their bits where they are zeros alone, and that of -0 is the least of all integers.
    return (~(b <= a) & (b == b)) | ((a == b) & ((Bits)a < (Bits)b));
  }
}

// Sizes below 2^51 to integers, towards 0: 2^52 is added, which rounds to a whole number and leaves it in the low bits.
template <int N, class V> KS_INLINE Vec<int64_t, N> whole_part(V x) {
  typedef Vec<int64_t, N> Whole;
  const V shift = all<N>(4503599627370496.0), size = absolute<N>(x), near = size + shift;
  Whole out = (Whole)near - (Whole)shift;
  out += (Whole)(near - shift > size);
  return (Whole)(x < all<N>(0.0)) ? -out : out;
}

// Floats between two ends, which stand for all beyond them, and 0 for no number.
template <int N, class V, class T> KS_INLINE V between(V x, T low, T high) {
  V in = x > all<N>(low) ? x : all<N>(low);
  in = in < all<N>(high) ? in : all<N>(high);
  return x == x ? in : all<N>((T)0);
}

// Floats to integers, towards 0: the ends stand for all beyond them, 0 for no number.
template <class To, int N, class V> KS_INLINE Vec<To, N> saturate(V x) {
  typedef LaneOf<V> T;
  constexpr int bits = 8 * sizeof(To), sign = std::is_signed_v<To>;
  if constexpr (is_long<V> || ((bits == 64 || (bits == 32 && !sign)) && is_long<Vec<double, N>>))
    return joined(saturate<To, N / 2>(low(x)), saturate<To, N / 2>(high(x)));
  else if constexpr (bits == 64) {
    const auto wide = __builtin_convertvector(x, Vec<double, N>);
    typedef Vec<int64_t, N> Whole;
#if defined(__AVX512DQ__)
    // The greatest float below 2^63.
    const double most = 9223372036854774784.0;
    const Whole out = __builtin_convertvector(between<N>(wide, -9223372036854775808.0, most), Whole);
    return (Whole)(wide > all<N>(most)) ? all<N>(INT64_MAX) : out;
#else
    if (every(mask<N>(absolute<N>(wide) < all<N>(2251799813685248.0)))) return whole_part<N>(wide);
    Whole out;
    for (int k = 0; k < N; ++k) out[k] = cast<To>(wide[k]);
    return out;
#endif
  } else if constexpr (bits == 32 && !sign) {
    const auto wide = __builtin_convertvector(x, Vec<double, N>);
    return __builtin_convertvector(whole_part<N>(between<N>(wide, 0.0, 4294967295.0)), Vec<To, N>);
  } else if constexpr (bits == 32 && sizeof(T) == 4) {
    // The greatest float below 2^31.
    const auto out = __builtin_convertvector(between<N>(x, -2147483648.0f, 2147483520.0f), Vec<To, N>);
    return select<N>(mask<N>(x >= all<N>(2147483648.0f)), all<N>((To)INT32_MAX), out);
  } else if constexpr (bits == 32) {
    return __builtin_convertvector(between<N>(x, -2147483648.0, 2147483647.0), Vec<To, N>);
  } else {
    const V in = between<N>(x, (T)(sign ? -(1 << (bits - 1)) : 0), (T)((1 << (bits - sign)) - 1));
    return convert<To, N>(__builtin_convertvector(in, Vec<int32_t, N>));
  }
}

// Each lane from a function of its number; lanes from `live` on are zero, and nothing is computed for them.
template <class V, class F> KS_INLINE V each(F f) {
  V out;
  for (unsigned k = 0; k < sizeof(V) / sizeof(out[0]); ++k) out[k] = f(k);
  return out;
}
template <class V, class F> KS_INLINE V each(F f, int64_t live) {
  V out = {};
  for (int64_t k = 0; k < live; ++k) out[k] = f(k);
  return out;
}

// The first so many lanes.
struct First {
  int64_t live;
};

template <class T> KS_INLINE auto lane_in(T x) {
  if constexpr (std::is_same_v<T, bool>) return -(int)x;
  else return x;
}
template <class T, class L> KS_INLINE T lane_out(L x) {
  if constexpr (std::is_same_v<T, bool>) return x != 0;
  else return x;
}

// Lanes next to each other in memory, as vectors, never as so many bytes: with AVX-512, g++ 12 makes an integer of a
// constant that is copied so, and stores {1, 1, 0, 0} as {1, 1, 1, 1}, since it does not see the zeros in front of the
// integer.
template <class V, class T> KS_INLINE V load_unaligned(const T* from) {
  typedef V Unaligned __attribute__((aligned(alignof(T)), may_alias));
  return *(const Unaligned*)from;
}
template <class V, class T> KS_INLINE void store_unaligned(V value, T* to) {
  typedef V Unaligned __attribute__((aligned(alignof(T)), may_alias));
  *(Unaligned*)to = value;
}
template <int N, class T> KS_INLINE Register<T, N> load_near(const T* from) {
  if constexpr (std::is_same_v<T, bool>) return -convert<LaneOf<Mask<N>>, N>(load_unaligned<Vec<int8_t, N>>(from));
  else return load_unaligned<Vec<T, N>>(from);
}
template <int N, class T, class V> KS_INLINE void store_near(V value, T* to) {
  if constexpr (std::is_same_v<T, bool>) store_unaligned<Vec<int8_t, N>>(-convert<int8_t, N>(value), to);
  else store_unaligned(value, to);
}
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
KS_INLINE unsigned char low_bits(int64_t live) { return (unsigned char)((1 << live) - 1); }
KS_INLINE unsigned short low_bits_of_16(int64_t live) { return (unsigned short)((1 << live) - 1); }
#endif
template <int N, class T> KS_INLINE Register<T, N> load_near(const T* from, First only) {
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
  if constexpr (N == 8 && std::is_same_v<T, double>)
    return __builtin_ia32_loadupd512_mask(from, Floats{}, low_bits(only.live));
  else if constexpr (N == 8 && std::is_same_v<T, int64_t>)
    return (Ints)__builtin_ia32_loaddqudi512_mask((const long long*)from, Longs{}, low_bits(only.live));
  else if constexpr (N == 16 && std::is_same_v<T, float>)
    return __builtin_ia32_loadups512_mask(from, Vec<float, 16>{}, low_bits_of_16(only.live));
  else
#endif
    return each<Register<T, N>>([&](int64_t k) { return lane_in(from[k]); }, only.live);
}
template <int N, class T, class V> KS_INLINE void store_near(V value, T* to, First only) {
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
  if constexpr (N == 8 && std::is_same_v<T, double>)
    __builtin_ia32_storeupd512_mask(to, value, low_bits(only.live));
  else if constexpr (N == 8 && std::is_same_v<T, int64_t>)
    __builtin_ia32_storedqudi512_mask((long long*)to, (Longs)value, low_bits(only.live));
  else if constexpr (N == 16 && std::is_same_v<T, float>)
    __builtin_ia32_storeups512_mask(to, value, low_bits_of_16(only.live));
  else
#endif
    for (int64_t k = 0; k < only.live; ++k) to[k] = lane_out<T>(value[k]);
}

// Lanes at a stride, and anywhere.
template <int N, class T, int... I>
KS_INLINE Register<T, N> load_at(const T* from, int64_t step, std::integer_sequence<int, I...>) {
  return Register<T, N>{(LaneOf<Register<T, N>>)lane_in(from[I * step])...};
}
#ifdef KS_SHUFFLES
// Lanes at a small stride lie in as many vectors next to each other, the last of which ends with the last lane, so that
// nothing beyond it is read. Lane `k` of those so far comes from the `j`-th vector, or stays.
constexpr int lane_from(int n, int step, int j, int k) {
  const int at = k * step, of = at / n, start = of + 1 < step ? of * n : (step - 1) * (n - 1);
  return of == j ? n + at - start : of == 0 && j == 1 ? at : k;
}
template <int j, int step, int N, class T, int... I>
KS_INLINE Vec<T, N> picked(Vec<T, N> sofar, const T* from, std::integer_sequence<int, I...> lanes) {
  if constexpr (j == step) return sofar;
  else {
    const Vec<T, N> next = load_near<N>(from + (j + 1 < step ? j * N : (step - 1) * (N - 1)));
    return picked<j + 1, step, N>(__builtin_shufflevector(sofar, next, lane_from(N, step, j, I)...), from, lanes);
  }
}
template <int N, int step, class T> KS_INLINE Vec<T, N> load_every(const T* from) {
  if constexpr (sizeof(T) * N > register_bytes) {
    return joined(load_every<N / 2, step>(from), load_every<N / 2, step>(from + N / 2 * step));
  } else {
    return picked<1, step, N>(load_near<N>(from), from, std::make_integer_sequence<int, N>());
  }
}
#endif
template <int N, class T> KS_INLINE Register<T, N> load_strided(const T* from, int64_t step) {
#ifdef KS_SHUFFLES
  if constexpr (!std::is_same_v<T, bool> && sizeof(T) >= 4 && sizeof(T) * N >= 16) {
    if (__builtin_constant_p(step) && step == 2) return load_every<N, 2>(from);
    if (__builtin_constant_p(step) && step == 3) return load_every<N, 3>(from);
    if (__builtin_constant_p(step) && step == 4) return load_every<N, 4>(from);
  }
#endif
  return load_at<N, T>(from, step, std::make_integer_sequence<int, N>());
}
template <int N, class T, int... I>
KS_INLINE Register<T, N> load_at(const T* from, Vec<int64_t, N> at, std::integer_sequence<int, I...>) {
  return Register<T, N>{(LaneOf<Register<T, N>>)lane_in(from[at[I]])...};
}
template <int N, class T> KS_INLINE Register<T, N> load_anywhere(const T* from, Vec<int64_t, N> at) {
  return load_at<N, T>(from, at, std::make_integer_sequence<int, N>());
}

// Lane k is the element (first + k) / by: near loads, as many as lanes that share an element, the lanes of which are woven.
#ifdef KS_SHUFFLES
template <class V, int... I> KS_INLINE auto woven(V a, V b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (I / 2 + I % 2 * (int)(sizeof...(I) / 2))...);
}
template <int N, int step, int by, class T> KS_INLINE Vec<T, N> stretched(const T* from, int64_t first) {
  if constexpr (step == by) return load_near<N>(from + first / by);
  else
    return woven(stretched<N / 2, 2 * step, by>(from, first), stretched<N / 2, 2 * step, by>(from, first + step),
                 std::make_integer_sequence<int, N>());
}
#endif
template <int N, int by, class T> KS_INLINE Register<T, N> load_stretched(const T* from, int64_t first) {
#ifdef KS_SHUFFLES
  if constexpr (!std::is_same_v<T, bool>)
    if (first >= 0) return stretched<N, 1, by>(from + first / by, first % by);
#endif
  return load_anywhere<N>(from, ramp<N>(first, 1) / (int64_t)by);
}
// Lanes k where first + k leaves this remainder: every so many of them.
template <int N, int by> KS_INLINE Mask<N> leaves(int64_t first, int64_t left) {
  typedef LaneOf<Mask<N>> T;
  if (first < 0 || left < 0 || left >= by) return mask<N>((ramp<N>(first, 1) % (int64_t)by) == all<N>(left));
  return mask<N>(((lanes<N, T>() + all<N>((T)(first % by))) & all<N>((T)(by - 1))) == all<N>((T)left));
}
template <int N, class T> KS_INLINE Register<T, N> load_strided(const T* from, int64_t step, First only) {
  return each<Register<T, N>>([&](int64_t k) { return lane_in(from[k * step]); }, only.live);
}
template <int N, class T> KS_INLINE Register<T, N> load_anywhere(const T* from, Vec<int64_t, N> at, First only) {
  return each<Register<T, N>>([&](int64_t k) { return lane_in(from[at[k]]); }, only.live);
}
template <int N, class T, class V> KS_INLINE void store_strided(V value, T* to, int64_t step, First only) {
  for (int64_t k = 0; k < only.live; ++k) to[k * step] = lane_out<T>(value[k]);
}
#ifdef KS_SHUFFLES
// Two lanes at a time, which is what one instruction takes out of a longer vector.
template <int N, class T, class V, int... I>
KS_INLINE void store_pairs(V value, T* to, int64_t step, std::integer_sequence<int, I...>) {
  const auto pair = [&](auto two, int64_t k) {
    to[2 * k * step] = two[0];
    to[(2 * k + 1) * step] = two[1];
  };
  (pair(__builtin_shufflevector(value, value, 2 * I, 2 * I + 1), I), ...);
}
#endif
template <int N, class T, class V> KS_INLINE void store_strided(V value, T* to, int64_t step) {
#ifdef KS_SHUFFLES
  if constexpr (N > 1 && sizeof(T) == 8 && sizeof(V) == N * sizeof(T))
    return store_pairs<N>(value, to, step, std::make_integer_sequence<int, N / 2>());
#endif
  store_strided<N>(value, to, step, First{N});
}
template <int N, class T, class V> KS_INLINE void store_anywhere(V value, T* to, Vec<int64_t, N> at, First only = {N}) {
  for (int64_t k = 0; k < only.live; ++k) to[at[k]] = lane_out<T>(value[k]);
}

// Lanes where a mask says; mostly that is all of them.
template <int N, class T> KS_INLINE Register<T, N> load_anywhere(const T* from, Vec<int64_t, N> at, Mask<N> only) {
  const uint64_t set = bits<N>(only);
  if (set == 0) return Register<T, N>{};
  // Elsewhere they read what a lane that is asked for does, so that no lane needs a branch.
  const Vec<int64_t, N> there = all<N>((int64_t)at[__builtin_ctzll(set)]);
  return select<N>(only, load_anywhere<N>(from, select<N>(only, at, there)), Register<T, N>{});
}
template <int N, class T> KS_INLINE Register<T, N> load_strided(const T* from, int64_t step, Mask<N> only) {
  if (every(only)) return load_strided<N>(from, step);
  return load_anywhere<N>(from, ramp<N>(0, step), only);
}
template <int N, class T> KS_INLINE Register<T, N> load_near(const T* from, Mask<N> only) {
#if defined(__GNUC__) && !defined(__clang__)
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  if constexpr (N == 8 && std::is_same_v<T, double>)
    return __builtin_ia32_loadupd512_mask(from, Floats{}, __builtin_ia32_cvtq2mask512((Longs)only));
  else if constexpr (N == 16 && std::is_same_v<T, float>)
    return __builtin_ia32_loadups512_mask(from, Vec<float, 16>{}, __builtin_ia32_cvtd2mask512(only));
  else
#elif defined(__AVX2__)
  if constexpr (N == 4 && std::is_same_v<T, double>)
    return __builtin_ia32_maskloadpd256((const Vec<double, 4>*)from, (Vec<long long, 4>)only);
  else if constexpr (N == 8 && std::is_same_v<T, float>)
    return __builtin_ia32_maskloadps256((const Vec<float, 8>*)from, only);
  else
#endif
#endif
  {
    if (every(only)) return load_near<N>(from);
    return load_anywhere<N>(from, lanes<N, int64_t>(), only);
  }
}
template <int N, class T, class V> KS_INLINE void store_anywhere(V value, T* to, Vec<int64_t, N> at, Mask<N> only) {
  for (int k = 0; k < N; ++k)
    if (only[k]) to[at[k]] = lane_out<T>(value[k]);
}
template <int N, class T, class V> KS_INLINE void store_strided(V value, T* to, int64_t step, Mask<N> only) {
  store_anywhere<N>(value, to, ramp<N>(0, step), only);
}
template <int N, class T, class V> KS_INLINE void store_near(V value, T* to, Mask<N> only) {
#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__GNUC__) && !defined(__clang__)
  if constexpr (N == 8 && std::is_same_v<T, double>)
    __builtin_ia32_storeupd512_mask(to, value, (uint8_t)bits<N>(only));
  else if constexpr (N == 16 && std::is_same_v<T, float>)
    __builtin_ia32_storeups512_mask(to, value, (uint16_t)bits<N>(only));
  else
#endif
    store_strided<N>(value, to, 1, only);
}

}  // namespace ks
