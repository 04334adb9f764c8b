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

// A window of frames: its quadratic model and its minimum, `linearise` of motion/window_system.py and
// `_Problem.minimise` of motion/window_solver.py.

#include "window_system.h"

// The model of a window, points eliminated. Arguments as in `Window` and `State`; damping: of points. information:
// (6 N, 6 N), gradient: (6 N,). Returns 0, or 1 where there is no memory.
INLINE int macvo_window_system_body(const double *camera, int64_t frames, int64_t points, const int64_t *anchor,
                                    const double *pixel, const double *disparity, const double *disparity_var,
                                    const double *shared_var, const double *seen, const double *inverse_sigma,
                                    const double *share, double kernel, double least, double *rotation, double *position,
                                    double *state, double damping, double *information, double *gradient) {
  const Window of = {camera, frames, points, anchor, pixel, disparity, disparity_var, shared_var, seen, inverse_sigma,
                     share, kernel, least};
  const State at = {rotation, position, state};
  const int64_t numbers = work_of_system(frames) + 24 * frames * points;
  const size_t bytes = (size_t)numbers * sizeof(double) + (size_t)(frames * frames) * sizeof(Passage);
  double *work = borrowed(bytes + (size_t)points * sizeof(Eliminated));
  if (!work) return 1;
  Passage *passages = (Passage *)(work + numbers);
  all_passages(&at, frames, passages);
  window_system(&of, &at, passages, damping, work, information, gradient, (Eliminated *)(passages + frames * frames),
                work + work_of_system(frames));
  give_back(work);
  return 0;
}

KERNEL(macvo_window_system,
       (const double *camera, int64_t frames, int64_t points, const int64_t *anchor, const double *pixel,
        const double *disparity, const double *disparity_var, const double *shared_var, const double *seen,
        const double *inverse_sigma, const double *share, double kernel, double least, double *rotation,
        double *position, double *state, double damping, double *information, double *gradient),
       (camera, frames, points, anchor, pixel, disparity, disparity_var, shared_var, seen, inverse_sigma, share, kernel,
        least, rotation, position, state, damping, information, gradient))

// The state after (6 N,) `step` of the poses, and what it means for the points.
INLINE void moved_by(const Window *of, const State *from, const double *step, const Eliminated *eliminated,
                     const double *mixed, double *relative, const State *to) {
  const int64_t frames = of->frames, points = of->points;
  for (int64_t k = 0; k < frames; k++) {
    double turn[9];
    rotation_of(step + 6 * k + 3, turn);
    for (int i = 0; i < 3; i++) {
      const double *r = from->rotation + 9 * k;
      for (int j = 0; j < 3; j++) {
        to->rotation[9 * k + 3 * i + j] = turn[3 * i] * r[j] + turn[3 * i + 1] * r[3 + j] + turn[3 * i + 2] * r[6 + j];
      }
      to->position[3 * k + i] = from->position[3 * k + i] + step[6 * k + i];
    }
  }
  int64_t prepared = -1;
  for (int64_t p = 0; p < points; p++) {
    const int64_t first = of->anchor[p], size = 6 * (frames - first - 1);
    if (first != prepared) {  // y of all later frames
      for (int64_t k = first + 1; k < frames; k++) {
        const double *r = from->rotation + 9 * k, *x = step + 6 * k, *o = step + 6 * first;
        double arm[3], apart[6];
        for (int i = 0; i < 3; i++) arm[i] = from->position[3 * k + i] - from->position[3 * first + i];
        const double lever[3] = {arm[1] * o[5] - arm[2] * o[4], arm[2] * o[3] - arm[0] * o[5], arm[0] * o[4] - arm[1] * o[3]};
        for (int i = 0; i < 3; i++) {
          apart[i] = x[i] - o[i] + lever[i];
          apart[3 + i] = x[3 + i] - o[3 + i];
        }
        double *y = relative + 6 * (k - first - 1);
        for (int i = 0; i < 6; i++) {
          const double *c = apart + i / 3 * 3;
          y[i] = r[i % 3] * c[0] + r[3 + i % 3] * c[1] + r[6 + i % 3] * c[2];
        }
      }
      prepared = first;
    }
    double change[4] = {0};
    const Eliminated *e = eliminated + p;
    if (e->end >= 0) {
      const double *rows = mixed + 24 * frames * p;
      for (int a = 0; a < 4; a++) {
        change[a] = e->pull[a];
        for (int64_t j = 6 * e->begin; j < 6 * e->end; j++) change[a] += rows[a * size + j] * relative[j];
      }
      for (int a = 3; a >= 0; a--) {
        for (int c = a + 1; c < 4; c++) change[a] -= e->triangle[4 * c + a] * change[c];
        change[a] /= e->triangle[5 * a];
      }
    }
    for (int a = 0; a < 4; a++) to->points[a * points + p] = from->points[a * points + p] - change[a];
    const double least = of->camera[5] + of->least;
    if (to->points[2 * points + p] < least) to->points[2 * points + p] = least;
  }
}

