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

// Gauss-Newton on patches of keypoints: `linearise` of patch_model.py, `fitted_plane` of patch_refinement.py, and the
// iterations of patch_refinement.py and patch_tracking.py. N patches of S samples; P = 3 A + 3 unknowns: shift along A
// axes, two slopes of each axis in pixels at the patch's edge, gain and offset of brightness, and blur.

#include "kernels.h"

INLINE float dot(const float *a, const float *b, int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t s = 0; s < count; s++) sum += a[s] * b[s];
  return sum;
}

// Keeps the compiler from taking a number together with others into a vector.
#if defined(__x86_64__)
#define IN_ORDER(number) __asm__ volatile("" : "+x"(number))
#else
#define IN_ORDER(number) (void)(number)
#endif

// The products of three rows of (3, count) numbers with a vector, each summed up one after the other: in vectors it
// would be rounded otherwise, and what was measured with it would change.
INLINE void three_dots(const float *rows, const float *vector, int64_t count, float *products) {
  const float *two = rows + count, *three = two + count;
  float a = 0, b = 0, c = 0;
  for (int64_t s = 0; s < count; s++) {
    const float with = vector[s];
    a += rows[s] * with;
    IN_ORDER(a);
    b += two[s] * with;
    IN_ORDER(b);
    c += three[s] * with;
    IN_ORDER(c);
  }
  products[0] = a, products[1] = b, products[2] = c;
}

// Ask for the pixels about (u, v) of an (height, width) image before they are read: most of them are not in the cache.
INLINE void fetch_around(const float *image, int64_t height, int64_t width, float u, float v, float radius) {
  const int64_t reach = (int64_t)limited(radius, 0.0f, 64.0f) + 1, line = 64 / sizeof *image;
  const int64_t column = (int64_t)limited(u, 0.0f, (float)(width - 1)), row = (int64_t)limited(v, 0.0f, (float)(height - 1));
  const int64_t left = column > reach ? column - reach : 0, right = column + reach < width ? column + reach : width - 1;
  const int64_t top = row > reach ? row - reach : 0, bottom = row + reach < height ? row + reach : height - 1;
  for (int64_t y = top; y <= bottom; y++) {
    for (int64_t x = left; x < right; x += line) __builtin_prefetch(image + y * width + x);
    __builtin_prefetch(image + y * width + right);
  }
}

// One patch: everything of `macvo_linearise` once its samples and their gradients are in `patch` and `basis`. size, P,
// is known when this is compiled.
INLINE void linearise_one(const int size, int64_t samples, const float *lever, const float *window, const float *ridge,
                          const float *patch, float *basis, float *weighted, float *normal, float *solver,
                          float *project) {
  const int moving = size - 3, axes = moving / 3;
  for (int axis = 0; axis < axes; axis++) {  // a slope moves samples by their offset in radii
    const float *gradient = basis + axis * samples;
    float *slope_u = basis + (axes + 2 * axis) * samples, *slope_v = slope_u + samples;
#pragma omp simd
    for (int64_t s = 0; s < samples; s++) {
      slope_u[s] = gradient[s] * lever[s];
      slope_v[s] = gradient[s] * lever[samples + s];
    }
  }
  const float mean = dot(patch, window, samples);
  for (int64_t s = 0; s < samples; s++) {
    basis[moving * samples + s] = patch[s] - mean;
    basis[(moving + 1) * samples + s] = 1.0f;
  }
  for (int p = 0; p < size; p++) {
#pragma omp simd
    for (int64_t s = 0; s < samples; s++) weighted[p * samples + s] = basis[p * samples + s] * window[s];
  }
  double inverse[MOST * MOST];
  for (int p = 0; p < size; p++) {
    for (int q = 0; q <= p; q++) {
      const float sum = dot(weighted + p * samples, basis + q * samples, samples);
      normal[p * size + q] = normal[q * size + p] = sum;
      inverse[p * size + q] = inverse[q * size + p] = (double)sum + (p == q ? (double)ridge[p] : 0.0);
    }
  }
  invert(inverse, size);
  for (int p = 0; p < size * size; p++) solver[p] = (float)inverse[p];
  for (int p = 0; p < size; p++) {
    const float *factor = solver + p * size;
#pragma omp simd
    for (int64_t s = 0; s < samples; s++) {
      float sum = 0;
      for (int q = 0; q < size; q++) sum += factor[q] * weighted[q * samples + s];
      project[p * samples + s] = sum;
    }
  }
}

