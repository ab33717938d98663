// What generated code stands on: scalar operations that C++ lacks, memory, failures, the calling form.
// It includes nothing of <cmath>: the functions are declared here as functions of their arguments
// alone, and without the compiler's own versions, so that each call is one of the C library.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <sys/mman.h>
#include <type_traits>

#define KS_FLOAT(name)                                                    \
  extern "C" double name(double) noexcept __attribute__((const));        \
  extern "C" float name##f(float) noexcept __attribute__((const));
KS_FLOAT(sin) KS_FLOAT(cos) KS_FLOAT(tan) KS_FLOAT(sinh) KS_FLOAT(cosh) KS_FLOAT(asin) KS_FLOAT(acos) KS_FLOAT(atan)
KS_FLOAT(sqrt) KS_FLOAT(erf) KS_FLOAT(floor) KS_FLOAT(ceil)
#undef KS_FLOAT
// lgamma writes a global sign, which nothing here reads.
extern "C" double lgamma(double) noexcept __attribute__((const));
extern "C" float lgammaf(float) noexcept __attribute__((const));
extern "C" double pow(double, double) noexcept __attribute__((const));
extern "C" float powf(float, float) noexcept __attribute__((const));
extern "C" double atan2(double, double) noexcept __attribute__((const));
extern "C" float atan2f(float, float) noexcept __attribute__((const));

