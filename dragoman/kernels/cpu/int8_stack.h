// What Python hands over: weights that stay, and the past of one search. The fields are those of the
// ctypes structures in kernels/native_structs.py, in the same order.
//
// B sentences, K beams, S source positions, P positions there is space for, D the model's width,
// H heads, E the width of a head.

#pragma once

#include <cstddef>
#include <cstdint>

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

// How the weights of a matrix lie in memory: in blocks of 16 outputs. A line of a block holds 4 columns
// of its outputs. The lines of four blocks take turns, so that a product with all four reads memory
// from end to end; blocks that are left over are alone.
constexpr int LINE = 64;  // bytes
constexpr int BLOCKS_BESIDE = 4;

// How many blocks take turns where this output is.
inline int blocks_beside(int64_t output, int64_t outputs) {
  const int64_t blocks = (outputs + 15) / 16;
  return output / 16 < blocks / BLOCKS_BESIDE * BLOCKS_BESIDE ? BLOCKS_BESIDE : 1;
}

// Where the first line is that holds this output, of so many columns.
inline int64_t packed_place(int64_t output, int64_t outputs, int64_t columns) {
  const int64_t block = output / 16, beside = blocks_beside(output, outputs);
  const int64_t first = block / beside * beside;
  return first * 16 * columns + (block - first) * LINE;
}

// x W^T + b, W in 8-bit integers, each of its rows with a scale.
struct Matrix {
  const int8_t* packed;
  const float* scale;    // (out)
  const float* bias;     // (out), or null
  const int32_t* sums;   // 128 times the sum of each row
  int32_t in, out;
};

struct Norm {
  const float* gain;
  const float* bias;  // null for the root mean square
  float epsilon;
  int32_t kind;  // 0: none, 1: mean and variance, 2: root mean square
};

struct Layer {
  Matrix own, own_out, cross_query, cross_out, inner, gate, outer;
  Norm after_own, after_cross, after_feedforward;
};

struct Stack {
  const Layer* layers;
  const int8_t* embeddings;  // (V, D)
  const float* embedding_scale;  // (V)
  const float* positions;    // (P, D), or null
  const float* frequencies;  // (E / 2) of rotary positions, or null
  Norm embedding_norm, norm;
  float embedding_factor;
  int32_t n_layers, width, heads, kv_heads, size, activation, norm_first, across;
  int32_t vocabulary, most_positions;  // V, and the P of the positions; 0 where there are none
};

// What an encoder takes through its layers, in place.
struct Sentences {
  float* x;                // (B, S, D)
  const int64_t* lengths;  // (B), or null where all are S long
  const float* bias;       // (H, S, S) added to the scores, or null
  int64_t rows, width;     // B and S
};

// The state of a search, and where a step writes what it adds to it.
struct Past {
  float* const* caches;         // for each layer (2, B, H, P, K, E)
  const float* const* keys;     // for each layer (B, H, S, E), or null
  const float* const* values;
  float* const* records;        // for each layer (B, H, K, S) to fill, or null
  float* ancestors;             // (B, K, A, K): 0 where a beam continues that one; null for one beam
  const float* bias;            // (H, position + 1) added to the scores, or null
  const int64_t* lengths;       // (B) of the sources, or null where all are S long
  int64_t rows, beams, position, capacity, ancestor_capacity, source;
};

// Where the sentences of a search stand, brought up to date in place.
struct Standing {
  float* live;      // (B, K) sums of log-probabilities; -inf where nothing lives
  float* finished;  // (B) the best score of an output that has ended
  bool* over;       // (B)
  const int64_t* max_lengths;  // (B) the most tokens of an output, its end counted
  int64_t rows, beams, size, length, end;
  float alpha;
};

// The continuations taken, each (B, K); a turn moves on to the next (B, K) behind them.
struct Choice {
  int64_t* tokens;
  int64_t* beams;
  float* log_probs;
  float* totals;
};

// One position of a search that nothing steers.
struct Turn {
  const Stack* stack;
  Past* past;
  Standing* standing;
  Choice* choice;
  const Matrix* outputs;      // of all tokens; with `ids` one of its own for each sentence
  const int64_t* const* ids;  // for each sentence the tokens that its output is for, or null
  int64_t* tokens;            // (B, K) the newest, then those chosen
  float* features;            // (B, K, D) to write to
  float* logits;              // (K, V) to write to; null with `ids`
  int64_t* running;           // (B) to write to: the sentences that are not over
};

// What a search has chosen at all of its positions.
struct Chosen {
  const int64_t* tokens;       // (T, B, K), like all but the last
  const int64_t* beams;
  const float* log_probs;
  const float* totals;
  const int64_t* max_lengths;  // (B)
  int64_t positions, rows, width, end;  // T, B and K
  double alpha;
};

// The best output of each sentence.
struct Outputs {
  int64_t* tokens;   // (B, T)
  float* log_probs;  // (B, T)
  double* scores;    // (B)
  int64_t* counts;   // (B) how many of its tokens there are; 0 where there is no output
};

enum Activation { RELU, GELU, GELU_TANH, SILU };

// What each level of instructions offers. Functions with a `_room` need that much memory.
struct Level {
  const char* name;
  size_t (*encode_room)(const Stack*, const Sentences*, int64_t first, int64_t last);
  void (*encode)(const Stack*, const Sentences*, int64_t first, int64_t last, char* memory);
  void (*embed)(const Stack*, int64_t token, int64_t position, float* x);
  size_t (*step_room)(const Stack*, const Past*, int64_t sentences);
  void (*step)(const Stack*, const Past*, const int64_t* running, const int64_t* tokens,
               int64_t first, int64_t last, float* features, char* memory);
  size_t (*linear_room)(const Matrix*, int64_t rows);
  void (*quantise_rows)(const Matrix*, const float* x, int64_t rows, char* memory);
  void (*linear)(const Matrix*, int64_t rows, char* memory, int64_t first, int64_t last, float* y);
  void (*choose)(const float* logits, int64_t size, const int64_t* ids, const Standing*,
                 const Choice*, int64_t row);
  size_t (*turn_room)(const Turn*, int64_t first, int64_t last);
  void (*finish_turn)(const Turn*, int64_t first, int64_t last, const float* logits, char* memory);
};