// What a prior says of a state: `PosePrior.at`. known: frames it knows, at rotation (n, 3, 3) and position (n, 3);
// information: (6 N, 6 N), gradient: (6 N,). Returns its cost; pull: (6 N,) half its gradient there.
INLINE double prior_cost(int64_t frames, int64_t known, const double *rotation, const double *position,
                         const double *information, const double *gradient, const State *at, double *off, double *pull) {
  const int64_t size = 6 * frames;
  memset(off, 0, (size_t)size * sizeof *off);
  for (int64_t k = 0; k < known; k++) {
    double turned[9], *x = off + 6 * k;
    const double *now = at->rotation + 9 * k, *then = rotation + 9 * k;
    for (int i = 0; i < 3; i++) {
      x[i] = at->position[3 * k + i] - position[3 * k + i];
      for (int j = 0; j < 3; j++) {
        turned[3 * i + j] = now[3 * i] * then[3 * j] + now[3 * i + 1] * then[3 * j + 1] + now[3 * i + 2] * then[3 * j + 2];
      }
    }
    const double axis[3] = {0.5 * (turned[7] - turned[5]), 0.5 * (turned[2] - turned[6]), 0.5 * (turned[3] - turned[1])};
    const double length = sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]);
    const double sine = length > 1e-12 ? length : 1e-12, scale = asin(sine < 1.0 ? sine : 1.0) / sine;
    for (int i = 0; i < 3; i++) x[3 + i] = axis[i] * scale;
  }
  double cost = 0;
  for (int64_t i = 0; i < size; i++) {
    double sum = gradient[i];
    for (int64_t j = 0; j < 6 * known; j++) sum += information[i * size + j] * off[j];
    pull[i] = sum;
    cost += off[i] * (sum + gradient[i]);
  }
  return cost;
}

// step becomes -x of A x = gradient but for the first frame, which stays, with A the (6 N, 6 N) information, damped;
// scaled to a unit diagonal first, for metres and radians differ by decades; nan where A is not positive. matrix: as
// large as A, scale: (6 N,), both are overwritten.
INLINE void damped_step(int64_t frames, const double *information, const double *gradient, double damping, double *matrix,
                        double *scale, double *step) {
  const int64_t whole = 6 * frames;
  for (int64_t i = 6; i < whole; i++) {
    const double diagonal = information[i * whole + i] * (1.0 + damping);
    scale[i] = 1.0 / sqrt(diagonal > 1e-300 ? diagonal : 1e-300);
  }
  memset(step, 0, 6 * sizeof *step);
  for (int64_t i = 6; i < whole; i++) {
    double *row = matrix + i * whole;
    for (int64_t j = 6; j <= i; j++) {
      const double *other = matrix + j * whole;
      double sum = information[i * whole + j] * (i == j ? 1.0 + damping : 1.0) * scale[i] * scale[j];
      for (int64_t k = 6; k < j; k++) sum -= row[k] * other[k];
      row[j] = i == j ? (sum > 0 ? sqrt(sum) : NAN) : sum / other[j];
    }
    double sum = -gradient[i] * scale[i];
    for (int64_t k = 6; k < i; k++) sum -= row[k] * step[k];
    step[i] = sum / row[i];
  }
  for (int64_t i = whole - 1; i >= 6; i--) {
    double sum = step[i];
    for (int64_t k = i + 1; k < whole; k++) sum -= matrix[k * whole + i] * step[k];
    step[i] = sum / matrix[i * whole + i];
  }
  for (int64_t i = 6; i < whole; i++) step[i] *= scale[i];
}

