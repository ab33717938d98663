// What the machine does at most: multiplications with an addition that wait for nothing, and elements moved in vectors.
namespace ks {

// So many sums do not wait for one another, and still have registers.
constexpr int chains = 12;
// Vectors that a round moves.
constexpr int at_once = 4;

template <class T> static T fused(int64_t rounds, T by, T more) {
  constexpr int n = register_bytes / sizeof(T);
  typedef Vec<T, n> V;
  V sums[chains], factor = V{} + by, term = V{} + more;
  for (int k = 0; k < chains; ++k) sums[k] = V{} + (T)k;
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int k = 0; k < chains; ++k) sums[k] = fma(sums[k], factor, term);
  }
  T out = 0;
  for (int k = 0; k < chains; ++k)
    for (int l = 0; l < n; ++l) out += sums[k][l];
  return out;
}

// `n` is a multiple of what a round moves. What is written is looked at between rounds, so that none is left out.
template <bool triad>
static void moved(double* to, const double* from, const double* other, double by, int64_t n, int64_t rounds) {
  constexpr int lanes = register_bytes / sizeof(double);
  typedef Vec<double, lanes> V;
  for (int64_t r = 0; r < rounds; ++r) {
    for (int64_t i = 0; i < n; i += at_once * lanes) {
#pragma GCC unroll 4
      for (int k = 0; k < at_once; ++k) {
        const V x = *(const V*)(from + i + k * lanes);
        V* const at = (V*)(to + i + k * lanes);
        if constexpr (triad) *at = x + by * *(const V*)(other + i + k * lanes);
        else *at = x;
        // Without this a compiler calls the library to copy, which generated code does not.
        asm volatile("" ::: "memory");
      }
    }
  }
}

}  // namespace ks

#define KS_CEILING extern "C" __attribute__((visibility("default")))
KS_CEILING int64_t ks_chains() { return ks::chains; }
KS_CEILING int64_t ks_register_bytes() { return ks::register_bytes; }
KS_CEILING double ks_fused_64(int64_t rounds, double by, double more) { return ks::fused<double>(rounds, by, more); }
KS_CEILING double ks_fused_32(int64_t rounds, double by, double more) {
  return ks::fused<float>(rounds, (float)by, (float)more);
}
KS_CEILING void ks_copy(double* to, const double* from, const double* other, double by, int64_t n, int64_t rounds) {
  ks::moved<false>(to, from, other, by, n, rounds);
}
KS_CEILING void ks_triad(double* to, const double* from, const double* other, double by, int64_t n, int64_t rounds) {
  ks::moved<true>(to, from, other, by, n, rounds);
}
