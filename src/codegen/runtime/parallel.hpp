// Parallel loops: each thread runs iterations that follow each other, over memory of its own.
#include <atomic>
#include <exception>
#ifdef KS_THREADS
// Tools that look for races know threads, and nothing of OpenMP.
#include <thread>
#include <vector>
#else
#include <omp.h>
#endif

namespace ks {

template <class F> static void parallel(Arena& whole, int64_t from, int64_t to, F body) {
  const int64_t n = to - from;
#ifdef KS_THREADS
  static thread_local bool inside = false;
#else
  const bool inside = omp_in_parallel();
#endif
  const int64_t threads = whole.call->threads < n ? whole.call->threads : n;
  if (threads <= 1 || inside) {
    for (int64_t i = from; i < to; ++i) {
      char* const mark = whole.top;
      body(i, whole);
      whole.top = mark;
    }
    return;
  }
  const uint64_t share = ((uint64_t)(whole.limit - whole.top) / (uint64_t)threads) & ~(uint64_t)4095;
  std::exception_ptr failed;
  std::atomic<int64_t> used{0};
  auto part = [&](int64_t t) {
    char* const base = whole.top + t * share;
    Arena own{base, base + share, base, whole.stack, whole.call};
    // The stack of another thread is elsewhere.
    own.stack = (char*)__builtin_frame_address(0) - (64 << 10);
    std::exception_ptr mine;
    try {
      for (int64_t i = from + n * t / threads, end = from + n * (t + 1) / threads; i < end; ++i) {
        own.top = base;
        body(i, own);
      }
    } catch (...) {
      mine = std::current_exception();
    }
    used += own.peak - base;
    return mine;
  };
#ifdef KS_THREADS
  std::vector<std::exception_ptr> each((size_t)threads);
  std::vector<std::thread> others;
  for (int64_t t = 1; t < threads; ++t)
    others.emplace_back([&, t] {
      inside = true;
      each[(size_t)t] = part(t);
    });
  inside = true;
  each[0] = part(0);
  inside = false;
  for (auto& o : others) o.join();
  for (auto& e : each)
    if (e && !failed) failed = e;
#else
#pragma omp parallel num_threads((int)threads)
  {
    // Fewer threads than were asked for do all parts.
    for (int64_t t = omp_get_thread_num(); t < threads; t += omp_get_num_threads()) {
      const std::exception_ptr mine = part(t);
      if (mine) {
#pragma omp critical
        failed = mine;
      }
    }
  }
#endif
  if (whole.top + used > whole.peak) whole.peak = whole.top + used;
  if (failed) std::rethrow_exception(failed);
}

}  // namespace ks