// Patches of an (height, width) image around (N, 2) whole pixels (u, v) that lie radius + 1 from its edge or farther.
//
// side: of a patch in samples, S = side^2; stride: pixels between them. window: (S,) weights of sum 1; ridge: (P,).
// template_: (N, S); normal, solver: (N, P, P); project: (N, P, S), all as in `PatchModel`. Returns 0, or 1 where there
// is no memory.
INLINE int macvo_linearise_body(const float *image, int64_t height, int64_t width, const int64_t *whole, int64_t
                                count, int64_t side, int64_t stride, int axes, const float *window, const float
                                *ridge, float *template_, float *normal, float *solver, float *project) {
  const int64_t samples = side * side, half = side / 2;
  const int size = 3 * axes + 3;
  float *basis = borrowed((2 * MOST + 2) * samples * sizeof *basis);
  if (!basis) return 1;
  float *weighted = basis + MOST * samples, *lever = weighted + MOST * samples;
  for (int64_t s = 0; s < samples; s++) {
    lever[s] = (float)(s % side - half) / (float)half;
    lever[samples + s] = (float)(s / side - half) / (float)half;
  }
  for (int64_t n = 0; n < count; n++) {
    float *patch = template_ + n * samples;
    if (n + 1 < count) {
      fetch_around(image, height, width, (float)whole[2 * n + 2], (float)whole[2 * n + 3], (float)(half * stride));
    }
    for (int64_t row = 0; row < side; row++) {
      const float *at = image + (whole[2 * n + 1] + (row - half) * stride) * width + whole[2 * n] - half * stride;
      for (int64_t column = 0; column < side; column++, at += stride) {
        const int64_t s = row * side + column;
        patch[s] = at[0];
        basis[s] = 0.5f * (at[1] - at[-1]);
        if (axes == 2) basis[samples + s] = 0.5f * (at[width] - at[-width]);
        basis[(size - 1) * samples + s] = at[1] + at[-1] + at[width] + at[-width] - 4.0f * at[0];  // blur
      }
    }
    float *square = normal + n * size * size, *inverse = solver + n * size * size;
    float *rows = project + n * size * samples;
    if (axes == 2) {
      linearise_one(9, samples, lever, window, ridge, patch, basis, weighted, square, inverse, rows);
    } else {
      linearise_one(6, samples, lever, window, ridge, patch, basis, weighted, square, inverse, rows);
    }
  }
  give_back(basis);
  return 0;
}

KERNEL(macvo_linearise,
       (const float *image, int64_t height, int64_t width, const int64_t *whole, int64_t count, int64_t side, int64_t
        stride, int axes, const float *window, const float *ridge, float *template_, float *normal, float *solver, float
        *project),
       (image, height, width, whole, count, side, stride, axes, window, ridge, template_, normal, solver, project))

// An (height, width) image at S places: `read_bilinear` in three passes: where, the four pixels around, and between them;
// the first and last in vectors.
//
// u, v: (S,) the places, and state: shift along two axes and slopes of both, which one affine map takes to pixels there;
// lever: (S, 2) offsets in radii. work: 7 S numbers.
INLINE void read_moved(const float *image, int64_t height, int64_t width, int64_t samples, const float *u, const float *v,
                       const float *lever, const float *there, const float *state, float *work, float *found) {
  float *part_u = work, *part_v = work + samples, *corners = work + 2 * samples;
  int *at = (int *)(work + 6 * samples);
  const float constant_u = there[0] * state[0] + there[1] * state[1];
  const float constant_v = there[2] * state[0] + there[3] * state[1];
  const float u_u = there[0] * state[2] + there[1] * state[4], u_v = there[0] * state[3] + there[1] * state[5];
  const float v_u = there[2] * state[2] + there[3] * state[4], v_v = there[2] * state[3] + there[3] * state[5];
#pragma omp simd
  for (int64_t s = 0; s < samples; s++) {
    const float across = lever[2 * s], down = lever[2 * s + 1];
    const float x = limited(u[s] + (constant_u + u_u * across + u_v * down), 0.0f, (float)(width - 1));
    const float y = limited(v[s] + (constant_v + v_u * across + v_v * down), 0.0f, (float)(height - 1));
    const int column = (int)x < (int)width - 2 ? (int)x : (int)width - 2;
    const int row = (int)y < (int)height - 2 ? (int)y : (int)height - 2;
    at[s] = row * (int)width + column;
    part_u[s] = x - (float)column;
    part_v[s] = y - (float)row;
  }
  for (int64_t s = 0; s < samples; s++) {
    const float *pixel = image + at[s];
    corners[s] = pixel[0], corners[samples + s] = pixel[1];
    corners[2 * samples + s] = pixel[width], corners[3 * samples + s] = pixel[width + 1];
  }
#pragma omp simd
  for (int64_t s = 0; s < samples; s++) {
    const float upper = corners[s] + part_u[s] * (corners[samples + s] - corners[s]);
    const float lower = corners[2 * samples + s] + part_u[s] * (corners[3 * samples + s] - corners[2 * samples + s]);
    found[s] = upper + part_v[s] * (lower - upper);
  }
}

