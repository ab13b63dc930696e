// Products of bytes: rows of activations by blocks of weights, exactly, and what makes floats of the
// sums. Part of int8_body.h.

// How activations become bytes: signed ones, or unsigned ones around 128, by which each sum is larger
// by 128 times the sum of its weights.
#if defined(LEVEL_NEON) || defined(LEVEL_AVX2)
constexpr bool SIGNED = true;
#else
constexpr bool SIGNED = false;
#endif
constexpr int MIDDLE = SIGNED ? 0 : 128;  // zero, as such a byte

// Weights are read from end to end. Few rows wait for the memory: asking for it this many groups of
// columns ahead, also across pages, made one row 1.3 times as fast. Many rows ask for the next blocks
// instead, a line at a time, while they work on these.
constexpr int AHEAD = 16;

template <int BLOCKS, bool ALONE>
static inline void fetch(const int8_t* w, int step, int k, const int8_t* next) {
  if (ALONE) {
    UNROLL for (int b = 0; b < BLOCKS; ++b) __builtin_prefetch(w + b * LINE + AHEAD * step);
  } else {
    __builtin_prefetch(next + k * LANES);
  }
}

// Rows of floats as bytes, each row with the scale that undoes it.
struct Bytes {
  uint8_t* values;  // (rows, columns), signed or not; the columns a multiple of GROUP
  float* scales;    // (rows)
  int columns;
};

static void quantise(const float* x, int count, uint8_t* bytes, float* scale) {
  Floats most_of = {};
  int i = 0;
  for (; i + WIDTH <= count; i += WIDTH) {
    const Floats own = load(x + i);
    const Floats size = own < 0.0f ? -own : own;
    most_of = size > most_of ? size : most_of;
  }
  float most = 0.0f;
  for (int j = 0; j < WIDTH; ++j) most = most_of[j] > most ? most_of[j] : most;
  for (; i < count; ++i) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
  *scale = most / 127.0f;
  const float factor = most > 0.0f ? 127.0f / most : 0.0f;
  // Above zero, and a half more, by which cutting off the fraction is rounding.
  constexpr float above = 128.5f;
  constexpr int32_t back = 128 - MIDDLE;
  for (i = 0; i + WIDTH <= count; i += WIDTH) {
    const Floats moved = load(x + i) * factor + above;
    const Ints whole = __builtin_convertvector(moved, Ints) - back;
    const SmallInts small = __builtin_convertvector(whole, SmallInts);
    memcpy(bytes + i, &small, sizeof small);
  }
  for (; i < count; ++i)
    bytes[i] = static_cast<uint8_t>(static_cast<int32_t>(x[i] * factor + above) - back);
  for (const int end = rounded(count, GROUP); i < end; ++i) bytes[i] = MIDDLE;
}

// ROWS rows by BLOCKS blocks of outputs, exactly; `sums` is (ROWS, BLOCKS * LANES). From a group of
// columns to the next are `step` bytes of weights. `next` is what to fetch meanwhile, or null where
// only these rows meet these weights.
#if defined(LEVEL_AVX512)

