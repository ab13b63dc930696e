// A Transformer's layers in 8-bit integers, for one level of vector instructions: int8_avx512.cpp,
// int8_avx2.cpp and int8_plain.cpp include this file, and LEVEL is the namespace.
//
// Every number of a sentence is computed in an order that depends on nothing but its own sentence
// and beam, so that neither the batch nor the number of threads changes an output.

namespace LEVEL {

constexpr int LANES = 16;   // outputs of a block, and partial sums of a float reduction
constexpr int GROUP = 4;    // columns that one instruction multiplies

// How activations become bytes: signed ones, or unsigned ones around 128, by which each sum is larger
// by 128 times the sum of its weights.
#if defined(LEVEL_NEON) || defined(LEVEL_AVX2)
constexpr bool SIGNED = true;
#else
constexpr bool SIGNED = false;
#endif
constexpr int MIDDLE = SIGNED ? 0 : 128;  // zero, as such a byte

// The loops over a tile's registers must vanish, or the sums would live in memory.
#define UNROLL _Pragma("GCC unroll 16")

// A vector of floats, and the same wherever it lies. A compiler makes as many registers of it as the
// level needs.
typedef float Lanes __attribute__((vector_size(64)));
typedef float LooseLanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t IntLanes __attribute__((vector_size(64)));
typedef uint8_t ByteLanes __attribute__((vector_size(16)));

// Blocks of weights follow each other in memory. Few rows wait for it: asking this many bytes ahead,
// also across pages, made one row 1.3 times as fast. Many rows ask for the next blocks instead, a
// line at a time, while they work on these.
constexpr int AHEAD = 2048;
constexpr int LINE = 64;


template <int BLOCKS, bool ALONE>
static inline void fetch(const int8_t* w, size_t block, int k, const int8_t* next) {
  if (ALONE) {
    UNROLL for (int b = 0; b < BLOCKS; ++b) __builtin_prefetch(w + b * block + k * LANES + AHEAD);
  } else {
    __builtin_prefetch(next + k * LANES);
  }
}

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

// --- float arithmetic ---------------------------------------------------------------------------

static float sum_of(const float* lanes) {
  float halves[8], quarters[4];
  for (int i = 0; i < 8; ++i) halves[i] = lanes[i] + lanes[i + 8];
  for (int i = 0; i < 4; ++i) quarters[i] = halves[i] + halves[i + 4];
  return (quarters[0] + quarters[2]) + (quarters[1] + quarters[3]);
}

// The largest of all but what is not a number.
static inline float largest_of(const float* x, int count) {
  float lanes[LANES], halves[8], quarters[4];
  for (int j = 0; j < LANES; ++j) lanes[j] = -INFINITY;
  int i = 0;
  for (; i + LANES <= count; i += LANES)
    for (int j = 0; j < LANES; ++j) lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
  for (int j = 0; i < count; ++i, ++j) lanes[j] = x[i] > lanes[j] ? x[i] : lanes[j];
  for (int j = 0; j < 8; ++j) halves[j] = lanes[j] > lanes[j + 8] ? lanes[j] : lanes[j + 8];
  for (int j = 0; j < 4; ++j) quarters[j] = halves[j] > halves[j + 4] ? halves[j] : halves[j + 4];
  const float left = quarters[0] > quarters[2] ? quarters[0] : quarters[2];
  const float right = quarters[1] > quarters[3] ? quarters[1] : quarters[3];
  return left > right ? left : right;
}

// e^x to 2 units in the last place, 0 below -87; a compiler turns a loop of it into vectors.
static inline float power(float x) {
  const float below = x < -87.0f ? 0.0f : 1.0f;
  x = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
  const float whole = (x * 1.44269504f + 12582912.0f) - 12582912.0f;  // rounded
  const float rest = (x - whole * 0.693145752f) - whole * 1.42860677e-6f;
  float y = 1.9875691e-4f;
  y = y * rest + 1.3981999e-3f;
  y = y * rest + 8.3334519e-3f;
  y = y * rest + 4.1665796e-2f;
  y = y * rest + 1.6666665e-1f;
  y = y * rest + 5.0000001e-1f;
  y = y * rest * rest + rest + 1.0f;
  const int32_t shift = static_cast<int32_t>(whole) << 23;
  int32_t bits;
  memcpy(&bits, &y, 4);
  bits += shift;
  memcpy(&y, &bits, 4);
  return y * below;
}

// Of `count` scores, behind which there is space up to a whole vector.
static void softmax(float* scores, int count) {
  const int end = static_cast<int>(rounded(count, LANES));
  for (int i = count; i < end; ++i) scores[i] = -INFINITY;
  const float most = largest_of(scores, end);
  float sums[LANES] = {};
  for (int i = 0; i < end; i += LANES)
    for (int j = 0; j < LANES; ++j) {
      scores[i + j] = power(scores[i + j] - most);
      sums[j] += scores[i + j];
    }
  const float factor = 1.0f / sum_of(sums);
  for (int i = 0; i < end; ++i) scores[i] *= factor;
}

static void normalise(const Norm& norm, const float* x, int width, float* y) {
  if (norm.kind == 0) {
    if (x != y) memcpy(y, x, width * sizeof(float));
    return;
  }
  float sums[LANES] = {};
  float mean = 0.0f;
  int i;
  if (norm.kind == 1) {
    for (i = 0; i + LANES <= width; i += LANES)
      for (int j = 0; j < LANES; ++j) sums[j] += x[i + j];
    for (int j = 0; i < width; ++i, ++j) sums[j] += x[i];
    mean = sum_of(sums) / width;
    for (float& one : sums) one = 0.0f;
  }
  for (i = 0; i + LANES <= width; i += LANES)
    for (int j = 0; j < LANES; ++j) sums[j] += (x[i + j] - mean) * (x[i + j] - mean);
  for (int j = 0; i < width; ++i, ++j) sums[j] += (x[i] - mean) * (x[i] - mean);
  const float factor = 1.0f / sqrtf(sum_of(sums) / width + norm.epsilon);
  if (norm.bias)
    for (i = 0; i < width; ++i) y[i] = (x[i] - mean) * factor * norm.gain[i] + norm.bias[i];
  else
    for (i = 0; i < width; ++i) y[i] = (x[i] - mean) * factor * norm.gain[i];
}

static void activate(int activation, float* x, size_t count) {
  size_t i;
  switch (activation) {
    case RELU:
      for (i = 0; i < count; ++i) x[i] = x[i] > 0.0f ? x[i] : 0.0f;
      return;
    case SILU:
      for (i = 0; i < count; ++i) x[i] = x[i] / (1.0f + power(-x[i]));
      return;
    case GELU_TANH:  // tanh(z) is 1 - 2 / (e^2z + 1)
      for (i = 0; i < count; ++i) {
        const float z = 0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
        x[i] = x[i] * (1.0f - 1.0f / (power(2.0f * z) + 1.0f));
      }
      return;
    default:
      for (i = 0; i < count; ++i) x[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
  }
}

// --- products of bytes ----------------------------------------------------------------------------

// Rows of floats as bytes, each row with the scale that undoes it.
struct Bytes {
  uint8_t* values;  // (rows, columns), signed or not; the columns a multiple of GROUP
  float* scales;    // (rows)
  int columns;
};

static void quantise(const float* x, int count, uint8_t* bytes, float* scale) {
  Lanes most_of = {};
  int i = 0;
  for (; i + LANES <= count; i += LANES) {
    const Lanes own = *reinterpret_cast<const LooseLanes*>(x + i);
    const Lanes size = own < 0.0f ? -own : own;
    most_of = size > most_of ? size : most_of;
  }
  float most = 0.0f;
  for (int j = 0; j < LANES; ++j) most = most_of[j] > most ? most_of[j] : most;
  for (; i < count; ++i) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
  *scale = most / 127.0f;
  const float factor = most > 0.0f ? 127.0f / most : 0.0f;
  // Above zero, and a half more, by which cutting off the fraction is rounding.
  constexpr float above = 128.5f;
  constexpr int32_t back = 128 - MIDDLE;
  for (i = 0; i + LANES <= count; i += LANES) {
    const Lanes moved = *reinterpret_cast<const LooseLanes*>(x + i) * factor + above;
    const IntLanes whole = __builtin_convertvector(moved, IntLanes) - back;
    const ByteLanes small = __builtin_convertvector(whole, ByteLanes);
    memcpy(bytes + i, &small, sizeof small);
  }
  for (; i < count; ++i)
    bytes[i] = static_cast<uint8_t>(static_cast<int32_t>(x[i] * factor + above) - back);
  for (const int end = rounded(count, GROUP); i < end; ++i) bytes[i] = MIDDLE;
}

// ROWS rows by BLOCKS blocks of outputs, exactly; `sums` is (ROWS, BLOCKS * LANES). `next` is what
// to fetch meanwhile, or null where only these rows meet these weights.
#if defined(LEVEL_AVX512)

template <int ROWS, int BLOCKS, bool ALONE>
static inline void tile(const uint8_t* a, int columns, const int8_t* w, const int8_t* next,
                        int32_t* sums) {
  __m512i total[ROWS][BLOCKS];
  UNROLL for (int r = 0; r < ROWS; ++r)
    UNROLL for (int b = 0; b < BLOCKS; ++b) total[r][b] = _mm512_setzero_si512();
  const size_t block = static_cast<size_t>(columns) * LANES;
  for (int k = 0; k < columns; k += GROUP) {
    fetch<BLOCKS, ALONE>(w, block, k, next);
    __m512i weights[BLOCKS];
    UNROLL for (int b = 0; b < BLOCKS; ++b) weights[b] = _mm512_loadu_si512(w + b * block + k * LANES);
    UNROLL for (int r = 0; r < ROWS; ++r) {
      int32_t four;
      memcpy(&four, a + static_cast<size_t>(r) * columns + k, 4);
      const __m512i row = _mm512_set1_epi32(four);
      UNROLL for (int b = 0; b < BLOCKS; ++b)
        total[r][b] = _mm512_dpbusd_epi32(total[r][b], row, weights[b]);
    }
  }
  UNROLL for (int r = 0; r < ROWS; ++r)
    UNROLL for (int b = 0; b < BLOCKS; ++b)
      _mm512_storeu_si512(sums + (r * BLOCKS + b) * LANES, total[r][b]);
}
constexpr int MOST_ROWS = 6, MOST_BLOCKS = 4;

#elif defined(LEVEL_AVX2)

// The product of a pair of bytes wants one side without signs, so the sign of a weight goes over to
// the activation. Neither is below -127 and above 128 at once: a sum of two fits into 16 bits.
template <int ROWS, int BLOCKS, bool ALONE>
static inline void tile(const uint8_t* a, int columns, const int8_t* w, const int8_t* next,
                        int32_t* sums) {
  static_assert(BLOCKS == 1, "one block fills the registers");
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i total[ROWS][2];
  UNROLL for (int r = 0; r < ROWS; ++r)
    UNROLL for (int half = 0; half < 2; ++half) total[r][half] = _mm256_setzero_si256();
  for (int k = 0; k < columns; k += GROUP) {
    fetch<BLOCKS, ALONE>(w, 0, k, next);
    __m256i weights[2], sizes[2];
    UNROLL for (int half = 0; half < 2; ++half) {
      weights[half] =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + k * LANES + half * 32));
      sizes[half] = _mm256_abs_epi8(weights[half]);
    }
    UNROLL for (int r = 0; r < ROWS; ++r) {
      int32_t four;
      memcpy(&four, a + static_cast<size_t>(r) * columns + k, 4);
      const __m256i row = _mm256_set1_epi32(four);
      UNROLL for (int half = 0; half < 2; ++half) {
        const __m256i signs_moved = _mm256_sign_epi8(row, weights[half]);
        const __m256i pairs = _mm256_maddubs_epi16(sizes[half], signs_moved);
        total[r][half] = _mm256_add_epi32(total[r][half], _mm256_madd_epi16(pairs, ones));
      }
    }
  }
  UNROLL for (int r = 0; r < ROWS; ++r)
    UNROLL for (int half = 0; half < 2; ++half)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + r * LANES + half * 8), total[r][half]);
}
constexpr int MOST_ROWS = 6, MOST_BLOCKS = 1;

