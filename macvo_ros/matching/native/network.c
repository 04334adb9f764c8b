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

// The network of `lite` (lite/network.py, `LiteNetwork`) with the exponential that makes variances of what it says.
// Maps between layers are (rows, columns, channels) with a border of zeros around them, which convolutions read.

#include "kernels.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed to inline functions only

#if defined(__x86_64__) && !defined(MACVO_PLAIN)
enum { LANES = 8 };  // numbers in a vector
#else
enum { LANES = 4 };
#endif
enum { GROUP = 2 * LANES, WIDE = 6, BORDER = 2 };  // channels and pixels that are done at once; zeros around a map

typedef float Vector __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));

typedef int32_t Mask __attribute__((vector_size(LANES * sizeof(int32_t)), aligned(4)));

INLINE Vector load(const float *from) {
  Vector value;
  memcpy(&value, from, sizeof value);
  return value;
}

INLINE void store(float *to, Vector value, int relu) {
  if (relu) value = (Vector)((value > 0.0f) & (Mask)value);
  memcpy(to, &value, sizeof value);
}

typedef struct {
  int64_t rows, columns, channels;
  float *values;  // of the first pixel inside the border
} Map;

INLINE float *pixel_of(const Map *map, int64_t row, int64_t column) {
  return map->values + (row * (map->columns + 2 * BORDER) + column) * map->channels;
}

static int64_t size_of(int64_t rows, int64_t columns, int64_t channels) {
  // Rows are done WIDE pixels at a time: what that reads beyond the last pixel must be there.
  return ((rows + 2 * BORDER) * (columns + 2 * BORDER) + 4 * WIDE) * channels + GROUP;
}

static Map map_in(float **free_, int64_t rows, int64_t columns, int64_t channels) {
  Map map = {rows, columns, channels, *free_ + (BORDER * (columns + 2 * BORDER) + BORDER) * channels};
  memset(*free_, 0, size_of(rows, columns, channels) * sizeof(float));
  *free_ += size_of(rows, columns, channels);
  return map;
}

// WIDE pixels of a row, or what is left of it, in one group of channels out: sums over a (kernel, kernel) window.
INLINE void convolve_pixels(const Map *in, const Map *out, int64_t row, int64_t column, int64_t group,
                            const float *weights, const float *bias, int kernel, int stride, int dilation, int relu) {
  Vector a0, a1, b0, b1, c0, c1, d0, d1, e0, e1, f0, f1;  // sums of six pixels: these are to stay in registers
  a0 = load(bias + group), a1 = load(bias + group + LANES);
  b0 = c0 = d0 = e0 = f0 = a0;
  b1 = c1 = d1 = e1 = f1 = a1;
  const int64_t channels = in->channels, step = stride * channels, width = out->channels;
  for (int i = 0; i < kernel; i++) {
    for (int j = 0; j < kernel; j++) {
      const float *from = pixel_of(in, row * stride + (i - kernel / 2) * dilation,
                                   column * stride + (j - kernel / 2) * dilation);
      const float *weight = weights + ((int64_t)(i * kernel + j) * channels) * width + group;
      for (int64_t c = 0; c < channels; c++, from++, weight += width) {
        const Vector first = load(weight), second = load(weight + LANES);
        a0 += from[0] * first, a1 += from[0] * second;
        b0 += from[step] * first, b1 += from[step] * second;
        c0 += from[2 * step] * first, c1 += from[2 * step] * second;
        d0 += from[3 * step] * first, d1 += from[3 * step] * second;
        e0 += from[4 * step] * first, e1 += from[4 * step] * second;
        f0 += from[5 * step] * first, f1 += from[5 * step] * second;
      }
    }
  }
  const int64_t left = out->columns - column;
  float *to = pixel_of(out, row, column) + group;
  store(to, a0, relu), store(to + LANES, a1, relu);
  if (left > 1) store(to + width, b0, relu), store(to + width + LANES, b1, relu);
  if (left > 2) store(to + 2 * width, c0, relu), store(to + 2 * width + LANES, c1, relu);
  if (left > 3) store(to + 3 * width, d0, relu), store(to + 3 * width + LANES, d1, relu);
  if (left > 4) store(to + 4 * width, e0, relu), store(to + 4 * width + LANES, e1, relu);
  if (left > 5) store(to + 5 * width, f0, relu), store(to + 5 * width + LANES, f1, relu);
}

