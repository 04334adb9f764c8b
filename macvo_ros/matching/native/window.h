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

// A window of frames as kernels see it: its points, its state, and what that costs (motion/window_points.py).

#ifndef MACVO_WINDOW_H
#define MACVO_WINDOW_H

#include "kernels.h"

// P points and N frames: as in `WindowPoints`, of which arrays have the shapes, but share: (P,) of a point's weight, 0
// leaves it out. camera: fx, fy, cx, cy, baseline, disparity of a point at infinity. kernel: Huber's, sigmas, 0 for none;
// least: disparity above that at infinity, pixels.
typedef struct {
  const double *camera;
  int64_t frames, points;
  const int64_t *anchor;
  const double *pixel, *disparity, *disparity_var, *shared_var, *seen, *inverse_sigma, *share;
  double kernel, least;
} Window;

// rotation: (N, 3, 3), position: (N, 3), points: (4, P).
typedef struct {
  double *rotation, *position, *points;
} State;

// A later frame k seen from a first view a: R_k^T R_a and R_k^T (t_a - t_k), by which points come into its camera.
typedef struct {
  double turn[9], shift[3];
} Passage;

INLINE void passage(const State *at, int64_t first, int64_t frame, Passage *to) {
  const double *a = at->rotation + 9 * first, *k = at->rotation + 9 * frame;
  double apart[3];
  for (int i = 0; i < 3; i++) apart[i] = at->position[3 * first + i] - at->position[3 * frame + i];
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) to->turn[3 * i + j] = k[i] * a[j] + k[3 + i] * a[3 + j] + k[6 + i] * a[6 + j];
    to->shift[i] = k[i] * apart[0] + k[3 + i] * apart[1] + k[6 + i] * apart[2];
  }
}

// A point in the camera of its first view, metres: `in_anchor`.
INLINE void in_first_view(const Window *of, const State *at, int64_t p, double *near) {
  const double *camera = of->camera, far = at->points[2 * of->points + p] - camera[5];
  const double depth = camera[0] * camera[4] / (far > of->least ? far : of->least);
  near[0] = (of->pixel[p] + at->points[p] - camera[2]) / camera[0] * depth;
  near[1] = (of->pixel[of->points + p] + at->points[of->points + p] - camera[3]) / camera[1] * depth;
  near[2] = depth;
}

// Of an observation: (3,) the point in the observing camera, and residuals in sigmas, of which the squared length is
// returned.
INLINE double residual_of(const Window *of, const State *at, int64_t p, int64_t frame, const Passage *by,
                          const double *near, double *there, double *white) {
  const double *camera = of->camera;
  for (int i = 0; i < 3; i++) {
    there[i] = by->turn[3 * i] * near[0] + by->turn[3 * i + 1] * near[1] + by->turn[3 * i + 2] * near[2] + by->shift[i];
  }
  if (!(there[2] > 1e-3)) there[2] = 1e-3;
  const double predicted[3] = {camera[0] * there[0] / there[2] + camera[2], camera[1] * there[1] / there[2] + camera[3],
                               camera[0] * camera[4] / there[2] + camera[5] + at->points[3 * of->points + p]};
  double square = 0;
  for (int i = 0; i < 3; i++) {
    const int64_t at_it = (3 * frame + i) * of->points + p;
    white[i] = (predicted[i] - of->seen[at_it]) * of->inverse_sigma[at_it];
    square += white[i] * white[i];
  }
  return square;
}

// All N x N of them, of which those of a first view and a later frame are worked out.
INLINE void all_passages(const State *at, int64_t frames, Passage *passages) {
  for (int64_t a = 0; a < frames; a++) {
    for (int64_t k = a + 1; k < frames; k++) passage(at, a, k, passages + a * frames + k);
  }
}

// The cost of a state, without a prior. squared: (N, P) squared residuals, 0 where nothing was observed.
INLINE double window_cost(const Window *of, const State *at, const Passage *passages, double *squared) {
  const int64_t frames = of->frames, points = of->points;
  memset(squared, 0, (size_t)(frames * points) * sizeof *squared);
  double total = 0;
  for (int64_t p = 0; p < points; p++) {
    double near[3], there[3], white[3], sum = 0;
    in_first_view(of, at, p, near);
    for (int64_t k = of->anchor[p] + 1; k < frames; k++) {
      if (!(of->inverse_sigma[3 * k * points + p] > 0)) continue;
      const double square = residual_of(of, at, p, k, passages + of->anchor[p] * frames + k, near, there, white);
      const double length = sqrt(square);
      squared[k * points + p] = square;
      sum += of->kernel > 0 && length > of->kernel ? of->kernel * (2.0 * length - of->kernel) : square;
    }
    const double d = at->points[2 * points + p], b = at->points[3 * points + p];
    const double first = d + b - of->disparity[p], shared[3] = {at->points[p], at->points[points + p], b};
    sum += first * first / (of->disparity_var[p] - of->shared_var[2 * points + p]);
    for (int i = 0; i < 3; i++) sum += shared[i] * shared[i] / of->shared_var[i * points + p];
    total += of->share[p] * sum;
  }
  return total;
}

#endif