#elif defined(LEVEL_NEON)

template <int ROWS, int BLOCKS, bool ALONE>
static inline void tile(const uint8_t* a, int columns, const int8_t* w, const int8_t*,
                        int32_t* sums) {
  static_assert(BLOCKS == 1, "one block fills the registers");
  int32x4_t total[ROWS][4];
  UNROLL for (int r = 0; r < ROWS; ++r)
    UNROLL for (int q = 0; q < 4; ++q) total[r][q] = vdupq_n_s32(0);
  for (int k = 0; k < columns; k += GROUP) {
    int8x16_t weights[4];
    UNROLL for (int q = 0; q < 4; ++q) weights[q] = vld1q_s8(w + k * LANES + q * 16);
    UNROLL for (int r = 0; r < ROWS; ++r) {
      uint32_t four;
      memcpy(&four, a + static_cast<size_t>(r) * columns + k, 4);
      const int8x16_t row = vreinterpretq_s8_u32(vdupq_n_u32(four));
      UNROLL for (int q = 0; q < 4; ++q) total[r][q] = vdotq_s32(total[r][q], weights[q], row);
    }
  }
  UNROLL for (int r = 0; r < ROWS; ++r)
    UNROLL for (int q = 0; q < 4; ++q) vst1q_s32(sums + r * LANES + q * 4, total[r][q]);
}
constexpr int MOST_ROWS = 4, MOST_BLOCKS = 1;