namespace ks {

// A failure: the place, and the numbers that its message shows.
struct Failure {
  int32_t site;
  int32_t count;
  int64_t values[32];
};

constexpr int32_t no_memory = -1;
constexpr int32_t no_stack = -2;

[[noreturn, gnu::cold, gnu::noinline]] static void fail(int32_t site, std::initializer_list<int64_t> values) {
  Failure f{};
  f.site = site;
  for (int64_t v : values)
    if (f.count < 32) f.values[f.count++] = v;
  throw f;
}

// Integers: division by 0 is checked before, and the least integer by -1 wraps.
template <class T> inline T div(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a / b;
  else if constexpr (std::is_signed_v<T>) return b == -1 ? (T)(-a) : (T)(a / b);
  else return (T)(a / b);
}

template <class T> inline T mod(T a, T b) {
  if constexpr (std::is_signed_v<T>) return b == -1 ? (T)0 : (T)(a % b);
  else return (T)(a % b);
}

template <class T> inline T abs(T a) {
  if constexpr (std::is_same_v<T, double>) return __builtin_fabs(a);
  else if constexpr (std::is_same_v<T, float>) return __builtin_fabsf(a);
  else if constexpr (std::is_signed_v<T>) return a < 0 ? (T)(-a) : a;
  else return a;
}

// A float to the nearest 64-bit integer towards 0: the ends stand for all beyond them, 0 for no number.
inline int64_t saturate(double x) {
  if (x != x) return 0;
  if (x >= 9223372036854775808.0) return INT64_MAX;
  if (x < -9223372036854775808.0) return INT64_MIN;
  return (int64_t)x;
}

// Integers wrap, floats saturate, anything but 0 is true.
template <class To, class From> inline To cast(From x) {
  if constexpr (std::is_same_v<To, bool>) return x != 0;
  else if constexpr (std::is_floating_point_v<To> || !std::is_floating_point_v<From>) return (To)x;
  else {
    int64_t v = saturate((double)x);
    if constexpr (sizeof(To) == 8) return v;
    else {
      constexpr int64_t bits = 8 * sizeof(To), one = 1;
      constexpr int64_t low = std::is_signed_v<To> ? -(one << (bits - 1)) : 0;
      constexpr int64_t high = std::is_signed_v<To> ? (one << (bits - 1)) - 1 : (one << bits) - 1;
      return (To)(v < low ? low : v > high ? high : v);
    }
  }
}

// A fixed random number in [0, 1) for each integer.
inline double ranhash(int64_t x) {
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

// Memory: taken from the top, given back by setting the top.
struct Arena {
  char* top;
  char* limit;
  char* peak;
  char* stack;
};

// A product of sizes; nothing where one is not positive, and more than any memory where it wraps.
inline int64_t count(int64_t n) { return n > 0 ? n : 0; }
template <class... Rest> inline int64_t count(int64_t n, Rest... rest) {
  int64_t others = count(rest...), out;
  if (n <= 0 || others <= 0) return 0;
  return __builtin_mul_overflow(n, others, &out) ? INT64_MAX : out;
}

template <class T> inline T* take(Arena& arena, int64_t n) {
  if (__builtin_expect((uint64_t)n > (uint64_t)(arena.limit - arena.top) / sizeof(T), 0)) fail(no_memory, {n});
  T* out = (T*)arena.top;
  arena.top += ((uint64_t)n * sizeof(T) + 63) & ~(uint64_t)63;
  if (arena.top > arena.peak) arena.peak = arena.top;
  return out;
}

inline void check_stack(const Arena& arena) {
  if (__builtin_expect((char*)__builtin_frame_address(0) < arena.stack, 0)) fail(no_stack, {});
}

// How a function is called: words in and out, memory, and how it failed.
struct Call {
  const uint64_t* in;
  uint64_t* out;
  char* base;
  uint64_t capacity;
  uint64_t stack;
  uint64_t peak;
  Failure failure;
};

template <class T> inline T get(uint64_t word) {
  T out;
  memcpy(&out, &word, sizeof(T));
  return out;
}

template <class T> inline uint64_t word(T value) {
  uint64_t out = 0;
  memcpy(&out, &value, sizeof(T));
  return out;
}

static inline int32_t guard(Call* call, void (*start)(const uint64_t*, uint64_t*, Arena&)) {
  // The last cache line stays free, so that rounding up never passes the end.
  Arena whole{call->base, call->base + call->capacity - 64, call->base,
              (char*)__builtin_frame_address(0) - call->stack};
  try {
    start(call->in, call->out, whole);
    call->peak = whole.peak - call->base;
    return 0;
  } catch (const Failure& f) {
    call->failure = f;
    return 1;
  }
}

// Vectors: a number for each of the iterations that run at once. What is true is -1, what is false 0.
constexpr int lanes = 8;
typedef double Floats __attribute__((vector_size(lanes * sizeof(double))));
typedef int64_t Ints __attribute__((vector_size(lanes * sizeof(int64_t))));
#define KS_INLINE static inline __attribute__((always_inline))

template <class V, class F> KS_INLINE V each(F f) {
  V out;
  for (int k = 0; k < lanes; ++k) out[k] = f(k);
  return out;
}

KS_INLINE Floats all(double x) { return Floats{x, x, x, x, x, x, x, x}; }
KS_INLINE Ints all(int64_t x) { return Ints{x, x, x, x, x, x, x, x}; }
KS_INLINE Ints all(bool x) { return all(-(int64_t)x); }
KS_INLINE Ints ramp(int64_t first, int64_t step) {
  return all(first) + Ints{0, 1, 2, 3, 4, 5, 6, 7} * all(step);
}
KS_INLINE bool every(Ints ok) {
  int64_t out = -1;
  for (int k = 0; k < lanes; ++k) out &= ok[k];
  return out != 0;
}

// Of few iterations only the first `live` lanes count: no other is read, written, or computed where that could fail.
template <class V, class F> KS_INLINE V each(F f, int64_t live) {
  V out = {};
  for (int k = 0; k < live; ++k) out[k] = f(k);
  return out;
}
KS_INLINE bool every(Ints ok, int64_t live) {
  return every(ok | (Ints{0, 1, 2, 3, 4, 5, 6, 7} >= live));
}

template <class T> struct VectorOf { typedef Ints type; };
template <> struct VectorOf<double> { typedef Floats type; };

template <class T> KS_INLINE typename VectorOf<T>::type get(const T* from) {
  typename VectorOf<T>::type out;
  memcpy(&out, from, sizeof out);
  return out;
}
template <class T> KS_INLINE typename VectorOf<T>::type gather(const T* from, int64_t step) {
  return typename VectorOf<T>::type{from[0],        from[step],     from[2 * step], from[3 * step],
                                    from[4 * step], from[5 * step], from[6 * step], from[7 * step]};
}
template <class T> KS_INLINE typename VectorOf<T>::type gather(const T* from, Ints at) {
  return typename VectorOf<T>::type{from[at[0]], from[at[1]], from[at[2]], from[at[3]],
                                    from[at[4]], from[at[5]], from[at[6]], from[at[7]]};
}
template <class T, class V> KS_INLINE void put(T* to, V value) {
  if constexpr (sizeof(T) == sizeof(int64_t)) memcpy(to, &value, sizeof value);
  else for (int k = 0; k < lanes; ++k) to[k] = value[k] != 0;
}
template <class T, class V> KS_INLINE void scatter(T* to, Ints at, V value) {
  for (int k = 0; k < lanes; ++k)
    if constexpr (sizeof(T) == sizeof(V)) to[at[k]][k] = value[k];
    else if constexpr (std::is_same_v<T, bool>) to[at[k]] = value[k] != 0;
    else to[at[k]] = value[k];
}

#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
typedef long long Longs __attribute__((vector_size(lanes * sizeof(long long))));
KS_INLINE unsigned char first(int64_t live) { return (unsigned char)((1 << live) - 1); }
KS_INLINE Floats get(const double* from, int64_t live) {
  return __builtin_ia32_loadupd512_mask(from, Floats{}, first(live));
}
KS_INLINE Ints get(const int64_t* from, int64_t live) {
  return (Ints)__builtin_ia32_loaddqudi512_mask((const long long*)from, Longs{}, first(live));
}
KS_INLINE void put(double* to, Floats value, int64_t live) {
  __builtin_ia32_storeupd512_mask(to, value, first(live));
}
KS_INLINE void put(int64_t* to, Ints value, int64_t live) {
  __builtin_ia32_storedqudi512_mask((long long*)to, (Longs)value, first(live));
}
#endif
template <class T> KS_INLINE typename VectorOf<T>::type get(const T* from, int64_t live) {
  return each<typename VectorOf<T>::type>([&](int k) { return from[k]; }, live);
}
template <class T, class V> KS_INLINE void put(T* to, V value, int64_t live) {
  for (int k = 0; k < live; ++k)
    if constexpr (sizeof(T) == sizeof(int64_t)) to[k] = value[k];
    else to[k] = value[k] != 0;
}
template <class T> KS_INLINE typename VectorOf<T>::type gather(const T* from, int64_t step, int64_t live) {
  return each<typename VectorOf<T>::type>([&](int k) { return from[k * step]; }, live);
}
template <class T> KS_INLINE typename VectorOf<T>::type gather(const T* from, Ints at, int64_t live) {
  return each<typename VectorOf<T>::type>([&](int k) { return from[at[k]]; }, live);
}
template <class T, class V> KS_INLINE void scatter(T* to, Ints at, V value, int64_t live) {
  for (int k = 0; k < live; ++k)
    if constexpr (sizeof(T) == sizeof(V)) to[at[k]][k] = value[k];
    else if constexpr (std::is_same_v<T, bool>) to[at[k]] = value[k] != 0;
    else to[at[k]] = value[k];
}

}  // namespace ks

// Reserves address space, of which only what is written becomes memory.
extern "C" __attribute__((visibility("default"))) char* ks_reserve(uint64_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : (char*)p;
}

extern "C" __attribute__((visibility("default"))) void ks_release(char* base, uint64_t bytes) { munmap(base, bytes); }
