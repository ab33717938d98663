// Parallel loops: threads take parts of a loop, iterations that follow each other, over memory of their own.
#include <exception>
#include <pthread.h>
#include <sched.h>

namespace ks {

// Operations that are worth a second thread: they take 20 to 100 microseconds. To wake a thread takes 1 to 5 of those who wake
// it, and as long again until it is there; measured on two cores of an AMD EPYC.
constexpr double worth = 3e5;
// How often a thread looks for the next loop, or the end of this one, before it sleeps: some tens of microseconds.
constexpr int spins = 2000;

inline double trips(int64_t from, int64_t to) { return from < to ? (double)(to - from) : 0.0; }
inline double most(double a, double b) { return a < b ? b : a; }

template <class T> static T seen(const T& value) { return __atomic_load_n(&value, __ATOMIC_ACQUIRE); }

template <class F> static void spin(F done) {
  for (int k = 0; k < spins && !done(); ++k) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }
}

// A loop on threads: each thread that comes in time runs it with its number.
struct Job {
  void (*run)(void* of, int64_t thread);
  void* of;
  int64_t threads;
  int64_t came;
  int64_t busy;
};

// Threads that wait for loops, one loop at a time. They belong to this object, and end before it is unloaded. A loop never
// waits for a thread that has not come: whoever is there does it all.
struct Pool {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t begun = PTHREAD_COND_INITIALIZER;
  pthread_cond_t done = PTHREAD_COND_INITIALIZER;
  Job* job = nullptr;
  uint64_t rounds = 0;
  bool end = false;
  int64_t count = 0;
  pthread_t each[1024];

  static void* wait(void* of) {
    ((Pool*)of)->work();
    return nullptr;
  }

  void work() {
    pthread_mutex_lock(&lock);
    for (uint64_t round = 0;;) {
      while (!end && rounds == round) pthread_cond_wait(&begun, &lock);
      if (end) break;
      round = rounds;
      Job* const mine = job;
      if (mine && mine->came < mine->threads) {
        const int64_t thread = mine->came++;
        __atomic_fetch_add(&mine->busy, 1, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&lock);
        mine->run(mine->of, thread);
        pthread_mutex_lock(&lock);
        if (__atomic_sub_fetch(&mine->busy, 1, __ATOMIC_RELEASE) == 0) pthread_cond_signal(&done);
      }
      pthread_mutex_unlock(&lock);
      spin([&] { return seen(rounds) != round; });
      pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
  }

  void run(Job& with) {
    pthread_mutex_lock(&lock);
    while (count < with.threads - 1 && count < 1024 && !pthread_create(&each[count], nullptr, wait, this)) ++count;
    job = &with;
    __atomic_fetch_add(&rounds, 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&begun);
    pthread_mutex_unlock(&lock);
    with.run(with.of, 0);
    pthread_mutex_lock(&lock);
    // Nobody comes any more.
    job = nullptr;
    pthread_mutex_unlock(&lock);
    spin([&] { return seen(with.busy) == 0; });
    pthread_mutex_lock(&lock);
    while (with.busy) pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
  }

  ~Pool() {
    pthread_mutex_lock(&lock);
    end = true;
    __atomic_fetch_add(&rounds, 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&begun);
    pthread_mutex_unlock(&lock);
    for (int64_t k = 0; k < count; ++k) pthread_join(each[k], nullptr);
  }
};

static Pool pool;

// The body owns copies of what it reads, and is a function of its own, so that it has registers of its own, too.
template <class F> [[gnu::noinline]] static void serial(F body, int64_t from, int64_t to, Arena& arena) {
  body(from, to, arena);
}

// How many threads a loop is worth: none where its iterations do not fill them and those of a loop in it may.
template <bool inner> static int64_t threads_for(int64_t threads, int64_t n, int64_t most, double each) {
  if (threads <= 1) return 1;
  const double all = (double)n * each;
  if (all < worth) return 1;
  const int64_t turns = (n + threads - 1) / threads;
  if (inner && 5 * turns * threads > 6 * n && each >= worth) return 1;
  const double useful = 2 * all / worth;
  if ((double)threads > useful) threads = (int64_t)useful;
  return threads < most ? threads : most;
}

// A loop whose parts threads take, each the next one.
template <bool overlap, class F> struct Spread {
  Arena& whole;
  const int64_t from, to, threads, parts;
  const F& body;
  int64_t next = 0;
  uint64_t used = 0;
  std::exception_ptr failed;
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

  int64_t start(int64_t part) const {
    const int64_t at = from + (to - from) * part / parts;
    return overlap && part < parts && at > to - 2 ? to - 2 : at;
  }

  // Where threads are watched, each waits a while for another one to take the next part: of short loops one would take all.
  void meet(int64_t part) const {
#if defined(__SANITIZE_THREAD__)
    for (int k = 0; k < 1000 && seen(next) == part + 1; ++k) sched_yield();
#endif
    (void)part;
  }

  void run(int64_t thread) {
    const uint64_t share = ((uint64_t)(whole.limit - whole.top) / (uint64_t)threads) & ~(uint64_t)4095;
    char* const base = whole.top + (uint64_t)thread * share;
    // The stack of another thread is elsewhere.
    Arena own{base, base + share, base, (char*)__builtin_frame_address(0) - (64 << 10), whole.call, 1};
    std::exception_ptr mine;
    try {
      for (int64_t part; (part = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < parts;) {
        own.top = base;
        serial(body, start(part), start(part + 1), own);
        meet(part);
      }
    } catch (...) {
      mine = std::current_exception();
      __atomic_store_n(&next, parts, __ATOMIC_RELAXED);
    }
    pthread_mutex_lock(&lock);
    if (mine) failed = mine;
    if ((uint64_t)(own.peak - base) > used) used = (uint64_t)(own.peak - base);
    pthread_mutex_unlock(&lock);
  }
};

// Runs the body over parts of a range on several threads.
template <bool overlap, class F>
[[gnu::noinline]] static void spread(Arena& whole, int64_t from, int64_t to, int64_t threads, F body) {
  using All = Spread<overlap, F>;
  const int64_t n = to - from;
  All all{whole, from, to, threads, n < 8 * threads ? n : 8 * threads, body};
  Job job{[](void* of, int64_t thread) { ((All*)of)->run(thread); }, &all, threads, 1, 0};
  pool.run(job);
  // Any thread may have run the iteration that takes most.
  char* const peak = whole.top + (uint64_t)threads * all.used;
  if (peak > whole.peak) whole.peak = peak;
  if (all.failed) std::rethrow_exception(all.failed);
}

// Runs the body over a range, or over its parts on several threads. `each` is the number of operations of an iteration.
// Where they overlap, the last two iterations are in one part. `inner`: there is a parallel loop in the body.
template <bool overlap, bool inner, class F>
static void parallel(Arena& whole, int64_t from, int64_t to, double each, F body) {
  const int64_t n = to - from, threads = threads_for<inner>(whole.threads, n, overlap ? n - 1 : n, each);
  if (threads <= 1) return serial(body, from, to, whole);
  spread<overlap>(whole, from, to, threads, body);
}

}  // namespace ks