// Convolution and, where relu is 1, max(0, .); weights: (kernel, kernel, channels in, channels out), then the bias.
INLINE const float *convolve(const Map *in, const Map *out, const float *weights, int kernel, int stride, int dilation,
                             int relu) {
  const float *bias = weights + kernel * kernel * in->channels * out->channels;
  for (int64_t row = 0; row < out->rows; row++) {
    for (int64_t group = 0; group < out->channels; group += GROUP) {
      for (int64_t column = 0; column < out->columns; column += WIDE) {
        convolve_pixels(in, out, row, column, group, weights, bias, kernel, stride, dilation, relu);
      }
    }
  }
  return bias + out->channels;
}

// A 3 x 3 convolution of each channel by itself; weights: (3, 3, channels), then the bias.
INLINE const float *convolve_each(const Map *in, const Map *out, const float *weights) {
  const int64_t channels = in->channels;
  const float *bias = weights + 9 * channels;
  for (int64_t row = 0; row < out->rows; row++) {
    for (int64_t column = 0; column < out->columns; column++) {
      for (int64_t c = 0; c < channels; c += LANES) {
        Vector sum = load(bias + c);
        for (int k = 0; k < 9; k++) {
          const float *from = pixel_of(in, row + k / 3 - 1, column + k % 3 - 1) + c;
          sum += load(from) * load(weights + k * channels + c);
        }
        store(pixel_of(out, row, column) + c, sum, 0);
      }
    }
  }
  return bias + channels;
}

// A coarse map interpolated bilinearly to the size of a fine one, and added to it (pixels' edges are aligned).
INLINE void add_grown(const Map *coarse, const Map *fine) {
  const float v_scale = (float)coarse->rows / (float)fine->rows, u_scale = (float)coarse->columns / (float)fine->columns;
  for (int64_t row = 0; row < fine->rows; row++) {
    const float v = limited(((float)row + 0.5f) * v_scale - 0.5f, 0.0f, (float)(coarse->rows - 1));
    const int64_t above = (int64_t)v, below = above + 1 < coarse->rows ? above + 1 : above;
    const float down = v - (float)above;
    for (int64_t column = 0; column < fine->columns; column++) {
      const float u = limited(((float)column + 0.5f) * u_scale - 0.5f, 0.0f, (float)(coarse->columns - 1));
      const int64_t left = (int64_t)u, right = left + 1 < coarse->columns ? left + 1 : left;
      const float across = u - (float)left;
      const float *a = pixel_of(coarse, above, left), *b = pixel_of(coarse, above, right);
      const float *c = pixel_of(coarse, below, left), *d = pixel_of(coarse, below, right);
      const float wa = (1 - down) * (1 - across), wb = (1 - down) * across, wc = down * (1 - across), wd = down * across;
      float *to = pixel_of(fine, row, column);
#pragma omp simd
      for (int64_t k = 0; k < fine->channels; k++) to[k] += wa * a[k] + wb * b[k] + wc * c[k] + wd * d[k];
    }
  }
}

// max(0, a linear map of the mean over all pixels), added to every pixel; weights: (in, out), then the bias.
INLINE const float *add_whole(const Map *map, const float *weights) {
  const int64_t channels = map->channels;
  const float *bias = weights + channels * channels;
  for (int64_t out = 0; out < channels; out++) map->values[-channels + out] = 0.0f;  // of the border, for the mean
  float *mean = map->values - channels;
  for (int64_t row = 0; row < map->rows; row++) {
    for (int64_t column = 0; column < map->columns; column++) {
      const float *from = pixel_of(map, row, column);
      for (int64_t c = 0; c < channels; c++) mean[c] += from[c];
    }
  }
  for (int64_t out = 0; out < channels; out++) {
    float sum = 0.0f;
    for (int64_t c = 0; c < channels; c++) sum += mean[c] * weights[c * channels + out];
    sum = sum / (float)(map->rows * map->columns) + bias[out];
    if (!(sum > 0.0f)) continue;
    for (int64_t row = 0; row < map->rows; row++) {
      for (int64_t column = 0; column < map->columns; column++) pixel_of(map, row, column)[out] += sum;
    }
  }
  for (int64_t c = 0; c < channels; c++) mean[c] = 0.0f;
  return bias + channels;
}