#else

template <int ROWS, int BLOCKS, bool ALONE>
static inline void tile(const uint8_t* a, int columns, const int8_t* w, const int8_t*,
                        int32_t* sums) {
  for (int r = 0; r < ROWS; ++r) {
    int32_t total[LANES] = {};
    for (int k = 0; k < columns; k += GROUP)
      for (int o = 0; o < LANES; ++o)
        for (int g = 0; g < GROUP; ++g)
          total[o] += a[static_cast<size_t>(r) * columns + k + g] * w[k * LANES + o * GROUP + g];
    memcpy(sums + r * LANES, total, sizeof total);
  }
}
constexpr int MOST_ROWS = 1, MOST_BLOCKS = 1;

#endif

template <int ROWS, int BLOCKS>
static inline void finish(const Matrix& matrix, const Bytes& a, int rows, int row, int first,
                          float* y, size_t stride) {
  int32_t sums[ROWS * BLOCKS * LANES];
  const size_t block = static_cast<size_t>(a.columns) * LANES;
  const uint8_t* own = a.values + static_cast<size_t>(row) * a.columns;
  const int8_t* weights = matrix.packed + first / LANES * block;
  if (ROWS == rows) {
    tile<ROWS, BLOCKS, true>(own, a.columns, weights, nullptr, sums);
  } else {
    // Each tile fetches its part of the next blocks, until the whole of them is asked for.
    const size_t part = static_cast<size_t>(row / ROWS) * (a.columns / GROUP) * LINE;
    const int8_t* next = part < BLOCKS * block ? weights + BLOCKS * block + part : weights;
    tile<ROWS, BLOCKS, false>(own, a.columns, weights, next, sums);
  }
  const int count = matrix.out - first < BLOCKS * LANES ? matrix.out - first : BLOCKS * LANES;
  for (int r = 0; r < ROWS; ++r) {
    const float scale = a.scales[row + r];
    const int32_t* of_row = sums + r * BLOCKS * LANES;
    float* out = y + (row + r) * stride + first;
    for (int o = 0; o < count; ++o) {
      const int32_t sum = SIGNED ? of_row[o] : of_row[o] - matrix.sums[first + o];
      const float bias = matrix.bias ? matrix.bias[first + o] : 0.0f;
      out[o] = sum * (scale * matrix.scale[first + o]) + bias;
    }
  }
}

template <int BLOCKS>
static inline void column_of_tiles(const Matrix& matrix, const Bytes& a, int rows, int first,
                                   float* y, size_t stride) {
  int row = 0;
  for (; row + MOST_ROWS <= rows; row += MOST_ROWS)
    finish<MOST_ROWS, BLOCKS>(matrix, a, rows, row, first, y, stride);
  if (MOST_ROWS > 4 && row + 4 <= rows) {
    finish<MOST_ROWS < 4 ? 1 : 4, BLOCKS>(matrix, a, rows, row, first, y, stride);
    row += 4;
  }
  for (; row + 2 <= rows && MOST_ROWS >= 2; row += 2)
    finish<MOST_ROWS < 2 ? 1 : 2, BLOCKS>(matrix, a, rows, row, first, y, stride);
  for (; row < rows; ++row) finish<1, BLOCKS>(matrix, a, rows, row, first, y, stride);
}

