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

// The rigid motion that explains most of a flow: the iterations of `fit_motion` (lite/rigid_departure.py).

#include <stdlib.h>

#include "kernels.h"

static int compare_numbers(const void *a, const void *b) {
  const double one = *(const double *)a, other = *(const double *)b;
  if (one != one || other != other) return (one != one) - (other != other);  // nan is last: qsort must have an order
  return (one > other) - (one < other);
}

// Iteratively reweighted Gauss-Newton over N points, at most so many iterations.
//
// ray: (3, N) of the points; measured: (2, N) where their rays go; inverse_depth: (N,) 1/m. focal: pixels; least: of the
// scale beyond which departures are outliers, pixels; ridge: relative; converged: pixels of the last step. motion: (4, 4)
// current from reference, in place. Returns 0, or 1 where there is no memory.
INLINE int macvo_fit_motion_body(const double *ray, const double *measured, const double *inverse_depth, int64_t count,
                                 int iterations, double focal, double least, double ridge, double converged,
                                 double *motion) {
  double *memory = borrowed(16 * count * sizeof *memory);
  if (!memory) return 1;
  double *rows = memory, *rest = rows + 12 * count, *length = rest + 2 * count, *sorted = length + count;
  for (int iteration = 0; iteration < iterations && count > 0; iteration++) {
    for (int64_t n = 0; n < count; n++) {
      const double a = ray[n], b = ray[count + n], c = ray[2 * count + n], w = inverse_depth[n];
      const double depth = motion[8] * a + motion[9] * b + motion[10] * c + motion[11] * w, z = depth > 0.05 ? depth : 0.05;
      const double x = (motion[0] * a + motion[1] * b + motion[2] * c + motion[3] * w) / z;
      const double y = (motion[4] * a + motion[5] * b + motion[6] * c + motion[7] * w) / z, near = w / z;
      const double across[6] = {near, 0, -near * x, -x * y, 1 + x * x, -y}, down[6] = {0, near, -near * y, -1 - y * y, x * y, x};
      memcpy(rows + 12 * n, across, sizeof across);
      memcpy(rows + 12 * n + 6, down, sizeof down);
      rest[2 * n] = measured[n] - x, rest[2 * n + 1] = measured[count + n] - y;
      length[n] = sorted[n] = focal * hypot(rest[2 * n], rest[2 * n + 1]);
    }
    qsort(sorted, count, sizeof *sorted, compare_numbers);
    const double median = 0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]);
    const double scale = 1.5 * median > least ? 1.5 * median : least;
    double normal[36] = {0}, step[6] = {0}, turn[9], moved[12];
    for (int64_t n = 0; n < count; n++) {
      const double off = 1 + (length[n] / scale) * (length[n] / scale), weight = 1 / (off * off);
      for (int k = 0; k < 2; k++) {
        const double *row = rows + 12 * n + 6 * k;
        for (int i = 0; i < 6; i++) {
          step[i] += weight * row[i] * rest[2 * n + k];
          for (int j = 0; j <= i; j++) normal[6 * i + j] += weight * row[i] * row[j];
        }
      }
    }
    for (int i = 0; i < 6; i++) normal[7 * i] += ridge * (normal[7 * i] + 1e-3);
    solve_six(normal, step);
    for (int i = 3; i < 6; i++) step[i] = step[i] > 0.2 ? 0.2 : step[i] < -0.2 ? -0.2 : step[i];
    rotation_of(step + 3, turn);
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j < 4; j++) {
        moved[4 * i + j] = turn[3 * i] * motion[j] + turn[3 * i + 1] * motion[4 + j] + turn[3 * i + 2] * motion[8 + j];
      }
      moved[4 * i + 3] += step[i];
    }
    memcpy(motion, moved, sizeof moved);
    double farthest = 0;
    for (int64_t n = 0; n < 2 * count; n++) {
      double along = 0;
      for (int i = 0; i < 6; i++) along += step[i] * rows[6 * n + i];
      farthest = fabs(along) > farthest ? fabs(along) : farthest;
    }
    if (focal * farthest < converged) break;
  }
  give_back(memory);
  return 0;
}

KERNEL(macvo_fit_motion,
       (const double *ray, const double *measured, const double *inverse_depth, int64_t count, int iterations,
        double focal, double least, double ridge, double converged, double *motion),
       (ray, measured, inverse_depth, count, iterations, focal, least, ridge, converged, motion))
