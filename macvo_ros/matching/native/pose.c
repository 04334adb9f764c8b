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

// Points of two frames in sigmas of their difference (`whitened` of motion/point_pairs.py), and the least squares made of
// that (`_system` and `_minimise` of motion/pose_solver.py).

#include "kernels.h"

// reference, current: (N, 3) metres, with covariances (N, 3, 3). rotation: (3, 3) and translation: (3,) of the motion.
// least: relative floor of the pivots. whitener: (N, 3, 3) inverse Cholesky factors of P + R Q R^T; residual: (N, 3) and
// square: (N,) of p - R q - t in units of it.
INLINE int macvo_whiten_body(const double *reference, const double *reference_cov, const double *current,
                             const double *current_cov, int64_t count, const double *rotation,
                             const double *translation, double least, double *whitener, double *residual,
                             double *square) {
  const double *r = rotation;
  for (int64_t n = 0; n < count; n++) {
    const double *p = reference + 3 * n, *q = current + 3 * n, *cov = current_cov + 9 * n, *own = reference_cov + 9 * n;
    double half[9], m[9];
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j < 3; j++) half[3 * i + j] = r[3 * i] * cov[j] + r[3 * i + 1] * cov[3 + j] + r[3 * i + 2] * cov[6 + j];
    }
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j <= i; j++) {
        m[3 * i + j] = own[3 * i + j] + half[3 * i] * r[3 * j] + half[3 * i + 1] * r[3 * j + 1] + half[3 * i + 2] * r[3 * j + 2];
      }
    }
    const double a = sqrt(m[0]), b = m[3] / a, d = m[6] / a;
    const double c = sqrt(fmax(m[4] - b * b, least * m[4])), e = (m[7] - d * b) / c;
    const double f = sqrt(fmax(m[8] - d * d - e * e, least * m[8]));
    double *w = whitener + 9 * n, *to = residual + 3 * n, apart[3];
    w[0] = 1 / a, w[1] = 0, w[2] = 0;
    w[3] = -b / (a * c), w[4] = 1 / c, w[5] = 0;
    w[6] = (b * e - c * d) / (a * c * f), w[7] = -e / (c * f), w[8] = 1 / f;
    for (int i = 0; i < 3; i++) {
      apart[i] = p[i] - (r[3 * i] * q[0] + r[3 * i + 1] * q[1] + r[3 * i + 2] * q[2]) - translation[i];
    }
    to[0] = w[0] * apart[0];
    to[1] = w[3] * apart[0] + w[4] * apart[1];
    to[2] = w[6] * apart[0] + w[7] * apart[1] + w[8] * apart[2];
    square[n] = to[0] * to[0] + to[1] * to[1] + to[2] * to[2];
  }
  return 0;
}

KERNEL(macvo_whiten,
       (const double *reference, const double *reference_cov, const double *current, const double *current_cov,
        int64_t count, const double *rotation, const double *translation, double least, double *whitener,
        double *residual, double *square),
       (reference, reference_cov, current, current_cov, count, rotation, translation, least, whitener, residual, square))

