// Copyright 2026 macvo_ros contributors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

// What the kernels share. Arrays are contiguous (row-major) unless strides are given; images are float32 grey levels.
// Every kernel runs in the thread that calls it and remembers nothing: same input, same bytes.

#ifndef MACVO_KERNELS_H
#define MACVO_KERNELS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Raised with every change of an argument list, so that a library from before is not called (library.py).
#define KERNELS_VERSION 4

#define INLINE static inline __attribute__((always_inline))

// Memory for as long as a kernel runs: that lent to this thread by `macvo_lend` where it is enough (fresh pages for every
// frame would cost more than some kernels), else new; NULL where there is none. A kernel borrows once.
void *borrowed(size_t bytes);
void give_back(void *memory);

// The function `name`, made of the inline function `name_body` compiled twice: for any processor, and for x86 with AVX2
// and FMA, which is what runs where the processor has them. (ARM's baseline has its vectors.)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(MACVO_PLAIN)  // MACVO_PLAIN: to test what others run
#define KERNEL(name, parameters, arguments)                                                                  \
  __attribute__((target("avx2,fma"))) static int name##_wide parameters { return name##_body arguments; }    \
  int name parameters {                                                                                      \
    const int wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");                        \
    return wide ? name##_wide arguments : name##_body arguments;                                             \
  }
#else
#define KERNEL(name, parameters, arguments) \
  int name parameters { return name##_body arguments; }
#endif

// Within limits; what is not a number becomes the lower one.
INLINE float limited(float value, float low, float high) {
  const float raised = value > low ? value : low;
  return raised < high ? raised : high;
}

// Bilinear read of an (height, width) image of at least 2 x 2 pixels at pixel (u, v); outside is the edge.
INLINE float read_bilinear(const float *image, int64_t height, int64_t width, float u, float v) {
  u = limited(u, 0.0f, (float)(width - 1));
  v = limited(v, 0.0f, (float)(height - 1));
  int column = (int)u, row = (int)v;
  column = column < (int)width - 2 ? column : (int)width - 2;
  row = row < (int)height - 2 ? row : (int)height - 2;
  u -= (float)column;
  v -= (float)row;
  const float *at = image + (int64_t)row * width + column;
  const float upper = at[0] + u * (at[1] - at[0]);
  const float lower = at[width] + u * (at[width + 1] - at[width]);
  return upper + v * (lower - upper);
}

// A column or row beside an image, mirrored at its outermost pixel (as OpenCV's filters do): -1 is 1.
INLINE int64_t mirrored(int64_t at, int64_t size) {
  if (size == 1) return 0;
  while (at < 0 || at >= size) at = at < 0 ? -at : 2 * size - 2 - at;
  return at;
}

// Means over windows of (2 radius + 1)^2 pixels of a (rows, columns) image. scratch: columns + 2 radius. May not be in
// place. Equals cv2.blur.
INLINE void box_means(const float *restrict image, int64_t rows, int64_t columns, int radius, float *restrict scratch,
                      float *restrict means) {
  const float share = 1.0f / (float)((2 * radius + 1) * (2 * radius + 1));
  for (int64_t row = 0; row < rows; row++) {
    float *restrict sums = scratch + radius;
    const float *first = image + mirrored(row - radius, rows) * columns;
    for (int64_t x = 0; x < columns; x++) sums[x] = first[x];
    for (int k = 1 - radius; k <= radius; k++) {
      const float *restrict other = image + mirrored(row + k, rows) * columns;
      for (int64_t x = 0; x < columns; x++) sums[x] += other[x];
    }
    for (int64_t x = 1; x <= radius; x++) {
      sums[-x] = sums[mirrored(-x, columns)];
      sums[columns - 1 + x] = sums[mirrored(columns - 1 + x, columns)];
    }
    float *restrict to = means + row * columns;
    for (int64_t x = 0; x < columns; x++) to[x] = scratch[x];
    for (int k = 1; k <= 2 * radius; k++) {
      for (int64_t x = 0; x < columns; x++) to[x] += scratch[x + k];
    }
    for (int64_t x = 0; x < columns; x++) to[x] *= share;
  }
}

// (3, 3) rotation of a rotation vector: `exp_so3`.
INLINE void rotation_of(const double *w, double *out) {
  const double angle = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
  const double one = angle < 1e-6 ? 1.0 : sin(angle) / angle;
  const double two = angle < 1e-6 ? 0.5 : (1.0 - cos(angle)) / (angle * angle);
  const double k[9] = {0, -w[2], w[1], w[2], 0, -w[0], -w[1], w[0], 0};
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      double square = 0;
      for (int l = 0; l < 3; l++) square += k[3 * i + l] * k[3 * l + j];
      out[3 * i + j] = (i == j) + one * k[3 * i + j] + two * square;
    }
  }
}

