#include "int8_threads.h"

#include <pthread.h>

#include <cstdlib>

namespace {

constexpr int MOST = 64;

pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER;  // held by whoever has a job for the others
pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;   // of everything below
pthread_cond_t wanted = PTHREAD_COND_INITIALIZER;
pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
int started = 0;  // threads besides the callers
Part current = nullptr;
void* current_job = nullptr;
int64_t next_part = 0, all_parts = 0, open_parts = 0;

// Takes parts until none is left. The guard is held before and after, not while a part is done.
void work() {
  while (next_part < all_parts) {
    const int64_t own = next_part++;
    const Part part = current;
    void* job = current_job;
    pthread_mutex_unlock(&guard);
    part(job, own);
    pthread_mutex_lock(&guard);
    if (--open_parts == 0) pthread_cond_signal(&finished);
  }
}

void* loop(void*) {
  pthread_mutex_lock(&guard);
  for (;;) {
    work();
    pthread_cond_wait(&wanted, &guard);
  }
  return nullptr;
}

// In the child of a fork there is no thread but the caller's.
void forget() {
  in_use = PTHREAD_MUTEX_INITIALIZER;
  guard = PTHREAD_MUTEX_INITIALIZER;
  wanted = PTHREAD_COND_INITIALIZER;
  finished = PTHREAD_COND_INITIALIZER;
  started = 0;
  next_part = all_parts = open_parts = 0;
}

void start_up_to(int count) {
  static bool prepared = false;
  if (!prepared) {
    pthread_atfork(nullptr, nullptr, forget);
    prepared = true;
  }
  for (; started < count && started < MOST; ++started) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, loop, nullptr)) return;
    pthread_detach(thread);
  }
}

}  // namespace

void share(Part part, void* job, int64_t parts, int threads) {
  if (threads < 2 || parts < 2 || pthread_mutex_trylock(&in_use)) {
    for (int64_t own = 0; own < parts; ++own) part(job, own);
    return;
  }
  pthread_mutex_lock(&guard);
  start_up_to(threads - 1);
  current = part;
  current_job = job;
  next_part = 0;
  all_parts = open_parts = parts;
  pthread_cond_broadcast(&wanted);
  work();
  while (open_parts) pthread_cond_wait(&finished, &guard);
  pthread_mutex_unlock(&guard);
  pthread_mutex_unlock(&in_use);
}
