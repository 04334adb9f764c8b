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

// The quadratic model of a window of frames, points eliminated: `linearise` of motion/window_system.py. Unknowns of a
// pose: [dt, dtheta] in odom axes; of a point: [a_u, a_v, d, b] (motion/window_points.py).

#include "kernels.h"

// information += rows_a^T rows_b of two (3, 6) Jacobians, at blocks (a, b) of a (6 N, 6 N) matrix.
INLINE void add_block(double *information, int64_t size, int64_t a, int64_t b, const double *rows_a, const double *rows_b) {
  for (int i = 0; i < 6; i++) {
    double *to = information + (6 * a + i) * size + 6 * b;
    for (int j = 0; j < 6; j++) {
      to[j] += rows_a[i] * rows_b[j] + rows_a[6 + i] * rows_b[6 + j] + rows_a[12 + i] * rows_b[12 + j];
    }
  }
}

// P points and M observations, point by point and each by frame, all of later frames than the first view, in N frames.
// camera: fx, fy, baseline. rotation: (N, 3, 3), position: (N, 3). anchor: (P,) frame of the first view; near: (P, 3)
// metres in its axes. prior: (P, 9) of each point, what is added to the diagonal of its information (4), to all of its
// block of d and b (1), and to its half gradient (4). observed: (P,) number of observations.
// frame: (M,) of each observation; in_camera: (3, M) metres; white: (3, M) residuals in sigmas; root:
// (3, M) 1 / sigma times the root of the robust weight, weight: (M,) that root. damping: of points.
// information: (6 N, 6 N), gradient: (6 N,); back: (P, 4, 6 N), shift: (P, 4): the points' step is shift - back @ the
// poses' step. Returns 0, or 1 where there is no memory.
INLINE int macvo_window_system_body(const double *camera, int64_t frames, const double *rotation, const double *position,
                                    int64_t points, const int64_t *anchor, const double *near, const double *prior,
                                    const int64_t *observed, int64_t count, const int64_t *frame,
                                    const double *in_camera, const double *white, const double *root,
                                    const double *weight, double damping, double *information, double *gradient,
                                    double *back, double *shift) {
  const double fx = camera[0], fy = camera[1], reach = camera[0] * camera[2];
  const int64_t size = 6 * frames;
  double *mixed = borrowed((size_t)(4 * size) * sizeof *mixed + (size_t)(frames + 1) * sizeof(int64_t));
  if (!mixed) return 1;
  int64_t *seeing = (int64_t *)(mixed + 4 * size);  // frames that saw a point, the first view among them
  memset(information, 0, (size_t)(size * size) * sizeof *information);
  memset(gradient, 0, (size_t)size * sizeof *gradient);
  int64_t m = 0;
  for (int64_t p = 0; p < points; p++) {
    const int64_t first = anchor[p];
    const double *turned_by = rotation + 9 * first, *from = position + 3 * first, *at = near + 3 * p;
    double block[16] = {0}, pull[4] = {0}, change[9];
    const double depth = at[2], steps[3][3] = {{depth / fx, 0, 0}, {0, depth / fy, 0},
                                               {-at[0] * depth / reach, -at[1] * depth / reach, -at[2] * depth / reach}};
    for (int i = 0; i < 3; i++) {  // of the point in odom, with a_u, a_v and d
      for (int j = 0; j < 3; j++) {
        change[3 * i + j] =
            turned_by[3 * i] * steps[j][0] + turned_by[3 * i + 1] * steps[j][1] + turned_by[3 * i + 2] * steps[j][2];
      }
    }
    memset(mixed, 0, (size_t)(4 * size) * sizeof *mixed);
    int64_t sighted = 0;
    seeing[sighted++] = first;
    for (const int64_t end = m + observed[p]; m < end; m++) {
      const int64_t k = frame[m];
      seeing[sighted++] = k;
      const double *r = rotation + 9 * k, x = in_camera[m], y = in_camera[count + m], z = in_camera[2 * count + m];
      const double u = fx / z * root[m], v = fy / z * root[count + m], d = -reach / (z * z) * root[2 * count + m];
      const double tilt_u = -u * x / z, tilt_v = -v * y / z;
      const double residual[3] = {white[m] * weight[m], white[count + m] * weight[m], white[2 * count + m] * weight[m]};
      const double camera_axes[3][6] = {{-u, 0, -tilt_u, -tilt_u * y, tilt_u * x - u * z, u * y},
                                        {0, -v, -tilt_v, v * z - tilt_v * y, tilt_v * x, -v * x},
                                        {0, 0, -d, -d * y, d * x, 0}};
      const double by_place[3][3] = {{u, 0, tilt_u}, {0, v, tilt_v}, {0, 0, d}};
      double pose[18], origin[18], own[12];
      double arm[3];
      for (int i = 0; i < 3; i++) arm[i] = position[3 * k + i] - from[i];
      for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {  // into odom axes
          pose[6 * i + j] = camera_axes[i][0] * r[3 * j] + camera_axes[i][1] * r[3 * j + 1] + camera_axes[i][2] * r[3 * j + 2];
          pose[6 * i + 3 + j] =
              camera_axes[i][3] * r[3 * j] + camera_axes[i][4] * r[3 * j + 1] + camera_axes[i][5] * r[3 * j + 2];
        }
        // That of the anchor: minus the same, times [[I, -[arm]x], [0, I]].
        const double *f = pose + 6 * i;
        const double lever[3] = {-(f[1] * arm[2] - f[2] * arm[1]), -(f[2] * arm[0] - f[0] * arm[2]),
                                 -(f[0] * arm[1] - f[1] * arm[0])};
        for (int j = 0; j < 3; j++) {
          origin[6 * i + j] = -f[j];
          origin[6 * i + 3 + j] = -(f[3 + j] + lever[j]);
        }
        double along[3];  // of this residual, with the point in odom
        for (int j = 0; j < 3; j++) {
          along[j] = by_place[i][0] * r[3 * j] + by_place[i][1] * r[3 * j + 1] + by_place[i][2] * r[3 * j + 2];
        }
        for (int j = 0; j < 3; j++) {
          own[4 * i + j] = along[0] * change[j] + along[1] * change[3 + j] + along[2] * change[6 + j];
        }
        own[4 * i + 3] = i == 2 ? root[2 * count + m] : 0.0;
      }
      add_block(information, size, k, k, pose, pose);
      add_block(information, size, first, k, origin, pose);
      add_block(information, size, first, first, origin, origin);
      for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 6; j++) {
          gradient[6 * k + j] += pose[6 * i + j] * residual[i];
          gradient[6 * first + j] += origin[6 * i + j] * residual[i];
        }
        for (int a = 0; a < 4; a++) {
          const double o = own[4 * i + a];
          pull[a] += o * residual[i];
          for (int b = 0; b < 4; b++) block[4 * a + b] += o * own[4 * i + b];
          double *to = mixed + a * size;
          for (int j = 0; j < 6; j++) {
            to[6 * k + j] += o * pose[6 * i + j];
            to[6 * first + j] += o * origin[6 * i + j];
          }
        }
      }
    }
    const double *own_prior = prior + 9 * p;
    for (int a = 0; a < 4; a++) {
      block[5 * a] += own_prior[a];
      pull[a] += own_prior[5 + a];
    }
    block[10] += own_prior[4], block[11] += own_prior[4], block[14] += own_prior[4], block[15] += own_prior[4];
    for (int a = 0; a < 4; a++) block[5 * a] += damping * block[5 * a] + 1e-12;
    invert(block, 4);
    double *step = shift + 4 * p, *to_point = back + 4 * p * size;
    for (int a = 0; a < 4; a++) {
      step[a] = -(block[4 * a] * pull[0] + block[4 * a + 1] * pull[1] + block[4 * a + 2] * pull[2] + block[4 * a + 3] * pull[3]);
    }
    memset(to_point, 0, (size_t)(4 * size) * sizeof *to_point);
    for (int64_t f = 0; f < sighted; f++) {
      const int64_t at_frame = 6 * seeing[f];
      for (int a = 0; a < 4; a++) {
        for (int64_t j = at_frame; j < at_frame + 6; j++) {
          to_point[a * size + j] = block[4 * a] * mixed[j] + block[4 * a + 1] * mixed[size + j] +
                                   block[4 * a + 2] * mixed[2 * size + j] + block[4 * a + 3] * mixed[3 * size + j];
        }
      }
    }
    for (int64_t f = 0; f < sighted; f++) {
      for (int64_t i = 6 * seeing[f]; i < 6 * seeing[f] + 6; i++) {
        const double e[4] = {mixed[i], mixed[size + i], mixed[2 * size + i], mixed[3 * size + i]};
        gradient[i] += e[0] * step[0] + e[1] * step[1] + e[2] * step[2] + e[3] * step[3];
        for (int64_t g = f; g < sighted; g++) {
          const double *solved = to_point + 6 * seeing[g];
          double *row = information + i * size + 6 * seeing[g];
          for (int j = 0; j < 6; j++) {
            row[j] -= e[0] * solved[j] + e[1] * solved[size + j] + e[2] * solved[2 * size + j] + e[3] * solved[3 * size + j];
          }
        }
      }
    }
  }
  for (int64_t i = 0; i < size; i++) {
    for (int64_t j = 0; j < i; j++) information[i * size + j] = information[j * size + i];
  }
  give_back(mixed);
  return 0;
}

KERNEL(macvo_window_system,
       (const double *camera, int64_t frames, const double *rotation, const double *position, int64_t points,
        const int64_t *anchor, const double *near, const double *prior, const int64_t *observed, int64_t count,
        const int64_t *frame, const double *in_camera, const double *white, const double *root, const double *weight,
        double damping, double *information, double *gradient, double *back, double *shift),
       (camera, frames, rotation, position, points, anchor, near, prior, observed, count, frame, in_camera, white, root,
        weight, damping, information, gradient, back, shift))
