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

// The quadratic model of a window's cost, points eliminated: `window_system.py`. Unknowns of a pose: [dt, dtheta] in odom
// axes; of a point: [a_u, a_v, d, b].
//
// All points with the same first view are eliminated in coordinates of their own: y of a later frame is what its pose
// moves by against the first view's, in the axes of its camera, y_k = R_k^T (x_k - L_k x_a) with L_k the lever arm
// [[I, -[t_k - t_a]x], [0, I]]. Residuals know nothing else of poses, and their derivatives by y are mostly zeros; what
// is summed up over points is taken to odom once for each first view.

#ifndef MACVO_WINDOW_SYSTEM_H
#define MACVO_WINDOW_SYSTEM_H

#include "window.h"

// A point that was eliminated: its (4, 4) information's triangle and its half gradient divided by that, and the frames
// after its first view, from `begin` to before `end`, among which it was observed.
typedef struct {
  double triangle[16], pull[4];
  int64_t begin, end;
} Eliminated;

// `matrix` becomes its lower triangle, of Cholesky's; nan where it is not positive.
INLINE void triangle_of_four(double *matrix) {
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j <= i; j++) {
      double sum = matrix[4 * i + j];
      for (int k = 0; k < j; k++) sum -= matrix[4 * i + k] * matrix[4 * j + k];
      matrix[4 * i + j] = i == j ? (sum > 0 ? sqrt(sum) : NAN) : sum / matrix[5 * j];
    }
  }
}

// One observation of a point: adds to the information (size, size) and half gradient of y of its frame, which begin at
// `frame`, and to the point's own (4, 4) and (4,). mixed: (4, size), of which the frame's six columns are written.
// root: of its weight.
INLINE void add_observation(const Window *of, int64_t p, int64_t k, const Passage *by, const double *near,
                            const double *there, const double *white, double root, double *information, double *gradient,
                            int64_t size, double *block, double *pull, double *mixed) {
  const double *camera = of->camera, reach = camera[0] * camera[4], *sigma = of->inverse_sigma + 3 * k * of->points + p;
  const double x = there[0], y = there[1], z = there[2], depth = near[2];
  const double u = camera[0] / z * sigma[0] * root, v = camera[1] / z * sigma[of->points] * root;
  const double scale = sigma[2 * of->points] * root, d = -reach / (z * z) * scale;
  const double tilt_u = -u * x / z, tilt_v = -v * y / z;
  const double pose[3][6] = {{-u, 0, -tilt_u, -tilt_u * y, tilt_u * x - u * z, u * y},
                             {0, -v, -tilt_v, v * z - tilt_v * y, tilt_v * x, -v * x},
                             {0, 0, -d, -d * y, d * x, 0}};
  double moved[3][3], own[3][4];  // of the point in this camera, and of the residuals, with a_u, a_v, d (and b)
  for (int i = 0; i < 3; i++) {
    const double *turn = by->turn + 3 * i;
    moved[i][0] = turn[0] * depth / camera[0];
    moved[i][1] = turn[1] * depth / camera[1];
    moved[i][2] = -(turn[0] * near[0] + turn[1] * near[1] + turn[2] * near[2]) * depth / reach;
  }
  for (int j = 0; j < 3; j++) {
    own[0][j] = u * moved[0][j] + tilt_u * moved[2][j];
    own[1][j] = v * moved[1][j] + tilt_v * moved[2][j];
    own[2][j] = d * moved[2][j];
  }
  own[0][3] = own[1][3] = 0;
  own[2][3] = scale;
  const double residual[3] = {white[0] * root, white[1] * root, white[2] * root};
  for (int i = 0; i < 6; i++) {
    double *row = information + i * size;
    for (int j = i; j < 6; j++) row[j] += pose[0][i] * pose[0][j] + pose[1][i] * pose[1][j] + pose[2][i] * pose[2][j];
    gradient[i] += pose[0][i] * residual[0] + pose[1][i] * residual[1] + pose[2][i] * residual[2];
  }
  for (int a = 0; a < 4; a++) {
    for (int b = 0; b <= a; b++) block[4 * a + b] += own[0][a] * own[0][b] + own[1][a] * own[1][b] + own[2][a] * own[2][b];
    pull[a] += own[0][a] * residual[0] + own[1][a] * residual[1] + own[2][a] * residual[2];
    for (int j = 0; j < 6; j++) {
      mixed[a * size + j] = own[0][a] * pose[0][j] + own[1][a] * pose[1][j] + own[2][a] * pose[2][j];
    }
  }
}

