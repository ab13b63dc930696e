// A step of a decoder, and what it sees of the memory. Part of int8_body.h.

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

// --- the memory ---------------------------------------------------------------------------------

static int64_t rows_at(const Memory& given, int64_t sentences) { return sentences * given.source; }

size_t remember_room(const Memory* given, int64_t sentences) {
  const int64_t rows = rows_at(*given, sentences);
  return linear_room(given->matrix, rows) + rows * given->matrix->out * sizeof(float) + 64;
}

// Keys and values of the sentences from `first` up to `last`, head by head.
void remember(const Memory* given, int64_t first, int64_t last, char* memory) {
  const Matrix& matrix = *given->matrix;
  const int64_t rows = rows_at(*given, last - first), source = given->source;
  const int64_t size = matrix.out / (2 * given->kv_heads);
  Arena arena{memory, 0};
  float* found = arena.take<float>(rows * matrix.out);
  char* rest = memory + arena.used;
  quantise_rows(&matrix, given->features + first * source * matrix.in, rows, rest);
  linear(&matrix, rows, rest, 0, (matrix.out + LANES - 1) / LANES, found);
  for (int64_t side = 0; side < 2; ++side)
    for (int64_t sentence = first; sentence < last; ++sentence)
      for (int64_t h = 0; h < given->heads; ++h) {
        const int64_t group = h / (given->heads / given->kv_heads);
        const float* from =
            found + (sentence - first) * source * matrix.out + (side * given->kv_heads + group) * size;
        float* to =
            given->both + ((side * given->rows + sentence) * given->heads + h) * source * size;
        for (int64_t s = 0; s < source; ++s)
          memcpy(to + s * size, from + s * matrix.out, size * sizeof(float));
      }
}

// --- a step -------------------------------------------------------------------------------------

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
    embed(stack, token, past->position, work.x + r * width);
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
