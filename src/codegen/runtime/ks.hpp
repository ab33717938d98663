// What generated code stands on: scalar operations that C++ lacks, memory, failures, the calling form.
// It includes nothing of <cmath>: functions of floats are the language's own.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <sys/mman.h>
#include <type_traits>
#include <utility>

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

// Rounded down, and what that leaves: of the sign of the divisor.
template <class T> inline T floordiv(T a, T b) {
  const T q = div<T>(a, b), r = mod<T>(a, b);
  return r != 0 && (r < 0) != (b < 0) ? (T)(q - 1) : q;
}

template <class T> inline T floormod(T a, T b) {
  const T r = mod<T>(a, b);
  return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
}

// Amounts of shifts count modulo the width.
template <class T> inline T shl(T a, T b) {
  return (T)((std::make_unsigned_t<T>)a << (b & (T)(8 * sizeof(T) - 1)));
}

template <class T> inline T shr(T a, T b) {
  return (T)(a >> (b & (T)(8 * sizeof(T) - 1)));
}

// The other sign. GCC 12 makes one operation of a negated `fma`, which adds the other way, and so has another zero where the
// sum is one: where there is an `fma`, the sign is a bit like others.
template <class T> inline T neg(T a) {
#ifdef KS_FUSES
  if constexpr (std::is_same_v<T, double>) return __builtin_bit_cast(T, __builtin_bit_cast(int64_t, a) ^ INT64_MIN);
  else if constexpr (std::is_same_v<T, float>) return __builtin_bit_cast(T, __builtin_bit_cast(int32_t, a) ^ INT32_MIN);
  else
#endif
    return (T)(-a);
}

template <class T> inline T abs(T a) {
  if constexpr (std::is_same_v<T, double>) return __builtin_fabs(a);
  else if constexpr (std::is_same_v<T, float>) return __builtin_fabsf(a);
  else if constexpr (std::is_signed_v<T>) return a < 0 ? (T)(-a) : a;
  else return a;
}

// An integer that was a float, as the compiler must keep it: GCC 12 takes a conversion to integers and back for a
// rounding towards 0, which has -0.0 where an integer has but one zero.
inline int64_t integer(int64_t n) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_assoc_barrier)
  return __builtin_assoc_barrier(n);
#endif
#endif
  return n;
}

// A float to the nearest 64-bit integer towards 0: the ends stand for all beyond them, 0 for no number.
inline int64_t saturate(double x) {
  if (x != x) return 0;
  if (x >= 9223372036854775808.0) return INT64_MAX;
  if (x < -9223372036854775808.0) return INT64_MIN;
  return integer((int64_t)x);
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

// How a function is called: words in and out, memory, how it failed, and who writes what it prints.
struct Call {
  const uint64_t* in;
  uint64_t* out;
  char* base;
  uint64_t capacity;
  uint64_t stack;
  uint64_t peak;
  Failure failure;
  int64_t (*write)(void* writer, int32_t place, const uint64_t* words);
  void* writer;
  int64_t threads;
};

// Memory: taken from the top, given back by setting the top.
struct Arena {
  char* top;
  char* limit;
  char* peak;
  char* stack;
  const Call* call;
  int64_t threads;
};

[[gnu::cold, gnu::noinline]] static int64_t write(const Arena& arena, int32_t place, const uint64_t* words) {
  return arena.call->write(arena.call->writer, place, words);
}

inline int64_t print(const Arena& arena, int32_t place, std::initializer_list<uint64_t> words) {
  return write(arena, place, words.begin());
}

// Where addresses are watched, tensors have a margin that must not be touched; there it is marked.
#if defined(__SANITIZE_ADDRESS__)
extern "C" void __asan_poison_memory_region(const volatile void* from, size_t bytes);
extern "C" void __asan_unpoison_memory_region(const volatile void* from, size_t bytes);
constexpr uint64_t margin = 64;
inline void margins(char* from, uint64_t bytes, char* end) {
  __asan_poison_memory_region(from, (uint64_t)(end - from));
  __asan_unpoison_memory_region(from, bytes);
}
#else
constexpr uint64_t margin = 0;
inline void margins(char*, uint64_t, char*) {}
#endif

// A product of sizes; nothing where one is not positive, and more than any memory where it wraps.
inline int64_t count(int64_t n) { return n > 0 ? n : 0; }
template <class... Rest> inline int64_t count(int64_t n, Rest... rest) {
  int64_t others = count(rest...), out;
  if (n <= 0 || others <= 0) return 0;
  return __builtin_mul_overflow(n, others, &out) ? INT64_MAX : out;
}

// `what` says which tensor does not fit, if it does not.
template <class T, class... Sizes> inline T* take(Arena& arena, int32_t what, Sizes... sizes) {
  const int64_t n = count((int64_t)sizes...);
  const uint64_t left = (uint64_t)(arena.limit - arena.top);
  if (__builtin_expect(left < margin || (uint64_t)n > (left - margin) / sizeof(T), 0))
    fail(no_memory, {what, (int64_t)sizes...});
  T* out = (T*)arena.top;
  arena.top += (((uint64_t)n * sizeof(T) + 63) & ~(uint64_t)63) + margin;
  margins((char*)out, (uint64_t)n * sizeof(T), arena.top);
  if (arena.top > arena.peak) arena.peak = arena.top;
  return out;
}

inline void check_stack(const Arena& arena) {
  if (__builtin_expect((char*)__builtin_frame_address(0) < arena.stack, 0)) fail(no_stack, {});
}

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
              (char*)__builtin_frame_address(0) - call->stack, call, call->threads};
  try {
    start(call->in, call->out, whole);
    call->peak = whole.peak - call->base;
    return 0;
  } catch (const Failure& f) {
    call->failure = f;
    return 1;
  }
}

}  // namespace ks
