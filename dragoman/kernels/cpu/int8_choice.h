// The choice of the best continuations, and with it a position of a search. Part of int8_body.h.

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
    if (!any_above(logits + first, static_cast<int>(end - first), values[count - 1])) continue;
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
static void choose(const float* logits, int64_t size, const int64_t* ids,
                   const Standing* standing, const Choice* choice, int64_t row) {
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

// --- a position of a search ---------------------------------------------------------------------

static const Matrix& output_of(const Turn& turn, int64_t first) {
  return turn.ids ? turn.outputs[turn.running[first]] : turn.outputs[0];
}

static size_t turn_room(const Turn* turn, int64_t first, int64_t last) {
  const Past& past = *turn->past;
  const int64_t rows = (last - first) * past.beams;
  const Matrix& output = output_of(*turn, first);
  const size_t masks = past.beams * (past.position + 1) * past.beams;
  const size_t logits = rows * static_cast<size_t>(output.out);
  return (masks + logits) * sizeof(float) + linear_room(&output, rows) + 2 * 64;
}

// What is left to do behind the step for the running sentences from `first` up to `last`: the
// logits, where they are not given, the choice, and what follows from that. Where sentences have
// tokens of their own, it is one of them.
static void finish_turn(const Turn* turn, int64_t first, int64_t last, const float* logits,
                        char* memory) {
  const Past& past = *turn->past;
  const int64_t beams = past.beams, width = turn->stack->width;
  const Matrix& output = output_of(*turn, first);
  Arena arena{memory, 0};
  float* masks = arena.take<float>(beams * (past.position + 1) * beams);
  if (!logits) {
    const int64_t rows = (last - first) * beams;
    float* own = arena.take<float>(rows * output.out);
    char* rest = memory + arena.used;
    Bytes bytes = bytes_at(output, rows, rest);
    for (int64_t i = 0; i < last - first; ++i)
      quantise_some(turn->features + turn->running[first + i] * beams * width, output.in, i * beams,
                    (i + 1) * beams, bytes);
    linear(&output, rows, rest, 0, (output.out + LANES - 1) / LANES, own);
    logits = own;
  }
  for (int64_t i = first; i < last; ++i, logits += beams * output.out) {
    const int64_t row = turn->running[i];
    const int64_t* ids = turn->ids ? turn->ids[row] : nullptr;
    choose(logits, output.out, ids, turn->standing, turn->choice, row);
    memcpy(turn->tokens + row * beams, turn->choice->tokens + row * beams,
           beams * sizeof(int64_t));
    if (past.ancestors) reorder(past, turn->choice->beams, row, masks);
  }
}
