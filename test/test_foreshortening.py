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

"""Ground that rushes by: what the warp of a patch lacks without perspective, and that it is enough with it."""

from __future__ import annotations

import numpy as np
from test_patch_refinement import waves

from macvo_ros.geometry.camera import StereoCamera, pixels, rays
from macvo_ros.geometry.se3 import exp_so3, inverse, transform
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.foreshortening import expected_foreshortening, foreshortening
from macvo_ros.matching.patch_refinement import refine_matches

CAMERA = StereoCamera(fx=330.0, fy=330.0, cx=160.0, cy=-20.0, baseline=0.2, width=320, height=240)
MOTION = transform(exp_so3(np.array([0.01, -0.02, 0.005])), np.array([0.03, -0.02, 0.6]))
"""Of a car: the current camera in the reference one."""
NORMAL = np.array([0.05, 1.0, 0.1])
"""Of the ground, in the reference camera: points p with NORMAL p = 1 lie about a metre below."""


def on_ground(pixel: np.ndarray) -> np.ndarray:
    ray = rays(CAMERA, pixel)
    return ray / (ray @ NORMAL)[:, None]


def moved(pixel: np.ndarray) -> np.ndarray:
    """Where pixels of the ground go."""
    back = inverse(MOTION)
    return pixels(CAMERA, on_ground(pixel) @ back[:3, :3].T + back[:3, 3])


def rushing_pair() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Reference and current image of the ground, (H, W, 2) flow and (H, W) disparity of the reference."""
    v, u = np.mgrid[: CAMERA.height, : CAMERA.width].astype(np.float64)
    every = np.stack((u.ravel(), v.ravel()), axis=-1)
    # In the current camera the ground is NORMAL (R q + t) = 1.
    rest = 1.0 - NORMAL @ MOTION[:3, 3]
    ray = rays(CAMERA, every) @ MOTION[:3, :3].T
    source = pixels(CAMERA, ray * (rest / (ray @ NORMAL))[:, None] + MOTION[:3, 3])
    images = [waves(0.5 * at[:, 0], 0.5 * at[:, 1]).reshape(u.shape) for at in (every, source)]
    disparity = CAMERA.disparity(on_ground(every)[:, 2]).reshape(u.shape)
    return *images, (moved(every) - every).reshape(*u.shape, 2), disparity


def test_an_offset_goes_where_the_homography_of_the_plane_takes_it() -> None:
    pixel, offset = np.array([[60.0, 90.0], [250.0, 140.0]]), np.array([9.0, -14.0])
    step = 1e-4
    slope = np.stack(
        [
            (CAMERA.disparity(on_ground(pixel + a)[:, 2]) - CAMERA.disparity(on_ground(pixel)[:, 2])) / step
            for a in step * np.eye(2)
        ],
        axis=-1,
    )
    jacobian = np.stack([(moved(pixel + a) - moved(pixel - a)) / (2 * step) for a in step * np.eye(2)], axis=-1)
    found = foreshortening(CAMERA, MOTION, pixel, CAMERA.disparity(on_ground(pixel)[:, 2]), slope)
    expected = moved(pixel) + jacobian @ offset / (1 + found @ offset)[:, None]
    np.testing.assert_allclose(moved(pixel + offset), expected, atol=1e-3)
    affine = moved(pixel) + jacobian @ offset
    assert np.linalg.norm(moved(pixel + offset) - affine, axis=1).min() > 0.3


def test_patches_on_ground_that_rushes_by_are_not_biased() -> None:
    source, target, flow, disparity = rushing_pair()
    v, u = np.mgrid[60:140:8, 60:260:10].astype(np.float64)
    pixel = np.stack((u.ravel(), v.ravel()), axis=-1)
    truth = moved(pixel) - pixel
    blank = np.zeros((CAMERA.height, CAMERA.width), np.uint8)
    reference = StereoFrame(blank, blank, 0, CAMERA)
    to_right = -disparity[..., None].astype(np.float32)
    inside = ((pixel + truth > 15) & (pixel + truth < np.array((CAMERA.width, CAMERA.height)) - 16)).all(axis=1)
    assert inside.sum() > 60
    errors = []
    for motion in (None, MOTION):
        expected = expected_foreshortening(reference, motion, to_right, pixel)
        found = refine_matches(
            source.astype(np.float32), target.astype(np.float32), flow.astype(np.float32), pixel, axes=2, radius=12,
            stride=2, foreshortening=expected,
        )  # fmt: skip
        errors.append(
            ((found.displacement - truth) * truth).sum(axis=1)[inside] / np.linalg.norm(truth[inside], axis=1)
        )
    without, with_it = (float(np.median(each)) for each in errors)
    assert without > 0.1
    assert abs(with_it) < 0.1 * without
