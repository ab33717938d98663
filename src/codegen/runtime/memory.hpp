// Reserves address space, of which only what is written becomes memory.
extern "C" __attribute__((visibility("default"))) char* ks_reserve(uint64_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : (char*)p;
}

extern "C" __attribute__((visibility("default"))) void ks_release(char* base, uint64_t bytes) { munmap(base, bytes); }
