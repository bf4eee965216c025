#include "tests/unit/services/worker/core/learner/counted_locks.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>

namespace {

thread_local bool counts = false;
thread_local std::uint64_t locks = 0;

template <class Function>
Function* Next(const char* name) {
  void* const next = dlsym(RTLD_NEXT, name);
  if (next == nullptr) {
    std::abort();
  }
  return reinterpret_cast<Function*>(next);
}

void Count() {
  if (counts) {
    ++locks;
  }
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static auto* const kNext = Next<int(pthread_mutex_t*)>("pthread_mutex_lock");
  Count();
  return kNext(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  static auto* const kNext = Next<int(pthread_mutex_t*)>("pthread_mutex_trylock");
  Count();
  return kNext(mutex);
}

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  static auto* const kNext = Next<int(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
  Count();
  return kNext(lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  static auto* const kNext = Next<int(pthread_rwlock_t*)>("pthread_rwlock_wrlock");
  Count();
  return kNext(lock);
}

}  // extern "C"

namespace adamant::worker {

CountLocks::CountLocks() { counts = true; }
CountLocks::~CountLocks() { counts = false; }
std::uint64_t CountLocks::total() { return locks; }

}  // namespace adamant::worker
