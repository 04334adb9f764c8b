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

// Semi-global matching along rows (Hirschmueller 2008) with the cost of Birchfield and Tomasi (1998): what
// stereo_search.py asks of OpenCV's StereoSGBM where this is missing. Three paths end in every pixel: from the left, from
// the right and from above. Row by row, so that all of it stays in the cache; costs of one pixel lie side by side.

#include "kernels.h"

enum { STRIPES = 4 };  // of rows, as OpenCV has them for its threads
enum { CHUNK = 16, SLOPE = 31, FAR = 0x3fff };  // disparities done at once; largest slope (grey levels); no cost

INLINE int smaller(int a, int b) { return a < b ? a : b; }
INLINE int larger(int a, int b) { return a > b ? a : b; }

// A row of an image as costs are taken of it: slope along the row, and brightness; each as it is, and the least and most
// that it reaches within half a pixel. All (columns,), from column `first`, before the first and after the last of which
// the edge is repeated; `reversed` from right to left.
typedef struct {
  uint8_t *value[2], *least[2], *most[2];
} Row;

static void read_row(const uint8_t *image, int64_t height, int64_t width, int64_t row, int64_t first, int64_t columns,
                     int reversed, Row *out) {
  const uint8_t *here = image + row * width, *above = row ? here - width : here;
  const uint8_t *below = row + 1 < height ? here + width : here;
  uint8_t *value[2] = {out->value[0] + 1, out->value[1] + 1};  // one more on either side
  for (int64_t i = -1; i <= columns; i++) {
    const int64_t at = first + i, x = at < 0 ? 0 : at < width ? at : width - 1;
    const int64_t before = at < 1 ? 0 : at - 1 < width ? at - 1 : width - 1;
    const int64_t after = at < -1 ? 0 : at + 1 < width ? at + 1 : width - 1;
    const int slope = above[after] - above[before] + 2 * (here[after] - here[before]) + below[after] - below[before];
    const int64_t to = reversed ? columns - 1 - i : i;
    value[0][to] = (uint8_t)(smaller(larger(slope, -SLOPE), SLOPE) + SLOPE);
    value[1][to] = here[x];
  }
  for (int kind = 0; kind < 2; kind++) {
    const uint8_t *v = value[kind];
    for (int64_t i = 0; i < columns; i++) {
      const int one = (v[i] + v[i - 1]) / 2, other = (v[i] + v[i + 1]) / 2;
      out->least[kind][i] = (uint8_t)smaller(v[i], smaller(one, other));
      out->most[kind][i] = (uint8_t)larger(v[i], larger(one, other));
    }
  }
}

// By how much two values are apart, each within what the other reaches within half a pixel.
INLINE uint8_t apart(uint8_t u, uint8_t u_least, uint8_t u_most, uint8_t v, uint8_t v_least, uint8_t v_most) {
  const uint8_t above = (u > v_most ? u : v_most) - v_most, below = (u < v_least ? v_least : u) - u;
  const uint8_t over = (v > u_most ? v : u_most) - u_most, under = (v < u_least ? u_least : v) - v;
  const uint8_t one = above > below ? above : below, other = over > under ? over : under;
  return one < other ? one : other;
}

// (width, count) costs of the pixels of a row: the slopes' and a quarter of the brightness'. right: reversed, so that
// its element width - 1 - x + d is what the pixel x has at the d-th disparity.
INLINE void pixel_costs(const Row *left, const Row *right, int64_t width, int64_t count, uint8_t *cost) {
  for (int64_t x = 0; x < width; x++, cost += count) {
    const int64_t at = width - 1 - x;
#pragma omp simd
    for (int64_t d = 0; d < count / CHUNK * CHUNK; d++) {
      cost[d] = apart(left->value[0][x + 1], left->least[0][x], left->most[0][x], right->value[0][at + 1 + d],
                      right->least[0][at + d], right->most[0][at + d]) +
                apart(left->value[1][x + 1], left->least[1][x], left->most[1][x], right->value[1][at + 1 + d],
                      right->least[1][at + d], right->most[1][at + d]) / 4;
    }
  }
}

