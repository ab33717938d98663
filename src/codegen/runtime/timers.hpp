// Timers around the loops of stages: of each moment the innermost timer counts, on each thread by itself.
#include <time.h>

namespace ks {

static inline uint64_t now() {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_ia32_rdtsc();
#else
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

static inline double wall() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// What one thread counts; the last place is for what belongs to no stage.
struct Counts {
  uint64_t ticks[stages + 1];
  uint64_t times[stages + 1];
  uint64_t since;
  int stage;
  bool known;
  Counts* next;
};

static Counts* all_counts = nullptr;
static thread_local Counts own_counts;
static const uint64_t first_tick = now();
static const double first_wall = wall();

struct Timed {
  int before;

  // Where the body of a loop begins on a thread, its loop has been counted.
  Timed(int stage, bool counts) {
    Counts& c = own_counts;
    const uint64_t t = now();
    if (!c.known) {
      c.known = true;
      c.stage = stages;
      c.since = t;
      do c.next = __atomic_load_n(&all_counts, __ATOMIC_ACQUIRE);
      while (!__atomic_compare_exchange_n(&all_counts, &c.next, &c, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    }
    c.ticks[c.stage] += t - c.since;
    c.times[stage] += counts;
    before = c.stage;
    c.stage = stage;
    c.since = t;
  }

  ~Timed() {
    Counts& c = own_counts;
    const uint64_t t = now();
    c.ticks[c.stage] += t - c.since;
    c.stage = before;
    c.since = t;
  }
};

}  // namespace ks

// The seconds of all threads in each stage since the last time, and how often its loops began.
extern "C" __attribute__((visibility("default"))) void ks_stage_times(double* seconds, double* times) {
  const double a_tick = (ks::wall() - ks::first_wall) / (double)(ks::now() - ks::first_tick);
  for (int k = 0; k < ks::stages; ++k) seconds[k] = times[k] = 0;
  for (ks::Counts* c = __atomic_load_n(&ks::all_counts, __ATOMIC_ACQUIRE); c; c = c->next) {
    for (int k = 0; k < ks::stages; ++k) {
      seconds[k] += a_tick * (double)c->ticks[k];
      times[k] += (double)c->times[k];
      c->ticks[k] = c->times[k] = 0;
    }
  }
}
