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

// Where points of a window should be seen from another pose, and how the surface about them: `_expected` of
// motion/expected_views.py.

#include "kernels.h"

// What is seen of a place of the first view: pixel, disparity and how many times farther it is than there.
typedef struct {
  double u, v, disparity, depth;
} Seen;

// turn, shift: from the camera of the first view to the other. camera: fx, fy, cx, cy, baseline, disparity at infinity.
INLINE Seen seen_from(const double *camera, const double *turn, const double *shift, double u, double v, double disparity,
                      double least) {
  const double reach = camera[0] * camera[4], far = disparity - camera[5], first = reach / (far > least ? far : least);
  const double near[3] = {(u - camera[2]) / camera[0] * first, (v - camera[3]) / camera[1] * first, first};
  double there[3];
  for (int i = 0; i < 3; i++) {
    there[i] = turn[3 * i] * near[0] + turn[3 * i + 1] * near[1] + turn[3 * i + 2] * near[2] + shift[i];
  }
  const int behind = there[2] < 0.05;
  const double z = behind ? 0.05 : there[2];
  Seen seen = {camera[0] * there[0] / z + camera[2], camera[1] * there[1] / z + camera[3], reach / z + camera[5], z / first};
  if (behind) seen.u = seen.v = -1e6;
  return seen;
}

// rotation: (N, 3, 3), position: (N, 3) of the frames, pose: (4, 4) from where they should be seen; of P points the
// anchor: (P,), pixel: (2, P), state: (4, P) and slope: (P, 2) of disparity; which: (M,) of them are asked for. half:
// pixels to either side between which the warp is taken; least: disparity above that at infinity.
// expected: (M, 12) pixel (2), warp (2, 2), foreshortening (2), disparity, its slopes there (2), parallax.
INLINE int macvo_expected_views_body(const double *camera, const double *rotation, const double *position,
                                     const double *pose, int64_t points, const int64_t *anchor, const double *pixel,
                                     const double *state, const double *slope, int64_t count, const int64_t *which,
                                     double half, double least, double *expected) {
  for (int64_t n = 0; n < count; n++) {
    const int64_t p = which[n];
    const double *r = rotation + 9 * anchor[p], *t = position + 3 * anchor[p];
    double turn[9], shift[3];
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j < 3; j++) turn[3 * i + j] = pose[i] * r[j] + pose[4 + i] * r[3 + j] + pose[8 + i] * r[6 + j];
      shift[i] = (t[0] - pose[3]) * pose[i] + (t[1] - pose[7]) * pose[4 + i] + (t[2] - pose[11]) * pose[8 + i];
    }
    const double u = pixel[p] + state[p], v = pixel[points + p] + state[points + p], d = state[2 * points + p];
    const double across = half * slope[2 * p], down = half * slope[2 * p + 1];
    const Seen middle = seen_from(camera, turn, shift, u, v, d, least);
    const Seen nearer = seen_from(camera, turn, shift, u, v, d + 0.1, least);
    const Seen right = seen_from(camera, turn, shift, u + half, v, d + across, least);
    const Seen left = seen_from(camera, turn, shift, u - half, v, d - across, least);
    const Seen low = seen_from(camera, turn, shift, u, v + half, d + down, least);
    const Seen high = seen_from(camera, turn, shift, u, v - half, d - down, least);
    const double side = 2 * half, change[2] = {(right.disparity - left.disparity) / side, (low.disparity - high.disparity) / side};
    double warp[4] = {(right.u - left.u) / side, (low.u - high.u) / side, (right.v - left.v) / side, (low.v - high.v) / side};
    double tilt[2] = {change[0], change[1]};
    const double grown = warp[0] * warp[3] - warp[1] * warp[2];
    if (fabs(grown) > 1e-3) {
      tilt[0] = (warp[3] * change[0] - warp[2] * change[1]) / grown;
      tilt[1] = (warp[0] * change[1] - warp[1] * change[0]) / grown;
    } else {
      memset(warp, 0, sizeof warp);
    }
    double *out = expected + 12 * n;
    out[0] = middle.u, out[1] = middle.v;
    memcpy(out + 2, warp, sizeof warp);
    out[6] = (right.depth - left.depth) / (side * middle.depth);
    out[7] = (low.depth - high.depth) / (side * middle.depth);
    out[8] = middle.disparity + state[3 * points + p];
    for (int i = 0; i < 2; i++) out[9 + i] = tilt[i] > 0.5 ? 0.5 : tilt[i] < -0.5 ? -0.5 : tilt[i];
    const double du = nearer.u - middle.u, dv = nearer.v - middle.v;
    out[11] = sqrt(du * du + dv * dv) / 0.1;
  }
  return 0;
}

KERNEL(macvo_expected_views,
       (const double *camera, const double *rotation, const double *position, const double *pose, int64_t points,
        const int64_t *anchor, const double *pixel, const double *state, const double *slope, int64_t count,
        const int64_t *which, double half, double least, double *expected),
       (camera, rotation, position, pose, points, anchor, pixel, state, slope, count, which, half, least, expected))
