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

// What the network of `lite` sees of a match (lite/features.py), on its grid of (rows, columns) cells: two pixels of the
// halved images, four of the images, along each axis. And the flow of a rigid motion (rigid_flow.py).

#include <stdlib.h>

#include "kernels.h"

typedef float Layers __attribute__((vector_size(16), aligned(4)));  // brightness, gradients along u and v, nothing

// Linear near zero, a signed square root far from it.
INLINE float squashed(float value) { return value / sqrtf(fabsf(value) + 1.0f); }

// `ImageFeatures.texture` and what it is made of.
//
// image: grey levels, at least (4 rows, 4 columns), `stride` bytes from row to row; small: (2 rows, 2 columns), it at
// half its size. gradient_u, gradient_v: of that, (2 rows, 2 columns). texture: (5, rows, columns); tensor: (3, rows,
// columns), means of the squares of the gradients and of their product.
INLINE int macvo_texture_body(const uint8_t *image, int64_t stride, const uint8_t *small, const float *gradient_u,
                              const float *gradient_v, int64_t rows, int64_t columns, float *texture, float *tensor) {
  const int64_t cells = rows * columns, wide = 2 * columns;
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t column = 0; column < columns; column++) {
      const int64_t cell = row * columns + column;
      int bright = 0, fine = 0;
      float uu = 0, vv = 0, uv = 0;
      for (int k = 0; k < 4; k++) {
        const int64_t at = (2 * row + k / 2) * wide + 2 * column + k % 2;
        const uint8_t *four = image + (4 * row + k / 2 * 2) * stride + 4 * column + k % 2 * 2;
        const int middle = small[at];
        bright += middle;
        fine += abs(four[0] - middle) + abs(four[1] - middle) + abs(four[stride] - middle) + abs(four[stride + 1] - middle);
        uu += gradient_u[at] * gradient_u[at];
        vv += gradient_v[at] * gradient_v[at];
        uv += gradient_u[at] * gradient_v[at];
      }
      texture[cell] = (float)bright * (0.25f / 64) - 2.0f;
      texture[cells + cell] = (float)fine * (1.0f / 16) + 0.2f;
      tensor[cell] = 0.25f * uu;
      tensor[cells + cell] = 0.25f * vv;
      tensor[2 * cells + cell] = 0.25f * uv;
    }
  }
#pragma omp simd
  for (int64_t i = 0; i < cells; i++) {
    const float uu = tensor[i], vv = tensor[cells + i];
    texture[cells + i] = log_of(texture[cells + i]);
    texture[2 * cells + i] = 0.5f * log_of(uu + 0.05f);
    texture[3 * cells + i] = 0.5f * log_of(vv + 0.05f);
    texture[4 * cells + i] = tensor[2 * cells + i] / sqrtf(uu * vv + 0.05f);
  }
  return 0;
}

KERNEL(macvo_texture,
       (const uint8_t *image, int64_t stride, const uint8_t *small, const float *gradient_u, const float *gradient_v,
        int64_t rows, int64_t columns, float *texture, float *tensor),
       (image, stride, small, gradient_u, gradient_v, rows, columns, texture, tensor))

// How a match leaves the images, summed over the cells: (rows, columns) means of what is left of the brightness, of its
// square, and of the squares of what is left of both gradients; (2, rows, columns) the flow, in pixels of the image.
INLINE void compare(const Layers *source, const Layers *target, const float *flow, int64_t rows, int64_t columns,
                    float *mean, float *square, float *change, float *on_grid) {
  const int64_t height = 2 * rows, width = 2 * columns, cells = rows * columns;
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t column = 0; column < columns; column++) {
      const int64_t cell = row * columns + column;
      Layers sum = {0}, squares = {0};
      float across = 0, down = 0;
      for (int k = 0; k < 4; k++) {
        const int64_t y = 2 * row + k / 2, x = 2 * column + k % 2, at = y * width + x;
        across += flow[2 * at], down += flow[2 * at + 1];
        float u = limited((float)x + flow[2 * at], 0.0f, (float)(width - 1));
        float v = limited((float)y + flow[2 * at + 1], 0.0f, (float)(height - 1));
        const int left = (int)u < (int)width - 2 ? (int)u : (int)width - 2;
        const int top = (int)v < (int)height - 2 ? (int)v : (int)height - 2;
        u -= (float)left, v -= (float)top;
        const Layers *a = target + (int64_t)top * width + left, *b = a + width;
        const Layers upper = a[0] + u * (a[1] - a[0]), lower = b[0] + u * (b[1] - b[0]);
        const Layers rest = upper + v * (lower - upper) - source[at];
        sum += rest;
        squares += rest * rest;
      }
      mean[cell] = 0.25f * sum[0];
      square[cell] = 0.25f * squares[0];
      change[cell] = 0.25f * (squares[1] + squares[2]);
      on_grid[cell] = 0.5f * across;
      on_grid[cells + cell] = 0.5f * down;
    }
  }
}