// Takes a symmetric information of y, (6 L, 6 L) for the L frames after a first view, upper half, and its half gradient
// to odom, and adds both to those of all N frames, upper half.
INLINE void into_odom(const State *at, int64_t frames, int64_t first, const double *own, const double *pull,
                      double *information, double *gradient) {
  const int64_t later = frames - first - 1, size = 6 * later, whole = 6 * frames;
  for (int64_t l = 0; l < later; l++) {
    const double *right = at->rotation + 9 * (first + 1 + l);
    double towards[36] = {0}, push[6];  // sum over k of L_k^T (block k, l)
    const double *p = pull + 6 * l;
    for (int i = 0; i < 6; i++) {
      const double *r = right + 3 * (i % 3), *from = p + i / 3 * 3;
      push[i] = r[0] * from[0] + r[1] * from[1] + r[2] * from[2];
      gradient[6 * (first + 1 + l) + i] += push[i];
    }
    for (int64_t k = 0; k < later; k++) {
      const double *left = at->rotation + 9 * (first + 1 + k);
      double block[36], half[36], turned[36], arm[3];
      for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 6; j++) {
          const int64_t row = 6 * k + i, column = 6 * l + j;
          block[6 * i + j] = row <= column ? own[row * size + column] : own[column * size + row];
        }
      }
      for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 6; j++) {
          const double *r = left + 3 * (i % 3), *from = block + i / 3 * 18 + j;
          half[6 * i + j] = r[0] * from[0] + r[1] * from[6] + r[2] * from[12];
        }
      }
      for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 6; j++) {
          const double *r = right + 3 * (j % 3), *from = half + 6 * i + j / 3 * 3;
          turned[6 * i + j] = r[0] * from[0] + r[1] * from[1] + r[2] * from[2];
        }
      }
      for (int i = 0; i < 3; i++) arm[i] = at->position[3 * (first + 1 + k) + i] - at->position[3 * first + i];
      for (int j = 0; j < 6; j++) {  // the transpose of a lever arm leaves forces, and adds their torques
        const double *f = turned + j;
        const double torque[3] = {arm[1] * f[12] - arm[2] * f[6], arm[2] * f[0] - arm[0] * f[12], arm[0] * f[6] - arm[1] * f[0]};
        for (int i = 0; i < 3; i++) {
          towards[6 * i + j] += f[6 * i];
          towards[18 + 6 * i + j] += f[18 + 6 * i] + torque[i];
        }
      }
      if (k > l) continue;
      for (int i = 0; i < 6; i++) {
        double *row = information + (6 * (first + 1 + k) + i) * whole + 6 * (first + 1 + l);
        for (int j = 0; j < 6; j++) row[j] += turned[6 * i + j];
      }
    }
    double arm[3];
    for (int i = 0; i < 3; i++) arm[i] = at->position[3 * (first + 1 + l) + i] - at->position[3 * first + i];
    for (int i = 0; i < 6; i++) {
      const double *t = towards + 6 * i;
      const double torque[3] = {arm[1] * t[2] - arm[2] * t[1], arm[2] * t[0] - arm[0] * t[2], arm[0] * t[1] - arm[1] * t[0]};
      double *row = information + (6 * first + i) * whole;
      for (int j = 0; j < 6; j++) row[6 * (first + 1 + l) + j] -= t[j];
      for (int j = 0; j < 3; j++) {
        row[6 * first + j] += t[j];
        row[6 * first + 3 + j] += t[3 + j] + torque[j];
      }
    }
    const double torque[3] = {arm[1] * push[2] - arm[2] * push[1], arm[2] * push[0] - arm[0] * push[2],
                              arm[0] * push[1] - arm[1] * push[0]};
    for (int i = 0; i < 3; i++) {
      gradient[6 * first + i] -= push[i];
      gradient[6 * first + 3 + i] -= push[3 + i] + torque[i];
    }
  }
}

