// What a search has chosen, read back from its end: the best output of each sentence. A twin of what
// decoding/trace.py does where one output is wanted.

#include "int8_stack.h"

#include <cmath>

// Subtracted from the score of an output without an end, so that it ranks behind all that have one.
constexpr double BEHIND = 1e6;

// Where an output ends: the last of its tokens.
struct Ending {
  int64_t position, beam;
  double rank, score;
};

static Ending best_ending(const Chosen& chosen, int64_t row) {
  Ending best{-1, 0, -INFINITY, 0.0};
  for (int64_t position = 0; position < chosen.positions; ++position)
    for (int64_t beam = 0; beam < chosen.width; ++beam) {
      const int64_t place = (position * chosen.rows + row) * chosen.width + beam;
      const bool ended = chosen.tokens[place] == chosen.end;
      const bool cut = position + 1 == chosen.max_lengths[row];
      if (!(ended || cut) || !(chosen.totals[place] > -INFINITY)) continue;
      const double score = chosen.totals[place] / pow((6.0 + position) / 6.0, chosen.alpha);
      const double rank = ended ? score : score - BEHIND;
      if (rank > best.rank) best = {position, beam, rank, score};
    }
  return best;
}

EXPORT void dragoman_read_back(const Chosen* chosen, const Outputs* outputs) {
  for (int64_t row = 0; row < chosen->rows; ++row) {
    const Ending best = best_ending(*chosen, row);
    outputs->scores[row] = best.score;
    outputs->counts[row] = best.position + 1;
    int64_t beam = best.beam;
    for (int64_t position = best.position; position >= 0; --position) {
      const int64_t place = (position * chosen->rows + row) * chosen->width + beam;
      outputs->tokens[row * chosen->positions + position] = chosen->tokens[place];
      outputs->log_probs[row * chosen->positions + position] = chosen->log_probs[place];
      beam = chosen->beams[place];
    }
  }
}
