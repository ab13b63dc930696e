// A Transformer's layers in 8-bit integers, for one level of vector instructions: int8_avx512.cpp,
// int8_avx2.cpp and int8_plain.cpp include this file, and LEVEL is the namespace.
//
// Every number of a sentence is computed in an order that depends on nothing but its own sentence
// and beam, so that neither the batch nor the number of threads changes an output.

namespace LEVEL {

constexpr int LANES = 16;   // outputs of a block, and partial sums of a float reduction
constexpr int GROUP = 4;    // columns that one instruction multiplies

// The loops over a tile's registers must vanish, or the sums would live in memory.
#define UNROLL _Pragma("GCC unroll 16")

// A register of floats, and the same wherever it lies.
#if defined(LEVEL_AVX512)
constexpr int WIDTH = 16;
#elif defined(LEVEL_AVX2)
constexpr int WIDTH = 8;
#else
constexpr int WIDTH = 4;
#endif
typedef float Floats __attribute__((vector_size(4 * WIDTH)));
typedef float LooseFloats __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(4 * WIDTH)));
typedef uint8_t SmallInts __attribute__((vector_size(WIDTH)));

static inline Floats load(const float* x) { return *reinterpret_cast<const LooseFloats*>(x); }

static size_t rounded(size_t count, size_t to) { return (count + to - 1) / to * to; }

// The memory of one call, handed out from its beginning.
struct Arena {
  char* memory;
  size_t used;

  template <typename T>
  T* take(size_t count) {
    T* found = reinterpret_cast<T*>(memory + used);
    used += rounded(count * sizeof(T), 64);
    return found;
  }
};

#include "int8_floats.h"
#include "int8_product.h"
#include "int8_layers.h"
#include "int8_step.h"
#include "int8_choice.h"

#define QUOTED(name) #name
#define NAME_OF(level) QUOTED(level)

// Only addresses, so that nothing is computed with instructions that a CPU may not have.
extern const Level level;
const Level level = {NAME_OF(LEVEL), encode_room, encode,        embed,  step_room, step,
                     linear_room,    quantise_rows, linear,      choose, turn_room, finish_turn};

}  // namespace LEVEL
