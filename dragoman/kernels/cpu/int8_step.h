// A step of a decoder. Part of int8_body.h.

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

static size_t step_room(const Stack* stack, const Past* past, int64_t sentences) {
  const size_t rows = sentences * past->beams;
  return room(*stack, rows) + (sentences + rows * (past->position + 1)) * sizeof(int64_t) +
         longest(*past) * sizeof(float) + 3 * 64;
}

// The sentences from `first` up to `last` of those that are running, or of all where `running` is
// null: tokens (B, K) -> features (B, K, D).
static void step(const Stack* stack, const Past* past, const int64_t* running,
                 const int64_t* tokens, int64_t first, int64_t last, float* features,
                 char* memory) {
  const int64_t beams = past->beams, width = stack->width;
  const int64_t seen = past->position + 1, count = last - first;
  Arena arena{memory, 0};
  int64_t* sentences = arena.take<int64_t>(count);
  for (int64_t i = 0; i < count; ++i) sentences[i] = running ? running[first + i] : first + i;
  const int rows = static_cast<int>(count * beams);
  Work work = begin_work(*stack, rows, arena);
  int64_t* offsets = arena.take<int64_t>(rows * seen);
  float* scores = arena.take<float>(longest(*past));
  for (int r = 0; r < rows; ++r) {
    const int64_t token = tokens[sentences[r / beams] * beams + r % beams];
    embed(stack, token, past->position, work.x + r * width);
  }
  for (int64_t i = 0; i < count; ++i)
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