// One step along a path: costs of a pixel are its own plus the least at which the pixel before it on the path leads to
// them, less the least of that one. Both (count,), with FAR on either side. Returns the least of the new ones.
INLINE uint16_t step(const uint16_t *cost, const uint16_t *before, uint16_t least, int64_t count, uint16_t smooth,
                     uint16_t jump, uint16_t *after) {
  uint16_t lowest = FAR;
  const uint16_t other = least + jump;
#pragma omp simd reduction(min : lowest)
  for (int64_t d = 0; d < count / CHUNK * CHUNK; d++) {
    const uint16_t down = before[d - 1] + smooth, up = before[d + 1] + smooth;
    uint16_t best = before[d] < other ? before[d] : other;
    best = best < down ? best : down;
    best = best < up ? best : up;
    const uint16_t sum = cost[d] + best - least;
    after[d] = sum;
    lowest = lowest < sum ? lowest : sum;
  }
  return lowest;
}

// (height, width) disparities from `lowest`, `count` of them (a multiple of 16), in 16ths of a pixel; those that no
// pixel has, 16 (lowest - 1), where a pixel beyond `agree` disparities claims the same place in the right image at less
// cost. left, right: (height, width). smooth, jump: cost of a step of one disparity and of any other between
// neighbours, for the 3 x 3 pixels whose costs are added. Returns 0, or 1 where there is no memory.
INLINE int macvo_semi_global_body(const uint8_t *left, const uint8_t *right, int64_t height, int64_t width, int lowest,
                                  int64_t count, int smooth, int jump, int agree, int16_t *disparity) {
  const int64_t line = count + 2 * CHUNK, wide = width + count;  // costs of a pixel with FAR around them; right columns
  const size_t costs = (size_t)(width * count), lines = (size_t)((width + 2) * line);
  const size_t bytes = 3 * costs + 6 * (size_t)(2 * wide + 8) * 2 + sizeof(uint16_t) * (2 * costs + 4 * lines) +
                       sizeof(uint16_t) * (size_t)(2 * width + count) + sizeof(int) * (size_t)width + 64;
  uint8_t *memory = borrowed(bytes);
  if (!memory) return 1;
  uint16_t *sums = (uint16_t *)memory, *block = sums + costs;  // of three rows; and of three columns of that
  uint16_t *from_above = block + costs, *below = from_above + lines;  // of the row above, and of this one
  uint16_t *from_left = below + lines, *from_right = from_left + lines;
  uint16_t *total = from_right + lines, *least_above = total + count, *claim = least_above + width;
  int *claimed = (int *)(((uintptr_t)(claim + width) + 7) & ~(uintptr_t)7);
  uint8_t *ring = (uint8_t *)(claimed + width), *free_ = ring + 3 * costs;
  Row here, there;
  for (int kind = 0; kind < 2; kind++) {
    here.value[kind] = free_, here.least[kind] = free_ + wide + 4, here.most[kind] = free_ + 2 * (wide + 4);
    there.value[kind] = free_ + 3 * (wide + 4), there.least[kind] = free_ + 4 * (wide + 4);
    there.most[kind] = free_ + 5 * (wide + 4);
    free_ += 6 * (wide + 4);
  }
  for (size_t i = 0; i < 4 * lines; i++) from_above[i] = FAR;
  memset(from_left + CHUNK, 0, count * sizeof(uint16_t));  // beside the image nothing is known
  memset(from_right + (width + 1) * line + CHUNK, 0, count * sizeof(uint16_t));

  const int64_t stripe = (height + STRIPES - 1) / STRIPES, overlap = 2 + (stripe + 9) / 10;
  for (int64_t row = 0, begin = 0, first = 0; row < height; row++) {
    if (row == begin + stripe) {  // the next stripe: paths from above begin anew, some rows higher
      begin = row;
      first = row = row > overlap ? row - overlap : 0;
    }
    if (row == first) {
      for (int64_t x = 0; x < width; x++) {
        memset(from_above + (x + 1) * line + CHUNK, 0, count * sizeof(uint16_t));
        least_above[x] = 0;
      }
    }
    for (int64_t next = row > first ? row + 1 : row; next <= row + 1 && next < height; next++) {
      read_row(left, height, width, next, 0, width, 0, &here);
      // The pixel width - 1 - i + d of the reversed row is x - lowest - d: it ends at column width - 1 - lowest.
      read_row(right, height, width, next, 1 - lowest - count, width + count - 1, 1, &there);
      pixel_costs(&here, &there, width, count, ring + (next % 3) * costs);
    }
    const uint8_t *one = ring + ((row > first ? row - 1 : row) % 3) * costs, *two = ring + (row % 3) * costs;
    const uint8_t *three = ring + ((row + 1 < height ? row + 1 : row) % 3) * costs;
#pragma omp simd
    for (size_t i = 0; i < costs / CHUNK * CHUNK; i++) sums[i] = (uint16_t)(one[i] + two[i] + three[i]);
    for (int64_t x = 0; x < width; x++) {
      const uint16_t *a = sums + (x ? x - 1 : 0) * count, *b = sums + x * count;
      const uint16_t *c = sums + (x + 1 < width ? x + 1 : x) * count;
      uint16_t *to = block + x * count;
#pragma omp simd
      for (int64_t d = 0; d < count / CHUNK * CHUNK; d++) to[d] = (uint16_t)(a[d] + b[d] + c[d]);
    }
    uint16_t least_left = 0, least_right = 0;
    for (int64_t i = 0; i < width; i++) {  // from both sides at once: neither waits for the other
      const int64_t x = i, back = width - 1 - i;
      uint16_t *above = from_above + (x + 1) * line + CHUNK;
      uint16_t *to_right = from_left + (x + 1) * line + CHUNK, *to_left = from_right + (back + 1) * line + CHUNK;
      least_left = step(block + x * count, to_right - line, least_left, count, smooth, jump, to_right);
      least_right = step(block + back * count, to_left + line, least_right, count, smooth, jump, to_left);
      least_above[x] = step(block + x * count, above, least_above[x], count, smooth, jump, below + (above - from_above));
    }
    uint16_t *const swapped = from_above;
    from_above = below, below = swapped;
    if (row < begin) continue;
    int16_t *found = disparity + row * width;
    for (int64_t x = 0; x < width; x++) claim[x] = 0xffff, claimed[x] = 0;
    for (int64_t x = width - 1; x >= 0; x--) {
      const uint16_t *a = from_above + (x + 1) * line + CHUNK, *b = from_left + (x + 1) * line + CHUNK;
      const uint16_t *c = from_right + (x + 1) * line + CHUNK;
      uint16_t least = 0xffff, best = 0xffff;
#pragma omp simd reduction(min : least)
      for (int64_t d = 0; d < count / CHUNK * CHUNK; d++) {
        const uint16_t sum = a[d] + b[d] + c[d];
        total[d] = sum;
        least = least < sum ? least : sum;
      }
#pragma omp simd reduction(min : best)
      for (int64_t d = 0; d < count / CHUNK * CHUNK; d++) {
        const uint16_t at = total[d] == least ? (uint16_t)d : (uint16_t)0xffff;
        best = best < at ? best : at;
      }
      int fine = 16 * best;
      if (best > 0 && best < count - 1) {  // the parabola through three costs
        const int fall = total[best - 1] - least, rise = total[best + 1] - least, both = larger(fall + rise, 1);
        fine += (16 * (fall - rise) + both) / (2 * both);
      }
      found[x] = (int16_t)(fine + 16 * lowest);
      const int64_t there_x = x - best - lowest;
      if (there_x >= 0 && there_x < width && least < claim[there_x]) {
        claim[there_x] = least;
        claimed[there_x] = best + lowest;
      }
    }
    for (int64_t x = 0; x < width; x++) {
      // Of the two whole disparities around it, neither may be claimed by others.
      const int under = found[x] >> 4, over = (found[x] + 15) >> 4;
      const int64_t one_x = x - under, other_x = x - over;
      const int one_is = one_x >= 0 && one_x < width && claim[one_x] != 0xffff &&
                         (claimed[one_x] > under + agree || claimed[one_x] < under - agree);
      const int other_is = other_x >= 0 && other_x < width && claim[other_x] != 0xffff &&
                           (claimed[other_x] > over + agree || claimed[other_x] < over - agree);
      if (one_is && other_is) found[x] = (int16_t)(16 * (lowest - 1));
    }
  }
  give_back(memory);
  return 0;
}

KERNEL(macvo_semi_global,
       (const uint8_t *left, const uint8_t *right, int64_t height, int64_t width, int lowest, int64_t count, int smooth,
        int jump, int agree, int16_t *disparity),
       (left, right, height, width, lowest, count, smooth, jump, agree, disparity))