// The normal equations of one step, after `macvo_whiten`: of whitener: (N, 3, 3), residual: (N, 3) and square: (N,).
//
// at: (N, 3) points of the current frame that residuals are linearised at; rotation: (3, 3) of the motion. active: (N,)
// weights; kernel: of Huber, in sigmas, 0 for none. hessian: (6, 6), gradient: (6,) for [dt, dtheta] in reference axes.
INLINE int macvo_pose_system_body(const double *whitener, const double *residual, const double *square,
                                  const double *at, const double *active, int64_t count, const double *rotation,
                                  double kernel, double *hessian, double *gradient) {
  const double *r = rotation;
  for (int i = 0; i < 36; i++) hessian[i] = 0;
  for (int i = 0; i < 6; i++) gradient[i] = 0;
  for (int64_t n = 0; n < count; n++) {
    const double length = sqrt(fmax(square[n], 1e-300));
    const double weight = active[n] * (kernel > 0 && length > kernel ? kernel / length : 1.0);
    if (weight == 0) continue;
    double p[3];
    for (int i = 0; i < 3; i++) p[i] = r[3 * i] * at[3 * n] + r[3 * i + 1] * at[3 * n + 1] + r[3 * i + 2] * at[3 * n + 2];
    for (int k = 0; k < 3; k++) {
      const double *w = whitener + 9 * n + 3 * k;
      const double row[6] = {-w[0], -w[1], -w[2], w[1] * p[2] - w[2] * p[1], w[2] * p[0] - w[0] * p[2],
                             w[0] * p[1] - w[1] * p[0]};
      for (int i = 0; i < 6; i++) {
        const double scaled = weight * row[i];
        gradient[i] += scaled * residual[3 * n + k];
        for (int j = 0; j < 6; j++) hessian[6 * i + j] += scaled * row[j];
      }
    }
  }
  return 0;
}

KERNEL(macvo_pose_system,
       (const double *whitener, const double *residual, const double *square, const double *at, const double *active,
        int64_t count, const double *rotation, double kernel, double *hessian, double *gradient),
       (whitener, residual, square, at, active, count, rotation, kernel, hessian, gradient))

// `_huber_cost`.
INLINE double robust_cost(const double *square, const double *active, int64_t count, double kernel) {
  double cost = 0;
  for (int64_t n = 0; n < count; n++) {
    const double length = sqrt(square[n]);
    cost += active[n] * (kernel > 0 && length > kernel ? kernel * (2.0 * length - kernel) : square[n]);
  }
  return cost;
}

// `difference`: (6,) [dt, dtheta] from a (3, 4) motion to one of rotation r and translation t.
INLINE void offset_from(const double *from, const double *r, const double *t, double *offset) {
  double m[9], q[4] = {0, 0, 0, 1}, largest = -1;
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      m[3 * i + j] = r[3 * i] * from[4 * j] + r[3 * i + 1] * from[4 * j + 1] + r[3 * i + 2] * from[4 * j + 2];
    }
    offset[i] = t[i] - from[4 * i + 3];
  }
  // Four times each component of the quaternion times the largest one.
  const double rows[4][4] = {{1 + m[0] - m[4] - m[8], m[1] + m[3], m[2] + m[6], m[7] - m[5]},
                             {m[1] + m[3], 1 - m[0] + m[4] - m[8], m[5] + m[7], m[2] - m[6]},
                             {m[2] + m[6], m[5] + m[7], 1 - m[0] - m[4] + m[8], m[3] - m[1]},
                             {m[7] - m[5], m[2] - m[6], m[3] - m[1], 1 + m[0] + m[4] + m[8]}};
  for (int k = 0; k < 4; k++) {
    if (rows[k][k] > largest) largest = rows[k][k], memcpy(q, rows[k], sizeof q);
  }
  const double norm = copysign(sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]), q[3]);
  for (int k = 0; k < 4; k++) q[k] /= norm;
  const double length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2]);
  const double scale = length < 1e-12 ? 2.0 : 2.0 * atan2(length, q[3]) / length;
  for (int i = 0; i < 3; i++) offset[3 + i] = scale * q[i];
}

// x' A x of a (6, 6) A, and A x.
INLINE double quadratic(const double *a, const double *x, double *product) {
  double sum = 0;
  for (int i = 0; i < 6; i++) {
    product[i] = 0;
    for (int j = 0; j < 6; j++) product[i] += a[6 * i + j] * x[j];
    sum += x[i] * product[i];
  }
  return sum;
}

