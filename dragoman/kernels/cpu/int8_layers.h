// What the layers of both stacks share, and an encoder. Part of int8_body.h.

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

// The sum of each of TOGETHER registers, by halves.
#if defined(LEVEL_AVX512)

constexpr int TOGETHER = 16;

static inline void sums_of(const Floats* vectors, float* sums) {
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

static inline void sums_of(const Floats* vectors, float* sums) {
  for (int i = 0; i < TOGETHER; ++i) {
    float lanes[WIDTH];
    memcpy(lanes, vectors + i, sizeof lanes);
    UNROLL for (int half = WIDTH / 2; half; half /= 2)
      UNROLL for (int j = 0; j < half; ++j) lanes[j] += lanes[j + half];
    sums[i] = lanes[0];
  }
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
    Floats sums[TOGETHER] = {};
    int e = 0;
    for (; e + WIDTH <= size; e += WIDTH) {
      const Floats part = *reinterpret_cast<const LooseFloats*>(query + e);
      UNROLL for (int i = 0; i < TOGETHER; ++i)
        sums[i] += part * *reinterpret_cast<const LooseFloats*>(keys[i] + e);
    }
    for (int j = 0; e < size; ++e, ++j)
      for (int i = 0; i < TOGETHER; ++i) sums[i][j] += query[e] * keys[i][e];
    sums_of(sums, scores + first);
  }
}

// PARTS registers of the weighted sum of the values.
template <int PARTS>
static inline void mix(const float* weights, const Keys& seen, int first, float* out) {
  Floats total[PARTS] = {};
  for (int64_t i = 0; i < seen.count; ++i) {
    const LooseFloats* value =
        reinterpret_cast<const LooseFloats*>(seen.values + seen.place(i) + first);
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
  for (; e + 4 * WIDTH <= size; e += 4 * WIDTH) mix<4>(scores, seen, e, out);
  for (; e + WIDTH <= size; e += WIDTH) mix<1>(scores, seen, e, out);
  for (; e < size; ++e) {
    out[e] = 0.0f;
    for (int64_t i = 0; i < seen.count; ++i)
      out[e] += scores[i] * seen.values[seen.place(i) + e];
  }
}

// A token as both stacks read it, (D).
static void embed(const Stack* stack, int64_t token, int64_t position, float* x) {
  const int8_t* row = stack->embeddings + token * stack->width;
  const float scale = stack->embedding_scale[token];
  for (int i = 0; i < stack->width; ++i) x[i] = row[i] * scale * stack->embedding_factor;
  if (stack->positions) {
    const float* own = stack->positions + position * stack->width;
    for (int i = 0; i < stack->width; ++i) x[i] += own[i];
  }
  normalise(stack->embedding_norm, x, stack->width, x);
}

// --- an encoder ---------------------------------------------------------------------------------

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

static size_t encode_room(const Stack* stack, const Sentences* given, int64_t first, int64_t last) {
  return room(*stack, rows_of(*given, first, last)) + given->width * sizeof(float) + 64;
}

// The sentences from `first` up to `last` through all layers, in place. Their products are computed
// together, their attention is their own.
static void encode(const Stack* stack, const Sentences* given, int64_t first, int64_t last,
                   char* memory) {
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
