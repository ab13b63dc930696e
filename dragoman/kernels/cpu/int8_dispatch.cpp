// The functions that Python calls: each by the best level of instructions that this CPU has, its work
// cut into parts for the threads. They return 0, or what failed. Shapes that follow from the model are
// checked where it is loaded (runtimes/native_int8.py), what differs from call to call is checked here.

#include "int8_stack.h"
#include "int8_threads.h"

#include <pthread.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

// Raised with every change to the structures or functions, so that an old library is not used.
constexpr int64_t VERSION = 4;

// Less than this is not worth waking another thread: some 20 microseconds.
constexpr int64_t WORTH_A_THREAD = 2000000;  // products

// A call that searches returns after so many seconds, so that Python hears of an interruption.
constexpr double PATIENCE = 0.02;

// What a call returns; kernels/native.py says it in words.
enum Failure { DONE, NO_MEMORY, OUT_OF_RANGE };

constexpr int64_t MOST_BEAMS = 64;  // that of int8_body.h
constexpr int64_t MOST = 1 << 30;   // rows of a product, so that an int can count them

namespace avx512 { extern const Level level; }
namespace avx2 { extern const Level level; }
namespace plain { extern const Level level; }

#if defined(__x86_64__)

// Whether the CPU has the instructions, and the system keeps their registers. The compilers' own
// question for this is not to be had in every shared library.
static bool has_registers(unsigned wanted) {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & wanted) == wanted;
}

static bool has_avx2() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_FMA)) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2)) return false;
  return has_registers(0x06);
}

