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

// By how many pixels an error of the calibration moves what is seen: `_shift` of motion/calibration_shift.py.

#include "kernels.h"

enum { POWERS = 8 };  // of a polynomial, at most

// sum over i, j of field[i, j] x^i y^j, of (size, size) coefficients.
INLINE double polynomial(const double *field, int size, const double *x, const double *y) {
  double sum = 0;
  for (int i = 0; i < size; i++) {
    double along = 0;
    for (int j = 0; j < size; j++) along += field[i * size + j] * y[j];
    sum += x[i] * along;
  }
  return sum;
}

// lens: fx, fy, cx, cy, disparity at infinity, width, height. error: focal, k1, centre_u, centre_v, pitch, yaw, roll,
// ahead, focal_right. fields: (3, size, size) coefficients of left u and v and of right u; size at most 8. seen: (3, N) u,
// v and disparity; shift: (3, N) what the error adds to them.
INLINE int macvo_calibration_shift_body(const double *lens, const double *error, const double *fields, int size,
                                        const double *seen, int64_t count, double *shift) {
  const double fx = lens[0], fy = lens[1];
  for (int64_t n = 0; n < count; n++) {
    const double u = seen[n] - lens[2], v = seen[count + n] - lens[3], near = seen[2 * count + n] - lens[4];
    const double other = u - near, x = u / fx, y = v / fy, x_right = other / fx;  // other: along the row of the right image
    double along[POWERS], down[POWERS], along_right[POWERS];
    along[0] = down[0] = along_right[0] = 1.0;
    for (int i = 1; i < size; i++) {
      along[i] = along[i - 1] * (2.0 * u / lens[5]);
      down[i] = down[i - 1] * (2.0 * v / lens[6]);
      along_right[i] = along_right[i - 1] * (2.0 * other / lens[5]);
    }
    const double radial = error[0] + error[1] * (x * x + y * y);
    shift[n] = u * radial + error[2] + polynomial(fields, size, along, down);
    shift[count + n] = v * radial + error[3] + polynomial(fields + size * size, size, along, down);
    const double turned = error[4] * x_right * y - error[5] * (1.0 + x_right * x_right) + error[6] * y;
    double right = other * (error[0] + error[8] + error[7] * near / fx + error[1] * (x_right * x_right + y * y));
    right += fx * turned + error[2] + polynomial(fields + 2 * size * size, size, along_right, down);
    shift[2 * count + n] = shift[n] - right;
  }
  return 0;
}

KERNEL(macvo_calibration_shift,
       (const double *lens, const double *error, const double *fields, int size, const double *seen, int64_t count,
        double *shift),
       (lens, error, fields, size, seen, count, shift))