// `_minimise`: Levenberg-Marquardt from a rotation (3, 3) and translation (3,), in place.
//
// Points as for `macvo_whiten`, active and kernel as for `macvo_pose_system`. expected: (3, 4) motion of the prior and
// information: (6, 6) of it, or both NULL. tolerance: relative gain of the last step; most: iterations. taken: (1,) how
// many there were. Returns 0, or 1 where there is no memory.
INLINE int macvo_minimise_body(const double *reference, const double *reference_cov, const double *current,
                               const double *current_cov, const double *active, int64_t count, const double *expected,
                               const double *information, double kernel, double least, double tolerance, int most,
                               double *rotation, double *translation, int64_t *taken) {
  double *whitener = borrowed((13 * count + 1) * sizeof *whitener);
  if (!whitener) return 1;
  double *residual = whitener + 9 * count, *square = residual + 3 * count;
  double damping = 1e-6, offset[6], new_offset[6], pull[6];
  int64_t iterations = 0;
  if (expected) offset_from(expected, rotation, translation, offset);
  while (iterations < most) {
    double hessian[36], gradient[6], new_rotation[9], new_translation[3], cost, new_cost = 0;
    macvo_whiten_body(reference, reference_cov, current, current_cov, count, rotation, translation, least, whitener,
                      residual, square);
    cost = robust_cost(square, active, count, kernel);
    macvo_pose_system_body(whitener, residual, square, current, active, count, rotation, kernel, hessian, gradient);
    if (expected) {
      cost += quadratic(information, offset, pull);
      for (int i = 0; i < 36; i++) hessian[i] += information[i];
      for (int i = 0; i < 6; i++) gradient[i] += pull[i];
    }
    int accepted = 0;
    while (!accepted && iterations < most) {
      iterations++;
      double damped[36], step[6], turn[9];
      memcpy(damped, hessian, sizeof damped);
      for (int i = 0; i < 6; i++) {
        damped[7 * i] += damping * (hessian[7 * i] > 1e-12 ? hessian[7 * i] : 1e-12);
        step[i] = -gradient[i];
      }
      solve_six(damped, step);
      rotation_of(step + 3, turn);
      for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
          new_rotation[3 * i + j] =
              turn[3 * i] * rotation[j] + turn[3 * i + 1] * rotation[3 + j] + turn[3 * i + 2] * rotation[6 + j];
        }
        new_translation[i] = translation[i] + step[i];
      }
      for (int64_t n = 0; n < count; n++) {  // in the metric of the step's start
        const double *w = whitener + 9 * n, *q = current + 3 * n;
        double apart[3];
        for (int i = 0; i < 3; i++) {
          const double *r = new_rotation + 3 * i;
          apart[i] = reference[3 * n + i] - (r[0] * q[0] + r[1] * q[1] + r[2] * q[2]) - new_translation[i];
        }
        const double a = w[0] * apart[0], b = w[3] * apart[0] + w[4] * apart[1];
        const double c = w[6] * apart[0] + w[7] * apart[1] + w[8] * apart[2];
        square[n] = a * a + b * b + c * c;
      }
      new_cost = robust_cost(square, active, count, kernel);
      if (expected) {
        offset_from(expected, new_rotation, new_translation, new_offset);
        new_cost += quadratic(information, new_offset, pull);
      }
      accepted = new_cost <= cost;
      if (!accepted) damping *= 10.0;
      if (!accepted && damping > 1e8) break;
    }
    if (!accepted) break;
    memcpy(rotation, new_rotation, sizeof new_rotation);
    memcpy(translation, new_translation, sizeof new_translation);
    memcpy(offset, new_offset, sizeof offset);
    damping = damping * 0.1 > 1e-9 ? damping * 0.1 : 1e-9;
    if (cost - new_cost <= tolerance * cost + 1e-12) break;
  }
  *taken = iterations;
  give_back(whitener);
  return 0;
}

KERNEL(macvo_minimise,
       (const double *reference, const double *reference_cov, const double *current, const double *current_cov,
        const double *active, int64_t count, const double *expected, const double *information, double kernel,
        double least, double tolerance, int most, double *rotation, double *translation, int64_t *taken),
       (reference, reference_cov, current, current_cov, active, count, expected, information, kernel, least, tolerance,
        most, rotation, translation, taken))