// Outputs from `first`, where a block begins, up to `end`: y (rows, out) = a W^T + b, a row of y
// every `stride` numbers. The rows that a block of W meets follow each other, so that it is read
// from memory once.
static void multiply(const Matrix& matrix, const Bytes& a, int rows, float* y, size_t stride,
                     int first, int end) {
  const int wide = MOST_BLOCKS * LANES;
  for (; first + wide <= static_cast<int>(rounded(end, LANES)); first += wide)
    column_of_tiles<MOST_BLOCKS>(matrix, a, rows, first, y, stride);
  for (; first < end; first += LANES) column_of_tiles<1>(matrix, a, rows, first, y, stride);
}

// --- layers ---------------------------------------------------------------------------------------

// What the sub-layers of one call share.
// Between the rows of queries, keys and values: where they lay a power of two apart, they would all
// want the same few places of a cache.
constexpr int APART = LANES;

struct Work {
  const Stack& stack;
  int rows;
  float* x;       // (rows, D), what flows through
  float* normed;  // (rows, D)
  float* wide;    // (rows, widest output of a matrix and APART)
  float* gate;    // the same again, where there is a gate
  float* heads;   // (rows, H * E)
  Bytes bytes;
};

static int widest(const Stack& stack) {
  int most = stack.width;
  for (int i = 0; i < stack.n_layers; ++i) {
    const Layer& layer = stack.layers[i];
    const int outs[] = {layer.own.out, layer.inner.out, layer.own_out.in};
    for (int out : outs) most = out > most ? out : most;
  }
  return most;
}

// Bytes that the work on so many rows needs.
static size_t room(const Stack& stack, size_t rows) {
  const size_t row = 5 * sizeof(float) * (widest(stack) + APART) + rounded(widest(stack), GROUP) + 64;
  return rows * row + 8 * 64;
}

static Work begin_work(const Stack& stack, int rows, Arena& arena) {
  const size_t wide = widest(stack);
  Work work{stack, rows, arena.take<float>(rows * static_cast<size_t>(stack.width)),
            arena.take<float>(rows * static_cast<size_t>(stack.width)),
            arena.take<float>(rows * (wide + APART)), arena.take<float>(rows * wide),
            arena.take<float>(rows * wide), {}};
  work.bytes.values = arena.take<uint8_t>(rows * rounded(wide, GROUP));
  work.bytes.scales = arena.take<float>(rows);
  return work;
}

// y = x W^T + b, a row of y every `out` numbers and `apart` more.
static void project(Work& work, const Matrix& matrix, const float* x, float* y, int apart = 0) {
  work.bytes.columns = static_cast<int>(rounded(matrix.in, GROUP));
  for (int row = 0; row < work.rows; ++row)
    quantise(x + row * static_cast<size_t>(matrix.in), matrix.in,
             work.bytes.values + static_cast<size_t>(row) * work.bytes.columns,
             work.bytes.scales + row);
  multiply(matrix, work.bytes, work.rows, y, matrix.out + apart, 0, matrix.out);
}

// What a sub-layer reads: the norm of x, where the norm comes first.
static const float* input_of(Work& work, const Norm& norm) {
  if (!work.stack.norm_first) return work.x;
  const size_t width = work.stack.width;
  for (int row = 0; row < work.rows; ++row)
    normalise(norm, work.x + row * width, static_cast<int>(width), work.normed + row * width);
  return work.normed;
}

// Adds what a sub-layer wrote, and norms the sum, where the norm comes last.
static void add(Work& work, const Norm& norm, const float* y) {
  const size_t width = work.stack.width;
  for (size_t i = 0; i < work.rows * width; ++i) work.x[i] += y[i];
  if (work.stack.norm_first) return;
  for (int row = 0; row < work.rows; ++row)
    normalise(norm, work.x + row * width, static_cast<int>(width), work.x + row * width);
}

static void feed_forward(Work& work, const Layer& layer) {
  const Stack& stack = work.stack;
  const float* input = input_of(work, layer.after_feedforward);
  project(work, layer.inner, input, work.wide);
  const size_t count = work.rows * static_cast<size_t>(layer.inner.out);
  if (layer.gate.packed) {
    project(work, layer.gate, input, work.gate);
    activate(stack.activation, work.gate, count);
    for (size_t i = 0; i < count; ++i) work.wide[i] *= work.gate[i];
  } else {
    activate(stack.activation, work.wide, count);
  }
  project(work, layer.outer, work.wide, work.normed);
  add(work, layer.after_feedforward, work.normed);
}

static void turn(const float* frequencies, int64_t position, int size, float* head) {
  const int half = size / 2;
  for (int i = 0; i < half; ++i) {
    const float angle = static_cast<float>(position) * frequencies[i];
    const float cosine = cosf(angle), sine = sinf(angle);
    const float left = head[i], right = head[half + i];
    head[i] = left * cosine - right * sine;
    head[half + i] = right * cosine + left * sine;
  }
}

// What one query sees. Row i of the keys is keys + offsets[i], or i * stride without offsets.
struct Keys {
  const float* keys;
  const float* values;
  const int64_t* offsets;
  int64_t stride, count;

  int64_t place(int64_t i) const { return offsets ? offsets[i] : i * stride; }
};

// The sum of each of TOGETHER vectors, by halves as in `sum_of`.
#if defined(LEVEL_AVX512)

constexpr int TOGETHER = 16;