template <int ROWS, int BLOCKS, bool ALONE>
static inline void tile(const uint8_t* a, int columns, const int8_t* w, int step,
                        const int8_t* next, int32_t* sums) {
  __m512i total[ROWS][BLOCKS];
  UNROLL for (int r = 0; r < ROWS; ++r)
    UNROLL for (int b = 0; b < BLOCKS; ++b) total[r][b] = _mm512_setzero_si512();
  for (int k = 0; k < columns; k += GROUP, w += step) {
    fetch<BLOCKS, ALONE>(w, step, k, next);
    __m512i weights[BLOCKS];
    UNROLL for (int b = 0; b < BLOCKS; ++b) weights[b] = _mm512_loadu_si512(w + b * LINE);
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
static inline void tile(const uint8_t* a, int columns, const int8_t* w, int step,
                        const int8_t* next, int32_t* sums) {
  static_assert(BLOCKS == 1, "one block fills the registers");
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i total[ROWS][2];
  UNROLL for (int r = 0; r < ROWS; ++r)
    UNROLL for (int half = 0; half < 2; ++half) total[r][half] = _mm256_setzero_si256();
  for (int k = 0; k < columns; k += GROUP, w += step) {
    fetch<BLOCKS, ALONE>(w, step, k, next);
    __m256i weights[2], sizes[2];
    UNROLL for (int half = 0; half < 2; ++half) {
      weights[half] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + half * 32));
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
static inline void tile(const uint8_t* a, int columns, const int8_t* w, int step,
                        const int8_t*, int32_t* sums) {
  static_assert(BLOCKS == 1, "one block fills the registers");
  int32x4_t total[ROWS][4];
  UNROLL for (int r = 0; r < ROWS; ++r)
    UNROLL for (int q = 0; q < 4; ++q) total[r][q] = vdupq_n_s32(0);
  for (int k = 0; k < columns; k += GROUP, w += step) {
    int8x16_t weights[4];
    UNROLL for (int q = 0; q < 4; ++q) weights[q] = vld1q_s8(w + q * 16);
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
static inline void tile(const uint8_t* a, int columns, const int8_t* w, int step,
                        const int8_t*, int32_t* sums) {
  for (int r = 0; r < ROWS; ++r) {
    int32_t total[LANES] = {};
    const int8_t* own = w;
    for (int k = 0; k < columns; k += GROUP, own += step)
      for (int o = 0; o < LANES; ++o)
        for (int g = 0; g < GROUP; ++g)
          total[o] += a[static_cast<size_t>(r) * columns + k + g] * own[o * GROUP + g];
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
  const int8_t* weights = matrix.packed + packed_place(first, matrix.out, a.columns);
  const int step = blocks_beside(first, matrix.out) * LINE;
  if (ROWS == rows) {
    tile<ROWS, BLOCKS, true>(own, a.columns, weights, step, nullptr, sums);
  } else {
    // Each tile fetches its part of the next blocks, until the whole of them is asked for.
    const size_t part = static_cast<size_t>(row / ROWS) * (a.columns / GROUP) * LINE;
    const int8_t* next = part < BLOCKS * block ? weights + BLOCKS * block + part : weights;
    tile<ROWS, BLOCKS, false>(own, a.columns, weights, step, next, sums);
  }
  const int count = matrix.out - first < BLOCKS * LANES ? matrix.out - first : BLOCKS * LANES;
  int o = 0;
  for (; o + WIDTH <= count; o += WIDTH) {
    const Floats scale = load(matrix.scale + first + o);
    const Floats bias = matrix.bias ? load(matrix.bias + first + o) : Floats{};
    Ints more = {};
    if (!SIGNED) memcpy(&more, matrix.sums + first + o, sizeof more);
    for (int r = 0; r < ROWS; ++r) {
      Ints sum;
      memcpy(&sum, sums + r * BLOCKS * LANES + o, sizeof sum);
      const Floats exact = __builtin_convertvector(sum - more, Floats);
      const Floats out = exact * (a.scales[row + r] * scale) + bias;
      memcpy(y + (row + r) * stride + first + o, &out, sizeof out);
    }
  }
  for (; o < count; ++o)
    for (int r = 0; r < ROWS; ++r) {
      const int32_t sum = sums[r * BLOCKS * LANES + o] - (SIGNED ? 0 : matrix.sums[first + o]);
      const float bias = matrix.bias ? matrix.bias[first + o] : 0.0f;
      y[(row + r) * stride + first + o] = sum * (a.scales[row + r] * matrix.scale[first + o]) + bias;
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

// --- single products ----------------------------------------------------------------------------

static size_t linear_room(const Matrix* matrix, int64_t rows) {
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
static void quantise_rows(const Matrix* matrix, const float* x, int64_t rows, char* memory) {
  Bytes bytes = bytes_at(*matrix, rows, memory);
  quantise_some(x, matrix->in, 0, rows, bytes);
}

// Blocks of outputs from `first` up to `last`: y (rows, out).
static void linear(const Matrix* matrix, int64_t rows, char* memory, int64_t first, int64_t last,
                   float* y) {
  const Bytes bytes = bytes_at(*matrix, rows, memory);
  const int64_t end = last * LANES < matrix->out ? last * LANES : matrix->out;
  multiply(*matrix, bytes, static_cast<int>(rows), y, matrix->out, static_cast<int>(first * LANES),
           static_cast<int>(end));
}
