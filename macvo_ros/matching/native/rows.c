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

// What follows a search along rows (stereo_search.py): gaps filled, and disparities to a fraction of a pixel.

#include "kernels.h"

// A row with every gap (nan) filled by the smaller of the values beside it; 0 where all of it is one.
INLINE int fill_row(float *row, int64_t width) {
  int64_t known = -1;
  for (int64_t x = 0; x <= width; x++) {
    if (x < width && !(row[x] == row[x])) continue;
    const float before = known < 0 ? INFINITY : row[known], after = x < width ? row[x] : INFINITY;
    for (int64_t gap = known + 1; gap < x; gap++) row[gap] = before < after ? before : after;
    known = x;
  }
  return row[0] != INFINITY;
}

// `_filled` and the choice of what is confirmed: (height, width) disparities found, 16ths of a pixel, to pixels.
//
// least: the smallest that counts as found. confirmed: (height, width) 1 where the match lies in the right image.
INLINE int macvo_fill_rows_body(const int16_t *found, int64_t height, int64_t width, int least, float *disparity,
                                uint8_t *confirmed) {
  int64_t last = -1;
  for (int64_t row = 0; row < height; row++) {
    float *to = disparity + row * width;
    for (int64_t x = 0; x < width; x++) {
      const int16_t value = found[row * width + x];
      const int at = 16 * (int)x - value;
      const int sure = value >= least && at >= 0 && at <= 16 * (int)(width - 1);
      confirmed[row * width + x] = (uint8_t)sure;
      to[x] = sure ? (float)value * (1.0f / 16) : NAN;
    }
    if (!fill_row(to, width)) continue;
    for (int64_t empty = last + 1; empty < row; empty++) {  // rows with nothing at all are as the nearest that has some
      const int64_t nearest = last >= 0 && empty - last <= row - empty ? last : row;
      memcpy(disparity + empty * width, disparity + nearest * width, width * sizeof(float));
    }
    last = row;
  }
  for (int64_t empty = last + 1; empty < height; empty++) {
    if (last >= 0) memcpy(disparity + empty * width, disparity + last * width, width * sizeof(float));
    else memset(disparity + empty * width, 0, width * sizeof(float));
  }
  return 0;
}

KERNEL(macvo_fill_rows,
       (const int16_t *found, int64_t height, int64_t width, int least, float *disparity, uint8_t *confirmed),
       (found, height, width, least, disparity, confirmed))

// `_sub_pixel`: Gauss-Newton steps on the brightness of a window, less its mean, in place.
//
// left, right, disparity: (height, width), at least 2 columns. radius: of the window; ridge: added to the mean squared
// gradient, grey levels^2; longest: step, pixels. Returns 0, or 1 where there is no memory.
INLINE int macvo_sub_pixel_body(const uint8_t *left, const uint8_t *right, int64_t height, int64_t width, int steps,
                                int radius, float ridge, float longest, float *disparity) {
  const int64_t size = height * width;
  float *memory = borrowed((5 * size + width + 2 * radius) * sizeof *memory);
  if (!memory) return 1;
  float *gradient = memory, *normal = gradient + size, *error = normal + size, *product = error + size;
  float *mean = product + size, *scratch = mean + size;
  for (int64_t row = 0; row < height; row++) {
    const uint8_t *here = left + row * width, *above = left + mirrored(row - 1, height) * width;
    const uint8_t *below = left + mirrored(row + 1, height) * width;
    float *to = gradient + row * width;
    for (int64_t x = 0; x < width; x++) {
      const int64_t a = mirrored(x - 1, width), b = mirrored(x + 1, width);
      to[x] = (float)(3 * (above[b] - above[a]) + 10 * (here[b] - here[a]) + 3 * (below[b] - below[a])) * (1.0f / 32);
    }
  }
  for (int64_t i = 0; i < size; i++) product[i] = gradient[i] * gradient[i];
  box_means(product, height, width, radius, scratch, normal);
  for (int step = 0; step < steps; step++) {
    for (int64_t row = 0; row < height; row++) {
      const uint8_t *there = right + row * width;
      for (int64_t x = 0; x < width; x++) {
        const int64_t i = row * width + x;
        const float u = limited((float)x - disparity[i], 0.0f, (float)(width - 1));
        const int at = (int)u < (int)width - 2 ? (int)u : (int)width - 2;
        const float part = u - (float)at;
        error[i] = (float)there[at] + part * (float)(there[at + 1] - there[at]) - (float)left[i];
      }
    }
    box_means(error, height, width, radius, scratch, mean);
    for (int64_t i = 0; i < size; i++) product[i] = gradient[i] * (error[i] - mean[i]);
    box_means(product, height, width, radius, scratch, mean);
    for (int64_t i = 0; i < size; i++) disparity[i] += limited(mean[i] / (normal[i] + ridge), -longest, longest);
  }
  give_back(memory);
  return 0;
}

KERNEL(macvo_sub_pixel,
       (const uint8_t *left, const uint8_t *right, int64_t height, int64_t width, int steps, int radius, float ridge,
        float longest, float *disparity),
       (left, right, height, width, steps, radius, ridge, longest, disparity))