static inline void sums_of(const Lanes* vectors, float* sums) {
  __m512 eight[8], four[4], two[2];
  UNROLL for (int i = 0; i < 8; ++i) {
    const __m512 a = (__m512)vectors[i], b = (__m512)vectors[i + 8];
    eight[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  }
  UNROLL for (int i = 0; i < 4; ++i) {
    const __m512 a = eight[i], b = eight[i + 4];
    four[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  }
  UNROLL for (int i = 0; i < 2; ++i) {
    const __m512 a = four[i], b = four[i + 2];
    two[i] = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
  }
  const __m512 a = two[0], b = two[1];
  const __m512 one =
      _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
  const __m512i order = _mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15);
  _mm512_storeu_ps(sums, _mm512_permutexvar_ps(order, one));
}

#else

constexpr int TOGETHER = 4;

static inline void sums_of(const Lanes* vectors, float* sums) {
  for (int i = 0; i < TOGETHER; ++i)
    sums[i] = sum_of(reinterpret_cast<const float*>(vectors + i));
}

#endif

// q K^T; the scores have space for a whole number of TOGETHER.
static void score(const float* query, const Keys& seen, int size, float* scores) {
  for (int64_t first = 0; first < seen.count; first += TOGETHER) {
    const float* keys[TOGETHER];
    for (int i = 0; i < TOGETHER; ++i) {
      const int64_t own = first + i < seen.count ? first + i : seen.count - 1;
      keys[i] = seen.keys + seen.place(own);
    }
    Lanes sums[TOGETHER] = {};
    int e = 0;
    for (; e + LANES <= size; e += LANES) {
      const Lanes part = *reinterpret_cast<const LooseLanes*>(query + e);
      UNROLL for (int i = 0; i < TOGETHER; ++i)
        sums[i] += part * *reinterpret_cast<const LooseLanes*>(keys[i] + e);
    }
    for (int j = 0; e < size; ++e, ++j)
      for (int i = 0; i < TOGETHER; ++i) sums[i][j] += query[e] * keys[i][e];
    sums_of(sums, scores + first);
  }
}

// PARTS vectors of the weighted sum of the values.
template <int PARTS>
static inline void mix(const float* weights, const Keys& seen, int first, float* out) {
  Lanes total[PARTS] = {};
  for (int64_t i = 0; i < seen.count; ++i) {
    const LooseLanes* value =
        reinterpret_cast<const LooseLanes*>(seen.values + seen.place(i) + first);
    UNROLL for (int part = 0; part < PARTS; ++part) total[part] += weights[i] * value[part];
  }
  memcpy(out + first, total, sizeof total);
}

// softmax(q K^T / sqrt(E)) V for one query.
static void attend(const float* query, const Keys& seen, int size, const float* bias,
                   float* scores, float* out) {
  const float factor = 1.0f / sqrtf(static_cast<float>(size));
  score(query, seen, size, scores);
  for (int64_t i = 0; i < seen.count; ++i)
    scores[i] = scores[i] * factor + (bias ? bias[i] : 0.0f);
  softmax(scores, static_cast<int>(seen.count));
  int e = 0;
  for (; e + 4 * LANES <= size; e += 4 * LANES) mix<4>(scores, seen, e, out);
  for (; e + LANES <= size; e += LANES) mix<1>(scores, seen, e, out);
  for (; e < size; ++e) {
    out[e] = 0.0f;
    for (int64_t i = 0; i < seen.count; ++i)
      out[e] += scores[i] * seen.values[seen.place(i) + e];
  }
}

// --- an encoder -----------------------------------------------------------------------------------

// Attention of a sentence to itself, head by head; `all` is (count, (H + 2 kv_heads) * E), its rows
// APART.
static void attend_to_own(const Stack& stack, float* all, int count, const float* bias,
                          int64_t span, float* scores, float* heads) {
  const int size = stack.size;
  const int64_t row = (stack.heads + 2 * stack.kv_heads) * static_cast<int64_t>(size) + APART;
  const int64_t width = stack.heads * static_cast<int64_t>(size);
  if (stack.frequencies)
    for (int t = 0; t < count; ++t)
      for (int h = 0; h < stack.heads + stack.kv_heads; ++h)
        turn(stack.frequencies, t, size, all + t * row + h * size);
  for (int h = 0; h < stack.heads; ++h) {
    const int group = h / (stack.heads / stack.kv_heads);
    const Keys seen{all + width + group * size, all + width + (stack.kv_heads + group) * size,
                    nullptr, row, count};
    for (int t = 0; t < count; ++t) {
      const float* own = bias ? bias + (h * span + t) * span : nullptr;
      attend(all + t * row + h * size, seen, size, own, scores, heads + t * width + h * size);
    }
  }
}

static int64_t length_of(const Sentences& given, int64_t sentence) {
  return given.lengths ? given.lengths[sentence] : given.width;
}

static int64_t rows_of(const Sentences& given, int64_t first, int64_t last) {
  int64_t rows = 0;
  for (int64_t sentence = first; sentence < last; ++sentence) rows += length_of(given, sentence);
  return rows;
}

size_t encode_room(const Stack* stack, const Sentences* given, int64_t first, int64_t last) {
  return room(*stack, rows_of(*given, first, last)) + given->width * sizeof(float) + 64;
}

// The sentences from `first` up to `last` through all layers, in place. Their products are computed
// together, their attention is their own.
void encode(const Stack* stack, const Sentences* given, int64_t first, int64_t last, char* memory) {
  const int64_t width = stack->width, row = given->width * width;
  Arena arena{memory, 0};
  Work work = begin_work(*stack, static_cast<int>(rows_of(*given, first, last)), arena);
  float* scores = arena.take<float>(given->width);
  float* x = work.x;
  for (int64_t sentence = first; sentence < last; ++sentence) {
    const int64_t count = length_of(*given, sentence);
    memcpy(x, given->x + sentence * row, count * width * sizeof(float));
    x += count * width;
  }
  for (int i = 0; i < stack->n_layers; ++i) {
    const Layer& layer = stack->layers[i];
    project(work, layer.own, input_of(work, layer.after_own), work.wide, APART);
    float* all = work.wide;
    float* heads = work.heads;
    for (int64_t sentence = first; sentence < last; ++sentence) {
      const int count = static_cast<int>(length_of(*given, sentence));
      attend_to_own(*stack, all, count, given->bias, given->width, scores, heads);
      all += count * static_cast<int64_t>(layer.own.out + APART);
      heads += count * static_cast<int64_t>(layer.own_out.in);
    }
    project(work, layer.own_out, work.heads, work.normed);
    add(work, layer.after_own, work.normed);
    feed_forward(work, layer);
  }
  x = work.x;
  for (int64_t sentence = first; sentence < last; ++sentence)
    for (int64_t t = 0; t < length_of(*given, sentence); ++t, x += width)
      normalise(stack->norm, x, stack->width, given->x + sentence * row + t * width);
}

// --- a step of a decoder --------------------------------------------------------------------------

static void embed(const Stack& stack, int64_t token, int64_t position, float* x) {
  const int8_t* row = stack.embeddings + token * stack.width;
  const float scale = stack.embedding_scale[token];
  for (int i = 0; i < stack.width; ++i) x[i] = row[i] * scale * stack.embedding_factor;
  if (stack.positions) {
    const float* own = stack.positions + position * stack.width;
    for (int i = 0; i < stack.width; ++i) x[i] += own[i];
  }
  normalise(stack.embedding_norm, x, stack.width, x);
}

// Which beam each beam continues at each position, as offsets of its keys in the cache of a head. At
// the newest position each continues itself.
static void find_ancestors(const Past& past, int64_t sentence, int size, int64_t* offsets) {
  const int64_t beams = past.beams;
  for (int64_t k = 0; k < beams; ++k) {
    int64_t* own = offsets + k * (past.position + 1);
    float* mask =
        past.ancestors
            ? past.ancestors + (sentence * beams + k) * past.ancestor_capacity * beams
            : nullptr;
    for (int64_t p = 0; p < past.position; ++p) {
      int64_t beam = 0;
      if (mask)
        while (beam + 1 < beams && mask[p * beams + beam] != 0.0f) ++beam;
      own[p] = (p * beams + beam) * size;
    }
    own[past.position] = (past.position * beams + k) * size;
    if (mask)
      for (int64_t beam = 0; beam < beams; ++beam)
        mask[past.position * beams + beam] = beam == k ? 0.0f : -INFINITY;
  }
}

static void store(const Stack& stack, const Past& past, int64_t sentence, int64_t beam,
                  const float* newest, float* cache) {
  const int64_t size = stack.size, heads = stack.heads;
  const int64_t of_head = past.capacity * past.beams * size;
  const int64_t of_side = past.rows * heads * of_head;
  for (int64_t side = 0; side < 2; ++side)
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t group = h / (heads / stack.kv_heads);
      float* place = cache + side * of_side + (sentence * heads + h) * of_head +
                     (past.position * past.beams + beam) * size;
      memcpy(place, newest + (side * stack.kv_heads + group) * size, size * sizeof(float));
    }
}