// Find N patches in an (height, width) image: Gauss-Newton, at most so many iterations, until a shift is below
// `converged`; no step of an unknown is longer than `longest` (pixels).
//
// offsets: (S, 2) of the samples from the middle, pixels; lever: (S, 2) these in radii. template_, project: see above, of
// which those of numbers which: (N,) are looked for.
// middle: (N, 2) where the middle is expected; warp: (N, 2, 2) offsets there per offset here. along: (N, 2, A) by which
// shift and slopes become pixels there; NULL: the first A axes. nearer: (N, 2) foreshortening, 1/pixel, or NULL;
// least_depth: below which 1 + nearer . offset does not go.
// shift: (N, A), bent: (N, A, 2) what was found; solution: (N, P) of the last iteration; square: (N,) weighted mean of
// the squared difference before it, grey levels^2; likeness: (N,) normalised correlation; answer: (N, A) by how much a
// shift comes out larger per pixel, `aside` pixels to either side; 1 where aside is 0. Returns as above.
INLINE int macvo_find_patches_body(const float *image, int64_t height, int64_t width, int64_t count, int64_t
                                   samples, int axes, int iterations, float longest, float converged, const float
                                   *offsets, const float *lever, const float *window, const int64_t *which,
                                   const float *template_, const float *project, const float *middle, const float *warp, const float *along, const
                                   float *nearer, float least_depth, float aside, float *shift, float *bent, float
                                   *solution, float *square, float *likeness, float *answer) {
  const int moving = 3 * axes, size = moving + 3;
  float *u = borrowed(11 * samples * sizeof *u);
  if (!u) return 1;
  float *v = u + samples, *error = v + samples, *found = error + samples, *work = found + samples;
  for (int64_t n = 0; n < count; n++) {
    const float *turn = warp + 4 * n, *patch = template_ + which[n] * samples, *rows = project + which[n] * size * samples;
    if (n + 1 < count) {
      fetch_around(image, height, width, middle[2 * n + 2], middle[2 * n + 3], offsets[2 * (samples - 1)]);
    }
    float there[4] = {1.0f, 0.0f, 0.0f, 1.0f};  // (2, 2), of which the first A columns count
    if (along) {
      for (int axis = 0; axis < 2; axis++) {
        for (int a = 0; a < axes; a++) there[2 * axis + a] = along[(2 * n + axis) * axes + a];
      }
    }
    for (int64_t s = 0; s < samples; s++) {
      const float across = offsets[2 * s], down = offsets[2 * s + 1];
      float grown = 1.0f;
      if (nearer) {
        const float depth = 1.0f + nearer[2 * n] * across + nearer[2 * n + 1] * down;
        grown = 1.0f / (depth > least_depth ? depth : least_depth);
      }
      u[s] = middle[2 * n] + (turn[0] * across + turn[1] * down) * grown;
      v[s] = middle[2 * n + 1] + (turn[2] * across + turn[3] * down) * grown;
    }
    float step[MOST] = {0}, state[6] = {0};  // shift along u and v, then slopes of both
    float *moved = shift + n * axes, *slopes = bent + 2 * n * axes;
    for (int iteration = 0; iteration < iterations; iteration++) {
      read_moved(image, height, width, samples, u, v, lever, there, state, work, found);
#pragma omp simd
      for (int64_t s = 0; s < samples; s++) error[s] = found[s] - patch[s];
      float farthest = 0.0f;
      for (int p = 0; p < moving; p++) step[p] = dot(rows + p * samples, error, samples);
      for (int p = 0; p < moving; p++) {
        const float clipped = step[p] > longest ? longest : step[p] < -longest ? -longest : step[p];
        if (p < axes) {
          state[p] -= clipped;
          farthest = fabsf(clipped) > farthest ? fabsf(clipped) : farthest;
        } else {
          state[2 + p - axes] -= clipped;
        }
      }
      if (!(farthest >= converged)) break;
    }
    three_dots(rows + moving * samples, error, samples, step + moving);
    for (int axis = 0; axis < axes; axis++) {
      moved[axis] = state[axis];
      slopes[2 * axis] = state[2 + 2 * axis];
      slopes[2 * axis + 1] = state[3 + 2 * axis];
    }
    for (int p = 0; p < size; p++) solution[n * size + p] = step[p];
    const float mean_here = dot(patch, window, samples), mean_there = dot(found, window, samples);
    float squares = 0, here2 = 0, there2 = 0, product = 0;
#pragma omp simd reduction(+ : squares, here2, there2, product)
    for (int64_t s = 0; s < samples; s++) {
      const float a = patch[s] - mean_here, b = found[s] - mean_there;
      squares += window[s] * error[s] * error[s];
      here2 += window[s] * a * a;
      there2 += window[s] * b * b;
      product += window[s] * a * b;
    }
    square[n] = squares;
    likeness[n] = product / sqrtf(here2 * there2 + 1e-6f);
    for (int axis = 0; axis < axes; axis++) answer[n * axes + axis] = 1.0f;
    for (int axis = 0; axis < axes && aside > 0.0f; axis++) {
      const float *row = rows + axis * samples, at = state[axis];
      state[axis] = at + aside;
      read_moved(image, height, width, samples, u, v, lever, there, state, work, found);
      const float after = dot(row, found, samples);
      state[axis] = at - aside;
      read_moved(image, height, width, samples, u, v, lever, there, state, work, found);
      answer[n * axes + axis] = (after - dot(row, found, samples)) / (2.0f * aside);
      state[axis] = at;
    }
  }
  give_back(u);
  return 0;
}