// Levenberg-Marquardt from a state, in place. Arguments as in `Window` and `State`, and for the prior as in `prior_cost`.
// It ends where a step gains no more than `enough`, or `part` of the cost, or after `most` iterations. squared: (N, P)
// squared residuals, 0 where nothing was observed; information: (6 N, 6 N) before the last step, with the prior's;
// taken: (1,) iterations. Returns 0, or 1 where there is no memory.
INLINE int macvo_window_minimise_body(const double *camera, int64_t frames, int64_t points, const int64_t *anchor,
                                      const double *pixel, const double *disparity, const double *disparity_var,
                                      const double *shared_var, const double *seen, const double *inverse_sigma,
                                      const double *share, double kernel, double least, int64_t known,
                                      const double *prior_rotation, const double *prior_position,
                                      const double *prior_information, const double *prior_gradient, double enough,
                                      double part, int most, double *rotation, double *position, double *state,
                                      double *squared, double *information, int64_t *taken) {
  const Window of = {camera, frames, points, anchor, pixel, disparity, disparity_var, shared_var, seen, inverse_sigma,
                     share, kernel, least};
  const int64_t whole = 6 * frames, work_size = work_of_system(frames), poses = 12 * frames;
  const int64_t numbers = work_size + 24 * frames * points + 6 * whole + poses + (4 + frames) * points;
  const size_t bytes = (size_t)numbers * sizeof(double) + (size_t)(frames * frames) * sizeof(Passage);
  double *work = borrowed(bytes + (size_t)points * sizeof(Eliminated));
  if (!work) return 1;
  double *mixed = work + work_size, *step = mixed + 24 * frames * points, *gradient = step + whole;
  double *pull = gradient + whole, *new_pull = pull + whole, *off = new_pull + whole, *relative = off + whole;
  double *new_squared = relative + whole, *new_state = new_squared + frames * points, *new_poses = new_state + 4 * points;
  Passage *passages = (Passage *)(work + numbers);
  Eliminated *eliminated = (Eliminated *)(passages + frames * frames);
  const State at = {rotation, position, state}, moved = {new_poses, new_poses + 9 * frames, new_state};
  double damping = 1e-6, gain = -1.0;
  all_passages(&at, frames, passages);
  double cost = window_cost(&of, &at, passages, squared);
  cost += prior_cost(frames, known, prior_rotation, prior_position, prior_information, prior_gradient, &at, off, pull);
  int64_t iterations = 0;
  do {
    iterations++;
    all_passages(&at, frames, passages);
    window_system(&of, &at, passages, damping, work, information, gradient, eliminated, mixed);
    for (int64_t i = 0; i < whole * whole; i++) information[i] += prior_information[i];
    for (int64_t i = 0; i < whole; i++) gradient[i] += pull[i];
    damped_step(frames, information, gradient, damping, work, off, step);
    moved_by(&of, &at, step, eliminated, mixed, relative, &moved);
    all_passages(&moved, frames, passages);
    double new_cost = window_cost(&of, &moved, passages, new_squared);
    new_cost += prior_cost(frames, known, prior_rotation, prior_position, prior_information, prior_gradient, &moved, off,
                           new_pull);
    gain = cost - new_cost;
    if (gain >= 0) {
      memcpy(rotation, moved.rotation, (size_t)(9 * frames) * sizeof *rotation);
      memcpy(position, moved.position, (size_t)(3 * frames) * sizeof *position);
      memcpy(state, new_state, (size_t)(4 * points) * sizeof *state);
      memcpy(squared, new_squared, (size_t)(frames * points) * sizeof *squared);
      memcpy(pull, new_pull, (size_t)whole * sizeof *pull);
      cost = new_cost;
      damping = damping * 0.1 > 1e-9 ? damping * 0.1 : 1e-9;
    } else {
      damping *= 100.0;
    }
  } while (!(gain >= 0 && gain <= (part * cost > enough ? part * cost : enough)) && iterations < most && !(damping > 1e8));
  *taken = iterations;
  give_back(work);
  return 0;
}

KERNEL(macvo_window_minimise,
       (const double *camera, int64_t frames, int64_t points, const int64_t *anchor, const double *pixel,
        const double *disparity, const double *disparity_var, const double *shared_var, const double *seen,
        const double *inverse_sigma, const double *share, double kernel, double least, int64_t known,
        const double *prior_rotation, const double *prior_position, const double *prior_information,
        const double *prior_gradient, double enough, double part, int most, double *rotation, double *position,
        double *state, double *squared, double *information, int64_t *taken),
       (camera, frames, points, anchor, pixel, disparity, disparity_var, shared_var, seen, inverse_sigma, share, kernel,
        least, known, prior_rotation, prior_position, prior_information, prior_gradient, enough, part, most, rotation,
        position, state, squared, information, taken))
