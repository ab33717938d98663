// Reserves address space, of which only what is written becomes memory: in large pages but at the start, since small programs
// would wait for one to be cleared. Columns of a large tensor lie in as many small pages as it has rows, which is more than
// processors remember.
extern "C" __attribute__((visibility("default"))) char* ks_reserve(uint64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  // What is marked there is marked for ever, unless it is wiped: so it is little.
  if (bytes > 64 << 20) return nullptr;
#endif
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
#ifdef MADV_HUGEPAGE
  const uint64_t page = 2 << 20, from = ((uint64_t)p + 2 * page - 1) & ~(page - 1), to = (uint64_t)p + bytes;
  // Where that is refused, pages are small.
  if (from < to) (void)madvise((void*)from, to - from, MADV_HUGEPAGE);
#endif
  return (char*)p;
}

extern "C" __attribute__((visibility("default"))) void ks_release(char* base, uint64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ks::__asan_unpoison_memory_region(base, bytes);
#endif
  munmap(base, bytes);
}
