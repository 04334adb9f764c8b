# Copyright 2026 macvo_ros contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

"""What may be wrong with the calibration of a rectified pair, as a few numbers, and what each does to matches.

A pixel is measured where it would be under a perfect calibration, plus an error of that place, the same in every frame:

    of both cameras     focal length f and radial distortion k1:   du = fx x (f + k1 r^2),  dv = fy y (f + k1 r^2)
                        and the principal point: du = centre_u,  dv = centre_v, which tilts every translation
    of the right one    rotation (pitch, yaw, roll) about its optical axes x, y, z, its own focal length, and how far
                        it stands ahead of the left one, as a share of the baseline: du = x d ahead
    of each             a smooth field: the polynomials of second to fifth degree that those leave

with (x, y) = ((u - cx) / fx, (v - cy) / fy). Rectification is never exact: on KITTI matches are off by up to a pixel
near the image's edges, which no turned camera and no low polynomial explains. Where the fields cannot follow that, it
passes for a focal length that nobody has (`python -m bench.calibration apparent`, KITTI 09: third and fifth degree).
The baseline is not among these: its error scales the whole world, and no image shows that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.polynomial.legendre import legvander

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.settings.config import CalibrationPriorConfig

Float64 = npt.NDArray[np.float64]

PHYSICAL = ("pitch", "yaw", "roll", "focal", "focal_right", "k1", "centre_u", "centre_v", "ahead")
PITCH, YAW, ROLL, FOCAL, FOCAL_RIGHT, K1, CENTRE_U, CENTRE_V, AHEAD = range(9)
FIELD_DEGREES = tuple((degree - j, j) for degree in range(2, 6) for j in range(degree + 1))
_FIELD = len(FIELD_DEGREES)
LEFT_U, LEFT_V, RIGHT_U = (slice(9 + i * _FIELD, 9 + (i + 1) * _FIELD) for i in range(3))
SIZE = 9 + 3 * _FIELD
CONSIDERED = (CENTRE_U, CENTRE_V)
"""Those that are not corrected, only in the covariance (`calibration_filter.py`)."""
SCALING = YAW
"""The one whose prior says how far off the scale of motions may be."""
PARTS = ((PITCH, ROLL), (YAW, FOCAL_RIGHT, AHEAD), (FOCAL, K1, CENTRE_U, CENTRE_V))
"""What is off together, if at all: the right camera across its rows, and along them; the lenses."""
FIELDS = tuple(range(len(PHYSICAL), SIZE))
ROWS = (PITCH, ROLL)
"""Those that the rows of stereo matches show."""
STANDS = (PITCH, YAW, ROLL, AHEAD)
"""Those of where the right camera stands, before any lens."""
ROTATIONS = [PITCH, YAW, ROLL]
"""Those that a knock changes."""


@dataclass(frozen=True, eq=False)
class Keypoints:
    """Matches of N keypoints: (N, 2) pixels and (N,) disparities, pixels, in the reference and the current frame."""

    pixel: Float64
    disparity: Float64
    matched: Float64
    matched_disparity: Float64


@dataclass(frozen=True, eq=False)
class CalibrationModel:
    """The errors of one pair of cameras as a vector of `SIZE` numbers: radians, shares of the focal length, pixels."""

    camera: StereoCamera

    def prior_sigma(self, prior: CalibrationPriorConfig) -> Float64:
        """(SIZE,) what each number may be, one sigma."""
        size = self.camera.width / 1000.0
        sigma = np.full(SIZE, prior.field * size)
        sigma[[PITCH, YAW, ROLL]] = np.radians([prior.pitch, prior.yaw, prior.roll])
        sigma[[FOCAL, FOCAL_RIGHT, K1]] = prior.focal, prior.focal_right, prior.k1
        sigma[[CENTRE_U, CENTRE_V]] = prior.centre * size
        sigma[AHEAD] = prior.ahead
        return sigma

    def corrected(self, points: Keypoints, error: Float64) -> Keypoints:
        """The matches without the effect of a (SIZE,) error of the calibration.

        The lens is last on the way of light, so first on the way back. What an error does is known of where things
        would be seen without it: found in two rounds.
        """
        for part in reversed(on_the_way(error)):
            seen = points
            for _ in range(2):
                moved = self._moved(points, part)
                points = Keypoints(*(at - by for at, by in zip(vars(seen).values(), moved, strict=True)))
        return points

    def distorted(self, points: Keypoints, error: Float64) -> Keypoints:
        """What is seen where a perfect calibration has `points`: the inverse of `corrected`."""
        for part in on_the_way(error):
            moved = self._moved(points, part)
            points = Keypoints(*(at + by for at, by in zip(vars(points).values(), moved, strict=True)))
        return points

    def _moved(self, points: Keypoints, error: Float64) -> tuple[Float64, ...]:
        """By how much an error moves pixels and disparities, in the order of `Keypoints`."""
        out = []
        for pixel, disparity in ((points.pixel, points.disparity), (points.matched, points.matched_disparity)):
            left, right = self._displacements(pixel, disparity)
            out += [np.column_stack((left[0] @ error, left[1] @ error)), left[0] @ error - right @ error]
        return tuple(out)

    def jacobian(self, points: Keypoints, reference: Float64, current: Float64, rotation: Float64) -> Float64:
        """(N, 3, SIZE) what a unit of each error adds to p - T q, metres.

        reference, current: (N, 3) points p, q, metres; rotation: (3, 3) of T. A pixel that is du too far is a point
        that is z du / fx too far; a disparity that is dd too large is a point that is nearer by its share dd / d.
        """
        out = self._point_jacobian(points.pixel, points.disparity, reference)
        later = self._point_jacobian(points.matched, points.matched_disparity, current)
        return np.asarray(out - rotation @ later)

    def _point_jacobian(self, pixel: Float64, disparity: Float64, point: Float64) -> Float64:
        (left_u, left_v), right = self._displacements(pixel, disparity)
        depth = point[:, 2]
        nearer = point * (depth / (self.camera.fx * self.camera.baseline))[:, None]
        out = -nearer[:, :, None] * (left_u - right)[:, None]
        out[:, 0] += (depth / self.camera.fx)[:, None] * left_u
        out[:, 1] += (depth / self.camera.fy)[:, None] * left_v
        return np.asarray(out)

    def _displacements(self, pixel: Float64, disparity: Float64) -> tuple[tuple[Float64, Float64], Float64]:
        """Pixels per unit of each error, (N, SIZE): along u and v in the left image, along u in the right one."""
        camera = self.camera
        left_u, left_v, right = (np.zeros((len(pixel), SIZE)) for _ in range(3))
        u, v = pixel[:, 0] - camera.cx, pixel[:, 1] - camera.cy
        x, y = u / camera.fx, v / camera.fy
        square = x * x + y * y
        left_u[:, CENTRE_U] = left_v[:, CENTRE_V] = right[:, CENTRE_U] = 1.0
        left_u[:, FOCAL], left_u[:, K1], left_u[:, LEFT_U] = u, u * square, polynomials(camera, u, v, FIELD_DEGREES)
        left_v[:, FOCAL], left_v[:, K1], left_v[:, LEFT_V] = v, v * square, left_u[:, LEFT_U]
        u = u - (disparity - camera.disparity_offset)
        x = u / camera.fx
        right[:, FOCAL] = right[:, FOCAL_RIGHT] = u
        right[:, AHEAD] = u * (disparity - camera.disparity_offset) / camera.fx
        right[:, K1] = u * (x * x + y * y)
        right[:, PITCH], right[:, YAW], right[:, ROLL] = camera.fx * x * y, -camera.fx * (1 + x * x), camera.fx * y
        right[:, RIGHT_U] = polynomials(camera, u, v, FIELD_DEGREES)
        return (left_u, left_v), right

    def left_displacement(self, pixel: Float64, error: Float64) -> Float64:
        """(N, 2) pixels by which a (SIZE,) error moves what is seen at (N, 2) pixels of the left image."""
        (u, v), _ = self._displacements(pixel, np.zeros(len(pixel)))
        return np.column_stack((u @ error, v @ error))

    def row_jacobian(self, pixel: Float64, disparity: Float64) -> Float64:
        """(N, 4) pixels by which matches leave their rows per unit of pitch, yaw, roll and focal_right."""
        camera = self.camera
        x = (pixel[:, 0] - disparity + camera.disparity_offset - camera.cx) / camera.fx
        y = (pixel[:, 1] - camera.cy) / camera.fy
        return np.asarray(camera.fy * np.column_stack((1 + y * y, -x * y, -x, y)))

    def near_rows(self, pixel: Float64, disparity: Float64) -> Float64:
        """(N, 2) pixels by which near matches, of (N, 2) left pixels, leave their rows per unit of k1 and of ahead.

        What is far leaves its row by a field over the image (`row_field.py`); beside it a lens that bends both images
        moves a near thing at two distances from their centres, and a camera that stands ahead sees it larger.
        """
        camera = self.camera
        near = (disparity - camera.disparity_offset) / camera.fx
        x = 2.0 * (pixel[:, 0] - camera.cx) / camera.fx - near  # of both images together
        larger = (pixel[:, 1] - camera.cy) * near
        return np.column_stack((-larger * x, larger))


def on_the_way(error: Float64) -> list[Float64]:
    """The parts of a (SIZE,) error as light meets them, without those that are none.

    Where the right camera stands comes first, then what lenses do to what is seen from there: beside a k1 of .01 one
    after the other and their sum differ by up to 3 % of either at the corners.
    """
    where_it_stands = np.isin(np.arange(SIZE), STANDS)
    parts = np.where(where_it_stands, error, 0.0), np.where(where_it_stands, 0.0, error)
    return [part for part in parts if part.any()]


def polynomials(camera: StereoCamera, u: Float64, v: Float64, degrees: tuple[tuple[int, int], ...]) -> Float64:
    """(N, M) products of Legendre polynomials of (N,) pixels from the centre: degree in u, degree in v, for each of M.

    They are at most 1 within the image, and have nothing in common over it: a coefficient is pixels at the edge.
    """
    highest = max(max(pair) for pair in degrees)
    along, down = (legvander(2.0 * at / size, highest) for at, size in ((u, camera.width), (v, camera.height)))
    i, j = np.array(degrees).T
    return np.asarray(along[:, i] * down[:, j])