// Eliminates a point: adds what is left of it to information (6 L, 6 L), upper half, and half gradient (6 L,) of the L
// frames after its first view. mixed: (4, 6 L), left divided by the point's triangle.
INLINE void eliminate(const Window *of, const State *at, int64_t p, const Passage *passages, double damping,
                      double *information, double *gradient, double *mixed, Eliminated *out) {
  const int64_t first = of->anchor[p], size = 6 * (of->frames - first - 1), points = of->points;
  double near[3], there[3], white[3], block[16] = {0}, pull[4] = {0};
  in_first_view(of, at, p, near);
  int64_t begin = 0, end = 0;
  for (int64_t k = first + 1; k < of->frames; k++) {
    const int64_t later = k - first - 1;
    if (!(of->inverse_sigma[3 * k * points + p] > 0)) continue;
    if (end == 0) begin = end = later;
    for (int a = 0; a < 4; a++) memset(mixed + a * size + 6 * end, 0, (size_t)(6 * (later - end)) * sizeof *mixed);
    const Passage *by = passages + first * of->frames + k;
    const double square = residual_of(of, at, p, k, by, near, there, white);
    const double length = sqrt(square > 1e-300 ? square : 1e-300);
    const double weight = of->kernel > 0 && length > of->kernel ? of->kernel / length : 1.0;
    add_observation(of, p, k, by, near, there, white, sqrt(weight * of->share[p]),
                    information + 6 * later * size + 6 * later, gradient + 6 * later, size, block, pull, mixed + 6 * later);
    end = later + 1;
  }
  const double share = of->share[p], d = at->points[2 * points + p], b = at->points[3 * points + p];
  const double once = share / (of->disparity_var[p] - of->shared_var[2 * points + p]), off = d + b - of->disparity[p];
  for (int i = 0; i < 3; i++) {  // errors that all sightings share
    const int a = i == 2 ? 3 : i;
    const double known = share / of->shared_var[i * points + p];
    block[5 * a] += known;
    pull[a] += known * at->points[a * points + p];
  }
  block[10] += once, block[14] += once, block[15] += once;
  pull[2] += once * off, pull[3] += once * off;
  for (int a = 0; a < 4; a++) block[5 * a] += damping * block[5 * a] + 1e-12;
  triangle_of_four(block);
  for (int a = 0; a < 4; a++) {
    double *row = mixed + a * size;
    for (int c = 0; c < a; c++) {
      const double factor = block[4 * a + c], *other = mixed + c * size;
      pull[a] -= factor * pull[c];
      for (int64_t j = 6 * begin; j < 6 * end; j++) row[j] -= factor * other[j];
    }
    const double factor = 1.0 / block[5 * a];
    pull[a] *= factor;
    for (int64_t j = 6 * begin; j < 6 * end; j++) row[j] *= factor;
  }
  const double *one = mixed, *two = mixed + size, *three = mixed + 2 * size, *four = mixed + 3 * size;
  for (int64_t i = 6 * begin; i < 6 * end; i++) {
    const double e = one[i], f = two[i], g = three[i], h = four[i];
    double *row = information + i * size;
    gradient[i] -= e * pull[0] + f * pull[1] + g * pull[2] + h * pull[3];
    for (int64_t j = i / 6 * 6; j < 6 * end; j++) row[j] -= e * one[j] + f * two[j] + g * three[j] + h * four[j];
  }
  memcpy(out->triangle, block, sizeof block);
  memcpy(out->pull, pull, sizeof pull);
  out->begin = begin, out->end = end;
}

// Doubles that `window_system` works in.
INLINE int64_t work_of_system(int64_t frames) { return 6 * frames * (6 * frames + 1); }

// The model of the cost about a state: information (6 N, 6 N) and half gradient (6 N,). eliminated: (P,) and mixed:
// (P, 4, 6 N), of which less is used, say how points follow the poses. Points left out stay where they are.
INLINE void window_system(const Window *of, const State *at, const Passage *passages, double damping, double *work,
                          double *information, double *gradient, Eliminated *eliminated, double *mixed) {
  const int64_t whole = 6 * of->frames;
  double *own = work, *pull = work + whole * whole;
  memset(information, 0, (size_t)(whole * whole) * sizeof *information);
  memset(gradient, 0, (size_t)whole * sizeof *gradient);
  for (int64_t p = 0; p < of->points;) {
    const int64_t first = of->anchor[p], size = whole - 6 * (first + 1);
    memset(own, 0, (size_t)(size * size) * sizeof *own);
    memset(pull, 0, (size_t)size * sizeof *pull);
    for (; p < of->points && of->anchor[p] == first; p++) {
      if (of->share[p] > 0) {
        eliminate(of, at, p, passages, damping, own, pull, mixed + 4 * whole * p, eliminated + p);
      } else {
        eliminated[p].end = -1;
      }
    }
    into_odom(at, of->frames, first, own, pull, information, gradient);
  }
  for (int64_t i = 0; i < whole; i++) {
    for (int64_t j = 0; j < i; j++) information[i * whole + j] = information[j * whole + i];
  }
}

#endif