static bool has_avx512() {
  unsigned a, b, c, d;
  if (!has_avx2() || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const unsigned wanted = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  return (b & wanted) == wanted && (c & bit_AVX512VNNI) && has_registers(0xe6);
}

#endif

struct Known {
  const Level* level;
  bool available;
};

// The best first.
static const Known levels[] = {
#if defined(__x86_64__)
    {&avx512::level, has_avx512()},
    {&avx2::level, has_avx2()},
#endif
    {&plain::level, true},
};

static const Level* best() {
  const Known* known = levels;
  while (!known->available) ++known;
  return known->level;
}

static const Level* chosen = best();

// --- memory of a thread ---------------------------------------------------------------------------

// Memory that grows and is used again: asking for it anew would cost more than a small product. It
// goes with its thread.
static thread_local char* kept = nullptr;
static thread_local size_t kept_size = 0;

static pthread_key_t key_of_kept() {
  pthread_key_t key;
  pthread_key_create(&key, free);
  return key;
}

static const pthread_key_t key = key_of_kept();

static char* memory_of(size_t bytes) {
  if (bytes + 64 > kept_size) {
    pthread_setspecific(key, nullptr);
    free(kept);
    kept = static_cast<char*>(malloc(bytes + 64));
    kept_size = kept ? bytes + 64 : 0;
    pthread_setspecific(key, kept);
  }
  if (!kept) return nullptr;
  return kept + (64 - reinterpret_cast<uintptr_t>(kept) % 64) % 64;
}

static int64_t least(int64_t one, int64_t other) { return one < other ? one : other; }

static bool are_within(const int64_t* values, int64_t count, int64_t least, int64_t most) {
  for (int64_t i = 0; values && i < count; ++i)
    if (values[i] < least || values[i] > most) return false;
  return true;
}

// --- an encoder -----------------------------------------------------------------------------------

// Source positions of some sentences that go through an encoder together: enough that each weight is
// used often while it is in the cache, and few enough that what is computed stays there, too.
constexpr int64_t ENCODED_TOGETHER = 96;

struct Encoding {
  const Stack* stack;
  Sentences sentences;
  int64_t each;  // sentences of a part
  bool failed;
};

static void encode_some(void* given, int64_t part) {
  Encoding* job = static_cast<Encoding*>(given);
  const int64_t first = part * job->each;
  const int64_t last = least(first + job->each, job->sentences.rows);
  char* memory = memory_of(chosen->encode_room(job->stack, &job->sentences, first, last));
  if (!memory) {
    job->failed = true;
    return;
  }
  chosen->encode(job->stack, &job->sentences, first, last, memory);
}

EXPORT int dragoman_encode(const Stack* stack, float* x, const int64_t* lengths, int64_t rows,
                           int64_t width, const float* bias, int64_t threads) {
  if (width < 0 || width > MOST || !are_within(lengths, rows, 0, width)) return OUT_OF_RANGE;
  if (!rows || !width) return DONE;
  if (threads < 1) threads = 1;
  const int64_t fair = (rows + threads - 1) / threads;
  const int64_t each = least(ENCODED_TOGETHER / width + 1, fair);
  Encoding job{stack, {x, lengths, bias, rows, width}, each, false};
  share(encode_some, &job, (rows + each - 1) / each, static_cast<int>(threads));
  return job.failed ? NO_MEMORY : DONE;
}

// tokens (B, S) -> x (B, S, D), what the encoder reads.
EXPORT int dragoman_embed(const Stack* stack, const int64_t* tokens, int64_t rows, int64_t width,
                          float* x) {
  if (stack->positions && width > stack->most_positions) return OUT_OF_RANGE;
  if (!are_within(tokens, rows * width, 0, stack->vocabulary - 1)) return OUT_OF_RANGE;
  for (int64_t i = 0; i < rows * width; ++i)
    chosen->embed(stack, tokens[i], i % width, x + i * stack->width);
  return DONE;
}

// --- a step of a decoder --------------------------------------------------------------------------

struct Stepping {
  const Stack* stack;
  const Past* past;
  const int64_t* tokens;
  float* features;
  int64_t each;  // sentences of a part
  bool failed;
};

static void step_some(void* given, int64_t part) {
  Stepping* job = static_cast<Stepping*>(given);
  const int64_t first = part * job->each;
  const int64_t last = least(first + job->each, job->past->rows);
  char* memory = memory_of(chosen->step_room(job->stack, job->past, last - first));
  if (!memory) {
    job->failed = true;
    return;
  }
  chosen->step(job->stack, job->past, nullptr, job->tokens, first, last, job->features, memory);
}

static bool is_possible(const Stack* stack, const Past* past, const int64_t* tokens) {
  const int64_t beams = past->beams, position = past->position;
  if (past->rows < 0 || beams < 1 || past->rows > MOST / beams) return false;
  if (position < 0 || position >= past->capacity) return false;
  if (past->ancestors ? position >= past->ancestor_capacity : beams > 1) return false;
  if (stack->positions && position >= stack->most_positions) return false;
  if (stack->across && !are_within(past->lengths, past->rows, 0, past->source)) return false;
  return are_within(tokens, past->rows * beams, 0, stack->vocabulary - 1);
}

EXPORT int dragoman_step(const Stack* stack, const Past* past, const int64_t* tokens,
                         float* features, int64_t threads) {
  if (!is_possible(stack, past, tokens)) return OUT_OF_RANGE;
  if (!past->rows) return DONE;
  if (threads < 1) threads = 1;
  const int64_t each = (past->rows + threads - 1) / threads;
  Stepping job{stack, past, tokens, features, each, false};
  share(step_some, &job, (past->rows + each - 1) / each, static_cast<int>(threads));
  return job.failed ? NO_MEMORY : DONE;
}

// --- a single product -----------------------------------------------------------------------------

struct Product {
  const Matrix* matrix;
  int64_t rows;
  char* memory;
  float* y;
  int64_t blocks, each;
};

static void multiply_some(void* given, int64_t part) {
  const Product* job = static_cast<const Product*>(given);
  const int64_t first = part * job->each;
  const int64_t last = least(first + job->each, job->blocks);
  chosen->linear(job->matrix, job->rows, job->memory, first, last, job->y);
}

EXPORT int dragoman_linear(const Matrix* matrix, const float* x, int64_t rows, float* y,
                           int64_t threads) {
  if (rows < 0 || rows > MOST) return OUT_OF_RANGE;
  if (!rows || !matrix->out) return DONE;
  char* memory = memory_of(chosen->linear_room(matrix, rows));
  if (!memory) return NO_MEMORY;
  chosen->quantise_rows(matrix, x, rows, memory);
  const int64_t blocks = (matrix->out + 15) / 16;
  const double work = static_cast<double>(rows) * matrix->in * matrix->out;
  if (threads < 1 || work < static_cast<double>(WORTH_A_THREAD * threads)) threads = 1;
  const int64_t each = ((blocks + threads - 1) / threads + 3) / 4 * 4;
  Product job{matrix, rows, memory, y, blocks, each};
  share(multiply_some, &job, (blocks + each - 1) / each, static_cast<int>(threads));
  return DONE;
}

// --- the choice -----------------------------------------------------------------------------------

struct Choosing {
  const float* logits;
  const Standing* standing;
  const Choice* choice;
};

static void choose_one(void* given, int64_t row) {
  const Choosing* job = static_cast<const Choosing*>(given);
  const Standing* standing = job->standing;
  const float* own = job->logits + row * standing->beams * standing->size;
  chosen->choose(own, standing->size, nullptr, standing, job->choice, row);
}

EXPORT int dragoman_choose(const float* logits, const Standing* standing, const Choice* choice,
                           int64_t threads) {
  if (standing->beams < 1 || standing->beams > MOST_BEAMS || standing->size < 1)
    return OUT_OF_RANGE;
  Choosing job{logits, standing, choice};
  if (standing->rows * standing->beams * standing->size < WORTH_A_THREAD / 4) threads = 1;
  share(choose_one, &job, standing->rows, static_cast<int>(threads));
  return DONE;
}

// --- a position of a search -----------------------------------------------------------------------

// Rows of logits that are computed together: few enough that they are still in the cache when the
// best of them are chosen.
constexpr int64_t CHOSEN_TOGETHER = 24;

struct Turning {
  const Turn* turn;
  int64_t running, each;  // sentences in all, and of a part
  bool failed;
};

// The logits and the choice of some sentences. Returns whether there was memory.
static bool finish_some(const Turn* turn, int64_t first, int64_t last, const float* logits) {
  char* memory = memory_of(chosen->turn_room(turn, first, last));
  if (memory) chosen->finish_turn(turn, first, last, logits, memory);
  return memory;
}

static bool step_running(const Turn* turn, int64_t first, int64_t last) {
  char* memory = memory_of(chosen->step_room(turn->stack, turn->past, last - first));
  if (memory)
    chosen->step(turn->stack, turn->past, turn->running, turn->tokens, first, last, turn->features,
                 memory);
  return memory;
}

// All of a position for some sentences, so that threads wait for each other once.
static void turn_some(void* given, int64_t part) {
  Turning* job = static_cast<Turning*>(given);
  const Turn* turn = job->turn;
  const int64_t first = part * job->each;
  const int64_t last = least(first + job->each, job->running);
  const int64_t beams = turn->past->beams;
  const int64_t together = turn->ids || beams > CHOSEN_TOGETHER ? 1 : CHOSEN_TOGETHER / beams;
  bool failed = !step_running(turn, first, last);
  for (int64_t i = first; i < last && !failed; i += together)
    failed = !finish_some(turn, i, least(i + together, last), nullptr);
  if (failed) job->failed = true;
}

// The same for fewer sentences than there are threads, which share out the vocabulary.
static int turn_few(const Turn* turn, int64_t running, int64_t threads) {
  if (!step_running(turn, 0, running)) return NO_MEMORY;
  const int64_t beams = turn->past->beams;
  for (int64_t i = 0; i < running; ++i) {
    const float* own = turn->features + turn->running[i] * beams * turn->stack->width;
    const int failed = dragoman_linear(turn->outputs, own, beams, turn->logits, threads);
    if (failed) return failed;
    if (!finish_some(turn, i, i + 1, turn->logits)) return NO_MEMORY;
  }
  return DONE;
}

// Finds the sentences that are running, and says of the others that nothing was chosen. Returns how
// many are running.
static int64_t find_running(const Turn* turn) {
  const int64_t beams = turn->past->beams;
  const Choice* choice = turn->choice;
  int64_t running = 0;
  for (int64_t row = 0; row < turn->past->rows; ++row) {
    if (!turn->standing->over[row]) {
      turn->running[running++] = row;
      continue;
    }
    for (int64_t k = row * beams; k < (row + 1) * beams; ++k) {
      choice->tokens[k] = choice->beams[k] = 0;
      choice->log_probs[k] = choice->totals[k] = -INFINITY;
    }
  }
  return running;
}

static int turn_once(const Turn* turn, int64_t threads) {
  Past* past = turn->past;
  const int64_t rows = past->rows, beams = past->beams;
  if (!is_possible(turn->stack, past, turn->tokens)) return OUT_OF_RANGE;
  const int64_t running = find_running(turn);
  const int64_t size = turn->ids ? 1024 : turn->outputs->out;  // of a shortlist, about
  const int64_t work = running * beams * size * turn->stack->width;
  if (threads < 1 || work < WORTH_A_THREAD * threads) threads = 1;
  if (running < threads && !turn->ids) {
    const int failed = turn_few(turn, running, threads);
    if (failed) return failed;
  } else if (running) {
    const int64_t each = (running + threads - 1) / threads;
    Turning job{turn, running, each, false};
    share(turn_some, &job, (running + each - 1) / each, static_cast<int>(threads));
    if (job.failed) return NO_MEMORY;
  }
  past->position += 1;
  turn->standing->length += 1;
  turn->choice->tokens += rows * beams;
  turn->choice->beams += rows * beams;
  turn->choice->log_probs += rows * beams;
  turn->choice->totals += rows * beams;
  return DONE;
}

static double seconds() {
  timespec now;
  timespec_get(&now, TIME_UTC);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Takes a search up to `most` positions further, each a step, a choice and all that follows from it;
// fewer where its sentences are over, or where that takes long. `left` are those that are not over.
EXPORT int dragoman_turn(const Turn* turn, int64_t most, int64_t* left, int64_t threads) {
  const Past* past = turn->past;
  const Standing* standing = turn->standing;
  if (past->beams > MOST_BEAMS || standing->rows != past->rows || standing->beams != past->beams)
    return OUT_OF_RANGE;
  const double begun = seconds();
  for (int64_t done = 0; done < most; ++done) {
    const double spent = seconds() - begun;
    if (done && !(spent >= 0.0 && spent < PATIENCE)) break;
    const int failed = turn_once(turn, threads);
    if (failed) return failed;
    *left = 0;
    for (int64_t row = 0; row < past->rows; ++row) *left += !standing->over[row];
    if (!*left) break;
  }
  return DONE;
}

// --- what else ------------------------------------------------------------------------------------

EXPORT int64_t dragoman_version() { return VERSION; }

EXPORT const char* dragoman_level() { return chosen->name; }

// Chooses a level by its name, for tests; returns whether this CPU has it.
EXPORT int dragoman_use(const char* name) {
  for (const Known& known : levels)
    if (known.available && !strcmp(known.level->name, name)) {
      chosen = known.level;
      return 1;
    }
  return 0;
}

// Weights are read from end to end for every sentence or token, and faster where few pages hold them.
EXPORT void dragoman_want_large_pages(int8_t* memory, int64_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr uintptr_t LARGE = 1 << 21;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(memory) + LARGE - 1) / LARGE * LARGE;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + bytes) / LARGE * LARGE;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  (void)memory, (void)bytes;
#endif
}

// weight (out, in) -> packed ((out up to 16) * (in up to 4)), and 128 times the sum of each row. With
// `ids` the rows are those of the weight that they name.
EXPORT void dragoman_pack(const int8_t* weight, const int64_t* ids, int64_t out, int64_t in,
                          int8_t* packed, int32_t* sums) {
  const int64_t rows = (out + 15) / 16 * 16, columns = (in + 3) / 4 * 4;
  dragoman_want_large_pages(packed, rows * columns);
  if (rows != out || columns != in) memset(packed, 0, rows * columns);
  for (int64_t o = 0; o < out; ++o) {
    const int8_t* row = weight + (ids ? ids[o] : o) * in;
    int8_t* place = packed + packed_place(o, out, columns) + o % 16 * 4;
    const int64_t step = blocks_beside(o, out) * LINE;
    for (int64_t i = 0; i < in; i += 4, place += step)
      memcpy(place, row + i, i + 4 <= in ? 4 : in - i);
    int32_t sum = 0;
    for (int64_t i = 0; i < in; ++i) sum += row[i];
    sums[o] = 128 * sum;
  }
}