// How many cells come to lie where each does: `_crowding`, less 1. landing: (2, rows, columns) cells.
INLINE void crowd(const float *landing, int64_t rows, int64_t columns, float *count, float *smooth, float *scratch,
                  float *crowding) {
  const int64_t cells = rows * columns;
  memset(count, 0, cells * sizeof *count);
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t i = 0; i < cells; i++) {
      const int64_t u = (int64_t)limited(rintf(landing[i]), 0.0f, (float)(columns - 1));
      const int64_t v = (int64_t)limited(rintf(landing[cells + i]), 0.0f, (float)(rows - 1));
      const int64_t there = v * columns + u;
      if (pass == 0) count[there] += 1.0f;
      else crowding[i] = (smooth[there] < 4.0f ? smooth[there] : 4.0f) - 1.0f;
    }
    if (pass == 0) box_means(count, rows, columns, 1, scratch, smooth);
  }
}

// `_features` without the texture, which is there already: channels 5 to 18 of (19, rows, columns) evidence.
//
// source, target: (2 rows, 2 columns, 4) `ImageFeatures.layers`; flow: (2 rows, 2 columns, 2) of the halved images.
// departure: (rows, columns, 2) pixels, or NULL for none; disparity: (rows, columns) less that of infinity, pixels, or
// NULL where it is that of the flow, less `infinity`. confirmed: (2 rows, 2 columns), or NULL where all of it is;
// temporal: 1 or -1. Returns 0, or 1 where there is no memory.
INLINE int macvo_evidence_body(const float *source, const float *target, const float *flow, const float *departure,
                               const float *disparity, float infinity, const uint8_t *confirmed, int temporal,
                               int64_t rows, int64_t columns, float *evidence) {
  const int64_t cells = rows * columns;
  float *memory = borrowed((11 * cells + columns + 8) * sizeof *memory);
  if (!memory) return 1;
  float *mean = memory, *square = mean + cells, *change = square + cells, *on_grid = change + cells;
  float *first = on_grid + 2 * cells, *second = first + cells, *third = second + cells, *bend = third + cells;
  float *landing = bend + cells, *scratch = landing + 2 * cells;
  compare((const Layers *)source, (const Layers *)target, flow, rows, columns, mean, square, change, on_grid);
  box_means(mean, rows, columns, 2, scratch, first);
  box_means(square, rows, columns, 1, scratch, second);
  box_means(mean, rows, columns, 1, scratch, third);
#pragma omp simd
  for (int64_t i = 0; i < cells; i++) {
    const float noise = second[i] - third[i] * third[i];
    evidence[5 * cells + i] = squashed((mean[i] - first[i]) * 0.5f);
    evidence[6 * cells + i] = 0.5f * log_of((noise > 0.0f ? noise : 0.0f) + 0.1f);
    evidence[7 * cells + i] = 0.5f * log_of(change[i] + 0.05f);
  }
  for (int axis = 0; axis < 2; axis++) {
    const float *along = on_grid + axis * cells;
    box_means(along, rows, columns, 2, scratch, first);
#pragma omp simd
    for (int64_t i = 0; i < cells; i++) {
      bend[i] = along[i] - first[i];
      second[i] = bend[i] * bend[i];
    }
    box_means(second, rows, columns, 2, scratch, first);
#pragma omp simd
    for (int64_t i = 0; i < cells; i++) {
      evidence[(8 + axis) * cells + i] = squashed(4.0f * bend[i]);
      evidence[(10 + axis) * cells + i] = 0.5f * log_of(first[i] + 1e-3f) + 1.0f;
      evidence[(13 + axis) * cells + i] = departure ? squashed(4.0f * departure[2 * i + axis]) : 0.0f;
    }
  }
  for (int64_t row = 0; row < rows; row++) {
#pragma omp simd
    for (int64_t column = 0; column < columns; column++) {
      const int64_t i = row * columns + column;
      const float u = on_grid[i] * 0.25f + (float)column, v = on_grid[cells + i] * 0.25f + (float)row;
      const float right = (float)(columns - 1) - u, under = (float)(rows - 1) - v;
      const float across = u < right ? u : right, down = v < under ? v : under;
      landing[i] = u, landing[cells + i] = v;
      const float distance = disparity ? disparity[i] : -on_grid[i];
      evidence[15 * cells + i] = log_of((distance - infinity > 0.0f ? distance - infinity : 0.0f) + 0.5f) - 2.0f;
      evidence[16 * cells + i] = limited((across < down ? across : down) * 0.25f, -2.0f, 2.0f);
      evidence[17 * cells + i] = (float)temporal;
      evidence[18 * cells + i] = 0.0f;
    }
    for (int64_t column = 0; confirmed && column < columns; column++) {
      const uint8_t *four = confirmed + 4 * row * columns + 2 * column;
      const int sure = four[0] + four[1] + four[2 * columns] + four[2 * columns + 1];
      evidence[18 * cells + row * columns + column] = 0.5f * (float)(4 - sure);
    }
  }
  crowd(landing, rows, columns, first, second, scratch, evidence + 12 * cells);
#pragma omp simd
  for (int64_t i = 0; i < 19 * cells; i++) evidence[i] = limited(evidence[i], -8.0f, 8.0f);
  give_back(memory);
  return 0;
}