// b becomes x of A x = b for a symmetric positive (6, 6) A, of which the lower half is read, and overwritten; nan where
// A is none.
INLINE void solve_six(double *a, double *b) {
  for (int i = 0; i < 6; i++) {
    for (int j = 0; j <= i; j++) {
      double sum = a[6 * i + j];
      for (int k = 0; k < j; k++) sum -= a[6 * i + k] * a[6 * j + k];
      a[6 * i + j] = i == j ? (sum > 0 ? sqrt(sum) : NAN) : sum / a[6 * j + j];
    }
    for (int k = 0; k < i; k++) b[i] -= a[6 * i + k] * b[k];
    b[i] /= a[6 * i + i];
  }
  for (int i = 5; i >= 0; i--) {
    for (int k = i + 1; k < 6; k++) b[i] -= a[6 * k + i] * b[k];
    b[i] /= a[6 * i + i];
  }
}

// Natural logarithm of a normal positive number, to float32 rounding; unlike logf it can be vectorised.
INLINE float log_of(float value) {
  int32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;  // so that the mantissa lies around 1, from sqrt(1/2) to sqrt(2)
  bits -= exponent * (1 << 23);
  float mantissa;
  memcpy(&mantissa, &bits, sizeof mantissa);
  const float s = (mantissa - 1.0f) / (mantissa + 1.0f), s2 = s * s;
  const float series = 2.0f + s2 * (2.0f / 3 + s2 * (2.0f / 5 + s2 * (2.0f / 7 + s2 * (2.0f / 9))));
  return (float)exponent * 0.693147181f + s * series;
}

// e to the power of a number between -80 and 80, to float32 rounding.
INLINE float exp_of(float value) {
  const float scaled = value * 1.442695041f;
  const float whole = (float)(int32_t)(scaled + (scaled < 0.0f ? -0.5f : 0.5f));
  const float rest = value - whole * 0.693359375f + whole * 2.12194440e-4f;  // ln 2 in two parts
  float power = 1.0f + rest * (1.0f + rest * (1.0f / 2 + rest * (1.0f / 6 + rest * (1.0f / 24 + rest * (1.0f / 120 + rest / 720)))));
  int32_t bits;
  memcpy(&bits, &power, sizeof bits);
  bits += (int32_t)whole * (1 << 23);
  memcpy(&power, &bits, sizeof power);
  return power;
}

enum { MOST = 9 };  // unknowns of a patch, and the largest matrix that `invert` takes

// Inverse of a positive definite (size, size) matrix, in place; nan throughout where it is none.
static inline void invert(double *matrix, int size) {
  double lower[MOST][MOST] = {{0}}, inverse[MOST][MOST] = {{0}};
  for (int i = 0; i < size; i++) {
    for (int j = 0; j <= i; j++) {
      double sum = matrix[i * size + j];
      for (int k = 0; k < j; k++) sum -= lower[i][k] * lower[j][k];
      lower[i][j] = i == j ? (sum > 0 ? sqrt(sum) : NAN) : sum / lower[j][j];
    }
  }
  for (int i = 0; i < size; i++) {  // of the triangle
    inverse[i][i] = 1 / lower[i][i];
    for (int j = 0; j < i; j++) {
      double sum = 0;
      for (int k = j; k < i; k++) sum -= lower[i][k] * inverse[k][j];
      inverse[i][j] = sum / lower[i][i];
    }
  }
  for (int i = 0; i < size; i++) {
    for (int j = 0; j < size; j++) {
      double sum = 0;
      for (int k = i > j ? i : j; k < size; k++) sum += inverse[k][i] * inverse[k][j];
      matrix[i * size + j] = sum;
    }
  }
}

#endif