static void step_own(Work& work, const Past& past, const Layer& layer, const int64_t* sentences,
                     float* cache, const int64_t* offsets, float* scores) {
  const Stack& stack = work.stack;
  const int64_t size = stack.size, heads = stack.heads;
  const int64_t row = (heads + 2 * stack.kv_heads) * size;
  const int64_t of_head = past.capacity * past.beams * size;
  const int64_t of_side = past.rows * heads * of_head;
  project(work, layer.own, input_of(work, layer.after_own), work.wide);
  for (int r = 0; r < work.rows; ++r) {
    float* all = work.wide + r * row;
    if (stack.frequencies)
      for (int h = 0; h < heads + stack.kv_heads; ++h)
        turn(stack.frequencies, past.position, static_cast<int>(size), all + h * size);
    store(stack, past, sentences[r / past.beams], r % past.beams, all + heads * size, cache);
  }
  for (int start = 0; start < work.rows; start += past.beams)
    for (int64_t h = 0; h < heads; ++h) {
      const float* keys = cache + (sentences[start / past.beams] * heads + h) * of_head;
      const float* bias = past.bias ? past.bias + h * (past.position + 1) : nullptr;
      for (int64_t r = start; r < start + past.beams; ++r) {
        const int64_t* own = offsets + r * (past.position + 1);
        const Keys seen{keys, keys + of_side, own, 0, past.position + 1};
        attend(work.wide + r * row + h * size, seen, static_cast<int>(size), bias, scores,
               work.heads + (r * heads + h) * size);
      }
    }
  project(work, layer.own_out, work.heads, work.normed);
  add(work, layer.after_own, work.normed);
}

static void step_across(Work& work, const Past& past, int number, const int64_t* sentences,
                        float* scores) {
  const Stack& stack = work.stack;
  const Layer& layer = stack.layers[number];
  const int64_t size = stack.size, heads = stack.heads;
  project(work, layer.cross_query, input_of(work, layer.after_cross), work.wide);
  for (int start = 0; start < work.rows; start += past.beams) {
    const int64_t sentence = sentences[start / past.beams];
    const int64_t count = past.lengths ? past.lengths[sentence] : past.source;
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t head = (sentence * heads + h) * past.source * size;
      const Keys seen{past.keys[number] + head, past.values[number] + head, nullptr, size, count};
      for (int64_t beam = 0; beam < past.beams; ++beam) {
        const int64_t place = ((start + beam) * heads + h) * size;
        attend(work.wide + place, seen, static_cast<int>(size), nullptr, scores,
               work.heads + place);
        if (past.records) {
          float* record = past.records[number] +
                          ((sentence * heads + h) * past.beams + beam) * past.source;
          memcpy(record, scores, count * sizeof(float));
          memset(record + count, 0, (past.source - count) * sizeof(float));
        }
      }
    }
  }
  project(work, layer.cross_out, work.heads, work.normed);
  add(work, layer.after_cross, work.normed);
}