KERNEL(macvo_evidence,
       (const float *source, const float *target, const float *flow, const float *departure, const float *disparity,
        float infinity, const uint8_t *confirmed, int temporal, int64_t rows, int64_t columns, float *evidence),
       (source, target, flow, departure, disparity, infinity, confirmed, temporal, rows, columns, evidence))

// `rigid_flow`: (height, width, 2) pixels, of an (height, width) disparity, pixels.
//
// camera: (7,) fx, fy, cx, cy, disparity of infinity, inverse depth per pixel of disparity, largest flow. rotation: (9,)
// and shift: (3,) of the motion: a ray r of inverse depth w goes to rotation r - w shift.
INLINE int macvo_rigid_flow_body(const float *disparity, int64_t height, int64_t width, const float *camera,
                                 const float *rotation, const float *shift, float *flow) {
  const float *r = rotation;
  for (int64_t row = 0; row < height; row++) {
    const float y = ((float)row - camera[3]) / camera[1];
#pragma omp simd
    for (int64_t column = 0; column < width; column++) {
      const int64_t i = row * width + column;
      const float x = ((float)column - camera[2]) / camera[0];
      const float apart = disparity[i] - camera[4], w = (apart > 0.0f ? apart : 0.0f) * camera[5];
      const float a = r[0] * x + r[1] * y + r[2] - w * shift[0], b = r[3] * x + r[4] * y + r[5] - w * shift[1];
      const float depth = r[6] * x + r[7] * y + r[8] - w * shift[2];
      const float c = depth > 0.05f ? depth : 0.05f;  // behind the camera is no flow; keep it finite
      flow[2 * i] = limited(camera[0] * (a / c - x), -camera[6], camera[6]);
      flow[2 * i + 1] = limited(camera[1] * (b / c - y), -camera[6], camera[6]);
    }
  }
  return 0;
}

KERNEL(macvo_rigid_flow,
       (const float *disparity, int64_t height, int64_t width, const float *camera, const float *rotation,
        const float *shift, float *flow),
       (disparity, height, width, camera, rotation, shift, flow))