// (channels, rows, columns) evidence to (4, rows, columns) variances, pixels^2: `LiteMatcher.variances`.
//
// Rows and columns may be odd: the last is then repeated. weights: of all layers in the order below, as `packed_weights`
// (lite/network.py) has them. widths: (3,) channels of the three levels: 16, which is also how many come out of the last
// layer, and multiples of 16. low, high: limits of log sigma. Returns 0, or 1 where there is no memory.
INLINE int macvo_lite_network_body(const float *evidence, int64_t channels, int64_t rows, int64_t columns,
                                   const float *weights, const int64_t *widths, float low, float high,
                                   float *variance) {
  const int64_t even_rows = rows + rows % 2, even_columns = columns + columns % 2;
  const int64_t r8 = even_rows / 2, c8 = even_columns / 2, r16 = (r8 + 1) / 2, c16 = (c8 + 1) / 2;
  const int64_t r32 = (r16 + 1) / 2, c32 = (c16 + 1) / 2;
  const int64_t needed = size_of(even_rows, even_columns, channels) + 3 * size_of(r8, c8, widths[0]) +
                         3 * size_of(r16, c16, widths[1]) + size_of(r16, c16, widths[0]) +
                         3 * size_of(r32, c32, widths[2]) + size_of(r32, c32, widths[1]);
  float *memory = borrowed(needed * sizeof *memory), *free_ = memory;
  if (!memory) return 1;
  const Map in = map_in(&free_, even_rows, even_columns, channels);
  for (int64_t row = 0; row < even_rows; row++) {
    const float *from = evidence + (row < rows ? row : rows - 1) * columns;
    float *to = pixel_of(&in, row, 0);
    for (int64_t column = 0; column < even_columns; column++) {
      const int64_t at = column < columns ? column : columns - 1;
      for (int64_t c = 0; c < channels; c++) *to++ = from[c * rows * columns + at];
    }
  }
  const Map a8 = map_in(&free_, r8, c8, widths[0]), b8 = map_in(&free_, r8, c8, widths[0]);
  const Map d8 = map_in(&free_, r8, c8, widths[0]);
  const Map a16 = map_in(&free_, r16, c16, widths[1]), b16 = map_in(&free_, r16, c16, widths[1]);
  const Map d16 = map_in(&free_, r16, c16, widths[1]), up8 = map_in(&free_, r16, c16, widths[0]);
  const Map a32 = map_in(&free_, r32, c32, widths[2]), b32 = map_in(&free_, r32, c32, widths[2]);
  const Map d32 = map_in(&free_, r32, c32, widths[2]), up16 = map_in(&free_, r32, c32, widths[1]);

  weights = convolve(&in, &a8, weights, 3, 2, 1, 1);  // down_8
  weights = convolve_each(&a8, &b8, weights);
  weights = convolve(&b8, &a8, weights, 1, 1, 1, 1);
  weights = convolve(&a8, &a16, weights, 3, 2, 1, 1);  // down_16
  weights = convolve(&a16, &b16, weights, 3, 1, 1, 1);
  weights = convolve(&b16, &a32, weights, 3, 2, 1, 1);  // down_32
  weights = convolve(&a32, &b32, weights, 3, 1, 1, 1);
  weights = convolve(&b32, &d32, weights, 3, 1, 2, 1);
  weights = add_whole(&d32, weights);
  weights = convolve(&d32, &up16, weights, 1, 1, 1, 0);
  add_grown(&up16, &b16);
  weights = convolve(&b16, &d16, weights, 3, 1, 1, 1);  // join_16
  weights = convolve(&d16, &up8, weights, 1, 1, 1, 0);
  add_grown(&up8, &a8);
  for (int twice = 0; twice < 2; twice++) {  // join_8
    weights = convolve_each(&a8, &b8, weights);
    weights = convolve(&b8, &a8, weights, 1, 1, 1, 1);
  }
  convolve(&a8, &d8, weights, 1, 1, 1, 0);  // out: four values of each output, of the four cells of a pixel
  for (int output = 0; output < 4; output++) {
    for (int64_t row = 0; row < rows; row++) {
      const float *from = pixel_of(&d8, row / 2, 0) + 4 * output + 2 * (row % 2);
      float *to = variance + (output * rows + row) * columns;
      for (int64_t column = 0; column < columns; column++) {
        to[column] = from[column / 2 * widths[0] + column % 2];
      }
#pragma omp simd
      for (int64_t column = 0; column < columns; column++) to[column] = exp_of(2.0f * limited(to[column], low, high));
    }
  }
  give_back(memory);
  return 0;
}

KERNEL(macvo_lite_network,
       (const float *evidence, int64_t channels, int64_t rows, int64_t columns, const float *weights,
        const int64_t *widths, float low, float high, float *variance),
       (evidence, channels, rows, columns, weights, widths, low, high, variance))
