// Arithmetic on floats: sums and largest ones, softmax, norms and activations. Part of int8_body.h.

static float sum_of(const float* lanes) {
  float halves[8], quarters[4];
  for (int i = 0; i < 8; ++i) halves[i] = lanes[i] + lanes[i + 8];
  for (int i = 0; i < 4; ++i) quarters[i] = halves[i] + halves[i + 4];
  return (quarters[0] + quarters[2]) + (quarters[1] + quarters[3]);
}

// The largest of all but what is not a number.
static inline float largest_of(const float* x, int count) {
  Floats lanes = Floats{} - INFINITY;
  int i = 0;
  for (; i + WIDTH <= count; i += WIDTH) {
    const Floats own = load(x + i);
    lanes = own > lanes ? own : lanes;
  }
  float most[WIDTH];
  memcpy(most, &lanes, sizeof most);
  for (int j = 0; i < count; ++i, ++j) most[j] = x[i] > most[j] ? x[i] : most[j];
  UNROLL for (int half = WIDTH / 2; half; half /= 2)
    for (int j = 0; j < half; ++j) most[j] = most[j] > most[j + half] ? most[j] : most[j + half];
  return most[0];
}

// Whether any is above the limit; what is not a number never is.
static inline bool any_above(const float* x, int count, float limit) {
  Ints above = {};
  int i = 0;
  for (; i + WIDTH <= count; i += WIDTH) above |= load(x + i) > limit;
  int64_t pairs[WIDTH / 2];
  memcpy(pairs, &above, sizeof pairs);
  int64_t any = 0;
  for (const int64_t pair : pairs) any |= pair;
  for (; i < count; ++i) any |= x[i] > limit;
  return any;
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
