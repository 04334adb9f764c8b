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

"""The readers against real data: rows agree, and the truth is in the frame of the images."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from macvo_ros.geometry.se3 import inverse, log_so3, transform
from macvo_ros.images.frame import Image, StereoFrame
from macvo_ros.sequences import Sequence, open_sequence
from macvo_ros.sequences.euroc import open_euroc
from macvo_ros.sequences.tartanair_truth import TartanAirTruth


def grey(image: Image) -> Image:
    return cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) if image.ndim == 3 else image


def track(first: Image, second: Image, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """KLT with back-check: (N, 2) points in the second image and (N,) whether to trust them."""
    options = {"winSize": (21, 21), "maxLevel": 4}
    forward, good, _ = cv2.calcOpticalFlowPyrLK(first, second, points, None, **options)
    back, good_back, _ = cv2.calcOpticalFlowPyrLK(second, first, forward, None, **options)
    near = np.abs(back - points).reshape(-1, 2).max(axis=1) < 0.3
    return forward.reshape(-1, 2), (good.ravel() > 0) & (good_back.ravel() > 0) & near


def corners(image: Image) -> np.ndarray:
    return cv2.goodFeaturesToTrack(image, 1000, 0.005, 8).reshape(-1, 1, 2)


def motion(first: StereoFrame, second: StereoFrame) -> np.ndarray:
    """(4, 4) pose of the second left camera in the first, by KLT and PnP."""
    camera = first.camera
    left, right, after = grey(first.left), grey(first.right), grey(second.left)
    points = corners(left)
    in_right, good_right = track(left, right, points)
    in_after, good_after = track(left, after, points)
    pixel = points.reshape(-1, 2)
    disparity = pixel[:, 0] - in_right[:, 0]
    keep = good_right & good_after & (disparity > 1) & (np.abs(pixel[:, 1] - in_right[:, 1]) < 1.5)
    rays = np.column_stack([(pixel - (camera.cx, camera.cy)) / (camera.fx, camera.fy), np.ones(len(pixel))])
    world = (rays * camera.depth(disparity)[:, None])[keep]
    cv2.setRNGSeed(0)
    _, turn, shift, inliers = cv2.solvePnPRansac(
        world, in_after[keep], camera.K, None, reprojectionError=1.0, iterationsCount=200
    )
    chosen = inliers.ravel()
    turn, shift = cv2.solvePnPRefineLM(world[chosen], in_after[keep][chosen], camera.K, None, turn, shift)
    return inverse(transform(cv2.Rodrigues(turn)[0], shift.ravel()))


def motions(sequence: Sequence, step: int) -> dict[int, np.ndarray]:
    """Measured motion from frame i to i + step, for every step-th i."""
    return {i: motion(sequence[i], sequence[i + step]) for i in range(0, len(sequence) - step, step)}


def errors(measured: dict[int, np.ndarray], truth: np.ndarray, step: int) -> tuple[float, float]:
    """Mean error of the measured motions against `truth`: degrees, and share of the distance."""
    true = {i: inverse(truth[i]) @ truth[i + step] for i in measured}
    wrong = [inverse(true[i]) @ measured[i] for i in measured]
    turns = [np.degrees(np.linalg.norm(log_so3(error[:3, :3]))) for error in wrong]
    shifts = [np.linalg.norm(error[:3, 3]) for error in wrong]
    lengths = [np.linalg.norm(pose[:3, 3]) for pose in true.values()]
    return float(np.mean(turns)), float(np.sum(shifts) / np.sum(lengths))


@pytest.mark.parametrize(
    ("name", "step", "degrees", "share", "rows"),
    [
        ("tartanair2_abs_P000", 2, 0.1, 0.03, 0.3),
        ("euroc_mh01_clip", 10, 0.1, 0.06, 0.3),
        ("kitti_clip_a", 5, 0.25, 0.04, 0.5),
    ],
)
def test_images_and_truth_agree(
    shared_data: Path, name: str, step: int, degrees: float, share: float, rows: float
) -> None:
    sequence = open_sequence(shared_data / name)
    frame = sequence[0]
    points = corners(grey(frame.left))
    in_right, good = track(grey(frame.left), grey(frame.right), points)
    assert np.median(np.abs(points.reshape(-1, 2) - in_right)[good, 1]) < rows
    assert sequence.ground_truth is not None
    turn, shift = errors(motions(sequence, step), sequence.ground_truth, step)
    assert turn < degrees
    assert shift < share


def test_forgetting_the_rectifying_rotation_is_worse(shared_data: Path) -> None:
    sequence = open_euroc(shared_data / "euroc_mh01_clip")
    assert sequence.rectifier is not None
    assert sequence.ground_truth is not None
    assert np.degrees(np.linalg.norm(log_so3(sequence.rectifier.R_left))) == pytest.approx(0.62, abs=0.02)
    forgetful = sequence.ground_truth @ transform(sequence.rectifier.R_left, np.zeros(3))
    measured = motions(sequence, 5)
    assert errors(measured, sequence.ground_truth, 5)[0] < 0.85 * errors(measured, forgetful, 5)[0]


def test_tartanair_flow_depth_and_poses_are_one_geometry(shared_data: Path) -> None:
    """Depth moved by the poses is the stored flow to its last bit: camera, axes and file formats are all right."""
    folder = shared_data / "tartanair2_abs_P000"
    sequence, dense = open_sequence(folder), TartanAirTruth(folder)
    assert sequence.ground_truth is not None
    camera = sequence.camera
    flow, valid = dense.flow(3)
    v, u = np.mgrid[: camera.height, : camera.width]
    rays = np.stack([(u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, np.ones(u.shape)], axis=2)
    move = inverse(sequence.ground_truth[4]) @ sequence.ground_truth[3]
    points = (rays * dense.depth(3)[..., None]) @ move[:3, :3].T + move[:3, 3]
    rigid = points[..., :2] / points[..., 2:] * (camera.fx, camera.fy) + (camera.cx, camera.cy) - np.stack([u, v], 2)
    assert np.median(np.abs(rigid - flow)[valid]) < 1 / 128


def test_tartanair_disparity_is_that_of_the_images(shared_data: Path) -> None:
    folder = shared_data / "tartanair2_abs_P000"
    frame, dense = open_sequence(folder)[3], TartanAirTruth(folder)
    points = corners(grey(frame.left))
    in_right, good = track(grey(frame.left), grey(frame.right), points)
    pixel = points.reshape(-1, 2)[good]
    column, row = pixel.round().astype(int).T
    assert np.median(np.abs(pixel[:, 0] - in_right[good, 0] - dense.disparity(3)[row, column])) < 0.35