static int64_t longest(const Past& past) {
  const int64_t seen = past.position + 1;
  return seen > past.source ? seen : past.source;
}

size_t step_room(const Stack* stack, const Past* past, int64_t sentences) {
  const size_t rows = sentences * past->beams;
  return room(*stack, rows) + (sentences + rows * (past->position + 1)) * sizeof(int64_t) +
         longest(*past) * sizeof(float) + 3 * 64;
}

// Of the sentences from `first` up to `last` those that are not over; returns how many.
static int64_t find_running(const bool* over, int64_t first, int64_t last, int64_t* sentences) {
  int64_t count = 0;
  for (int64_t sentence = first; sentence < last; ++sentence)
    if (!over || !over[sentence]) sentences[count++] = sentence;
  return count;
}

// The sentences from `first` up to `last` that are not over: tokens (B, K) -> features (B, K, D).
void step(const Stack* stack, const Past* past, const bool* over, const int64_t* tokens,
          int64_t first, int64_t last, float* features, char* memory) {
  const int64_t beams = past->beams, width = stack->width;
  const int64_t seen = past->position + 1;
  Arena arena{memory, 0};
  int64_t* sentences = arena.take<int64_t>(last - first);
  const int64_t running = find_running(over, first, last, sentences);
  const int rows = static_cast<int>(running * beams);
  Work work = begin_work(*stack, rows, arena);
  int64_t* offsets = arena.take<int64_t>(rows * seen);
  float* scores = arena.take<float>(longest(*past));
  for (int r = 0; r < rows; ++r) {
    const int64_t token = tokens[sentences[r / beams] * beams + r % beams];
    embed(*stack, token, past->position, work.x + r * width);
  }
  for (int64_t i = 0; i < running; ++i)
    find_ancestors(*past, sentences[i], stack->size, offsets + i * beams * seen);
  for (int i = 0; i < stack->n_layers; ++i) {
    const Layer& layer = stack->layers[i];
    step_own(work, *past, layer, sentences, past->caches[i], offsets, scores);
    if (stack->across) step_across(work, *past, i, sentences, scores);
    feed_forward(work, layer);
  }
  for (int r = 0; r < rows; ++r)
    normalise(stack->norm, work.x + r * width, static_cast<int>(width),
              features + (sentences[r / beams] * beams + r % beams) * width);
}

// --- single products ------------------------------------------------------------------------------

size_t linear_room(const Matrix* matrix, int64_t rows) {
  return rows * (rounded(matrix->in, GROUP) + sizeof(float)) + 2 * 64;
}

static Bytes bytes_at(const Matrix& matrix, int64_t rows, char* memory) {
  Arena arena{memory, 0};
  const size_t columns = rounded(matrix.in, GROUP);
  return {arena.take<uint8_t>(rows * columns), arena.take<float>(rows),
          static_cast<int>(columns)};
}

// Some of x (rows, in) as bytes.
static void quantise_some(const float* x, int count, int64_t first, int64_t last, Bytes& bytes) {
  for (int64_t row = first; row < last; ++row, x += count)
    quantise(x, count, bytes.values + row * bytes.columns, bytes.scales + row);
}

// x (rows, in) as bytes, into the memory from which `linear` then reads them.
void quantise_rows(const Matrix* matrix, const float* x, int64_t rows, char* memory) {
  Bytes bytes = bytes_at(*matrix, rows, memory);
  quantise_some(x, matrix->in, 0, rows, bytes);
}

// Blocks of outputs from `first` up to `last`: y (rows, out).
void linear(const Matrix* matrix, int64_t rows, char* memory, int64_t first, int64_t last,
            float* y) {
  const Bytes bytes = bytes_at(*matrix, rows, memory);
  const int64_t end = last * LANES < matrix->out ? last * LANES : matrix->out;
  multiply(*matrix, bytes, static_cast<int>(rows), y, matrix->out, static_cast<int>(first * LANES),
           static_cast<int>(end));
}

// --- the choice of the best -----------------------------------------------------------------------

constexpr int BLOCK = 64;  // a vocabulary is looked through in blocks of this size
constexpr int MOST_BEAMS = 64;

// The `count` greatest of a row, best first; of equal ones the first. Returns the log of the sum of
// the exponentials of all.
static float best_of_row(const float* logits, int64_t size, int count, float* values,
                         int64_t* tokens) {
  for (int i = 0; i < count; ++i) {
    values[i] = -INFINITY;
    tokens[i] = i;
  }
  for (int64_t first = 0; first < size; first += BLOCK) {
    const int64_t end = first + BLOCK < size ? first + BLOCK : size;
    if (!(largest_of(logits + first, static_cast<int>(end - first)) > values[count - 1])) continue;
    for (int64_t token = first; token < end; ++token) {
      const float value = logits[token];
      if (!(value > values[count - 1])) continue;
      int place = count - 1;
      for (; place > 0 && value > values[place - 1]; --place) {
        values[place] = values[place - 1];
        tokens[place] = tokens[place - 1];
      }
      values[place] = value;
      tokens[place] = token;
    }
  }
  const float most = values[0];
  float sums[LANES] = {};
  int64_t i = 0;
  for (; i + LANES <= size; i += LANES)
    for (int j = 0; j < LANES; ++j) sums[j] += power(logits[i + j] - most);
  for (int j = 0; i < size; ++i, ++j) sums[j] += power(logits[i] - most);
  return most + logf(sum_of(sums));
}

