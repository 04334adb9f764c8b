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

// Whether an image looks as a motion predicts: the passes of `appearance_mismatch` (doubt/appearance.py).

#include "kernels.h"

// Standard deviation of an image in a window, and correlation with what another shows where a flow puts it.
//
// before, after: (rows, columns), at least 2 x 2; flow: (rows, columns, 2) pixels. disparity: (rows, columns) less that
// of infinity, and its variance. certain: pixels by which the flow may be off for the error of the disparity;
// most_variance: of the disparity. hidden: (rows, columns) 1 where `after` shows the robot, or NULL. radius: of the
// window. asked: 1 where such a pixel, and all eight around it, have an answer; contrast, likeness: see above.
INLINE int macvo_appearance_body(const float *before, const float *after, const float *flow, const float *disparity,
                                 const float *variance, const uint8_t *hidden, int64_t rows, int64_t columns,
                                 float certain, float most_variance, int radius, uint8_t *asked, float *contrast,
                                 float *likeness) {
  const int64_t size = rows * columns;
  float *memory = borrowed((6 * size + columns + 2 * radius) * sizeof(float) + size);
  if (!memory) return 1;
  float *warped = memory, *product = warped + size, *mean = product + size, *mean_there = mean + size;
  float *spread = mean_there + size, *spread_there = spread + size, *scratch = spread_there + size;
  uint8_t *known = (uint8_t *)(scratch + columns + 2 * radius);
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t column = 0; column < columns; column++) {
      const int64_t i = row * columns + column;
      const float across = flow[2 * i], down = flow[2 * i + 1], u = (float)column + across, v = (float)row + down;
      warped[i] = read_bilinear(after, rows, columns, u, v);
      int inside = u >= 0.0f && u <= (float)(columns - 1) && v >= 0.0f && v <= (float)(rows - 1);
      if (hidden && inside) inside = !hidden[(int64_t)rintf(v) * columns + (int64_t)rintf(u)];
      const float d = disparity[i] > 1e-3f ? disparity[i] : 1e-3f, share = sqrtf(variance[i]) / d;
      const int placed = sqrtf(across * across + down * down) * (share < 1.0f ? share : 1.0f) < certain;
      known[i] = (uint8_t)(inside && placed && variance[i] < most_variance);
    }
  }
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t column = 0; column < columns; column++) {
      int all = 1;
      for (int64_t y = row ? row - 1 : 0; y <= row + 1 && y < rows; y++) {
        for (int64_t x = column ? column - 1 : 0; x <= column + 1 && x < columns; x++) all &= known[y * columns + x];
      }
      asked[row * columns + column] = (uint8_t)all;
    }
  }
  box_means(before, rows, columns, radius, scratch, mean);
  box_means(warped, rows, columns, radius, scratch, mean_there);
  for (int64_t i = 0; i < size; i++) product[i] = before[i] * before[i];
  box_means(product, rows, columns, radius, scratch, spread);
  for (int64_t i = 0; i < size; i++) product[i] = warped[i] * warped[i];
  box_means(product, rows, columns, radius, scratch, spread_there);
  for (int64_t i = 0; i < size; i++) product[i] = before[i] * warped[i];
  box_means(product, rows, columns, radius, scratch, likeness);
  for (int64_t i = 0; i < size; i++) {
    const float here = spread[i] - mean[i] * mean[i], there = spread_there[i] - mean_there[i] * mean_there[i];
    const float one = here > 0.0f ? here : 0.0f, other = there > 0.0f ? there : 0.0f;
    contrast[i] = sqrtf(one);
    likeness[i] = (likeness[i] - mean[i] * mean_there[i]) / sqrtf(one * other + 1e-3f);
  }
  give_back(memory);
  return 0;
}

KERNEL(macvo_appearance,
       (const float *before, const float *after, const float *flow, const float *disparity, const float *variance,
        const uint8_t *hidden, int64_t rows, int64_t columns, float certain, float most_variance, int radius,
        uint8_t *asked, float *contrast, float *likeness),
       (before, after, flow, disparity, variance, hidden, rows, columns, certain, most_variance, radius, asked, contrast,
        likeness))