KERNEL(macvo_find_patches,
       (const float *image, int64_t height, int64_t width, int64_t count, int64_t samples, int axes, int iterations,
        float longest, float converged, const float *offsets, const float *lever, const float *window, const
        int64_t *which, const float *template_, const float *project, const float *middle, const float *warp, const float *along, const float
        *nearer, float least_depth, float aside, float *shift, float *bent, float *solution, float *square, float
        *likeness, float *answer),
       (image, height, width, count, samples, axes, iterations, longest, converged, offsets, lever, window, which,
        template_, project, middle, warp, along, nearer, least_depth, aside, shift, bent, solution, square, likeness, answer))

// Planes through an (height, width, A) map around N places: `fitted_plane`, in pixels of the map.
//
// strides: (3,) of the map's axes, in elements. place: (N, 2) sub-pixel places (u, v). A place takes the samples of the
// whole pixel next to it: side^2 of them (side at most 8), `spacing` apart; beyond the edge is the edge. window: their weights of sum 1;
// lever: (side^2, 2) by which samples become slopes. value: (N, A), at the place; slope: (N, A, 2); bend: (N,).
INLINE int macvo_fit_planes_body(const float *map, int64_t height, int64_t width, const int64_t *strides, int axes,
                                 const double *place, int64_t count, int side, int spacing, const float *window,
                                 const float *lever, float *value, float *slope, double *bend) {
  const int half = side / 2, samples = side * side;
  for (int64_t n = 0; n < count; n++) {
    const double column = rint(place[2 * n]), row = rint(place[2 * n + 1]);
    const float rest_u = (float)(place[2 * n] - column), rest_v = (float)(place[2 * n + 1] - row);
    float departure = 0;
    int64_t rows[8] = {0}, columns[8] = {0};
    for (int i = 0; i < side; i++) {
      const double v = row + (i - half) * spacing, u = column + (i - half) * spacing;
      rows[i] = (int64_t)(v > 0 ? (v < (double)(height - 1) ? v : (double)(height - 1)) : 0) * strides[0];
      columns[i] = (int64_t)(u > 0 ? (u < (double)(width - 1) ? u : (double)(width - 1)) : 0) * strides[1];
    }
    for (int axis = 0; axis < axes; axis++) {
      float around[64] = {0};
      for (int i = 0, s = 0; i < side; i++) {
        for (int j = 0; j < side; j++, s++) around[s] = map[rows[i] + columns[j] + axis * strides[2]];
      }
      const float middle = around[samples / 2];
      float along_u = 0, along_v = 0, mean = 0;
      for (int s = 0; s < samples; s++) {
        along_u += (around[s] - middle) * lever[2 * s];
        along_v += (around[s] - middle) * lever[2 * s + 1];
        mean += window[s] * around[s];
      }
      for (int s = 0; s < samples; s++) {
        const float across = (float)((s % side - half) * spacing), down = (float)((s / side - half) * spacing);
        const float off = around[s] - mean - along_u * across - along_v * down;
        departure += window[s] * off * off;
      }
      value[n * axes + axis] = middle + along_u * rest_u + along_v * rest_v;
      slope[2 * (n * axes + axis)] = along_u;
      slope[2 * (n * axes + axis) + 1] = along_v;
    }
    bend[n] = sqrt((double)departure);
  }
  return 0;
}

KERNEL(macvo_fit_planes,
       (const float *map, int64_t height, int64_t width, const int64_t *strides, int axes, const double *place, int64_t
        count, int side, int spacing, const float *window, const float *lever, float *value, float *slope, double *bend),
       (map, height, width, strides, axes, place, count, side, spacing, window, lever, value, slope, bend))