// What decoding/search.py calls a sentence's standing, brought up to date by the choice.
static void take(const Standing& standing, const Choice& choice, int64_t row, float penalty) {
  const int64_t beams = standing.beams;
  const float limit = powf((5.0f + standing.max_lengths[row]) / 6.0f, standing.alpha);
  float finished = standing.finished[row], alive = -INFINITY;
  for (int64_t k = row * beams; k < (row + 1) * beams; ++k) {
    const bool ended = choice.tokens[k] == standing.end;
    const float score = choice.totals[k] / penalty;
    if (ended && score > finished) finished = score;
    standing.live[k] = ended ? -INFINITY : choice.totals[k];
    if (standing.live[k] > alive) alive = standing.live[k];
  }
  standing.finished[row] = finished;
  const bool hopeless = alive / limit <= finished;
  const bool over = hopeless || standing.max_lengths[row] <= standing.length + 1;
  standing.over[row] = over;
  if (over)
    for (int64_t k = row * beams; k < (row + 1) * beams; ++k) standing.live[k] = -INFINITY;
}

// Which beam each beam continues from now on: the masks of all positions so far follow.
static void reorder(const Past& past, const int64_t* beams, int64_t row, float* old) {
  const int64_t beam_size = past.ancestor_capacity * past.beams;
  const int64_t seen = (past.position + 1) * past.beams;
  float* masks = past.ancestors + row * past.beams * beam_size;
  for (int64_t k = 0; k < past.beams; ++k)
    memcpy(old + k * seen, masks + k * beam_size, seen * sizeof(float));
  for (int64_t k = 0; k < past.beams; ++k)
    memcpy(masks + k * beam_size, old + beams[row * past.beams + k] * seen, seen * sizeof(float));
}

// The K best continuations of one sentence, of logits (K, size). Where only some of the vocabulary
// was looked at, `ids` says which tokens these are.
void choose(const float* logits, int64_t size, const int64_t* ids, const Standing* standing,
            const Choice* choice, int64_t row) {
  const int64_t beams = standing->beams;
  const int count = static_cast<int>(beams < size ? beams : size);
  const float penalty = powf((5.0f + standing->length + 1.0f) / 6.0f, standing->alpha);
  float values[MOST_BEAMS * MOST_BEAMS];
  int64_t tokens[MOST_BEAMS * MOST_BEAMS];
  bool taken[MOST_BEAMS * MOST_BEAMS];
  for (int64_t k = 0; k < beams; ++k) {
    float* own = values + k * count;
    int64_t* own_tokens = tokens + k * count;
    if (standing->live[row * beams + k] == -INFINITY) {
      for (int i = 0; i < count; ++i) {
        own[i] = -INFINITY;
        own_tokens[i] = i;
      }
      continue;
    }
    const float norm = best_of_row(logits + k * size, size, count, own, own_tokens);
    for (int i = 0; i < count; ++i) own[i] -= norm;
  }
  memset(taken, 0, beams * count);
  for (int64_t place = 0; place < beams; ++place) {
    int64_t best = -1;
    float most = -INFINITY;
    for (int64_t i = 0; i < beams * count; ++i) {
      if (taken[i]) continue;
      float total = standing->live[row * beams + i / count] + values[i];
      if (total != total) total = -INFINITY;
      if (best < 0 || total > most) {
        best = i;
        most = total;
      }
    }
    taken[best] = true;
    const int64_t out = row * beams + place;
    choice->log_probs[out] = values[best];
    choice->totals[out] = most;
    choice->tokens[out] = ids ? ids[tokens[best]] : tokens[best];
    choice->beams[out] = best / count;
  }
  take(*standing, *choice, row, penalty);
}

// --- a position of a search -----------------------------------------------------------------------

static const Matrix& output_of(const Turn& turn, int64_t sentence) {
  return turn.ids ? turn.outputs[sentence] : turn.outputs[0];
}

size_t turn_room(const Turn* turn, int64_t first, int64_t last) {
  const Past& past = *turn->past;
  const int64_t rows = (last - first) * past.beams;
  const Matrix& output = output_of(*turn, first);
  const size_t masks = past.beams * (past.position + 1) * past.beams;
  const size_t logits = rows * static_cast<size_t>(output.out);
  return (masks + logits) * sizeof(float) + (last - first) * sizeof(int64_t) +
         linear_room(&output, rows) + 3 * 64;
}

// What is left to do for some sentences behind the step: the logits, where they are not given, the
// choice, and what follows from that. Where sentences have tokens of their own, it is one of them.
void finish_turn(const Turn* turn, int64_t first, int64_t last, const float* logits, char* memory) {
  const Past& past = *turn->past;
  const int64_t beams = past.beams, width = turn->stack->width;
  const Matrix& output = output_of(*turn, first);
  const int64_t of_sentence = beams * output.out;
  Arena arena{memory, 0};
  float* masks = arena.take<float>(beams * (past.position + 1) * beams);
  float* own = nullptr;
  if (!logits) {
    int64_t* sentences = arena.take<int64_t>(last - first);
    const int64_t running = find_running(turn->standing->over, first, last, sentences);
    own = arena.take<float>(running * of_sentence);
    char* rest = memory + arena.used;
    Bytes bytes = bytes_at(output, running * beams, rest);
    for (int64_t i = 0; i < running; ++i)
      quantise_some(turn->features + sentences[i] * beams * width, output.in, i * beams,
                    (i + 1) * beams, bytes);
    linear(&output, running * beams, rest, 0, (output.out + LANES - 1) / LANES, own);
  }
  for (int64_t row = first; row < last; ++row) {
    const int64_t* ids = turn->ids ? turn->ids[row] : nullptr;
    const float* found = own ? own : logits + (row - first) * of_sentence;
    if (own && !turn->standing->over[row]) own += of_sentence;
    choose(found, output.out, ids, turn->standing, turn->choice, row);
    memcpy(turn->tokens + row * beams, turn->choice->tokens + row * beams,
           beams * sizeof(int64_t));
    if (past.ancestors) reorder(past, turn->choice->beams, row, masks);
  }
}

}  // namespace LEVEL
