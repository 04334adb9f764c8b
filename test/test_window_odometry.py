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


"""The odometry with a window of frames: follows, is published causally, and is lost when it should be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_matches import motion_error

from macvo_ros.geometry.se3 import exp_so3, inverse, transform
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import ZED_X
from macvo_ros.settings.config import Config, build
from macvo_ros.settings.declaration import to_flat

FRAMES = 5
WINDOW = build(Config, {"window.frames": FRAMES})
SMALL = ZED_X.resized(480, 300)


@pytest.fixture(scope="module")
def corridor():
    return RenderedSequence("corridor", 26, 131, camera=SMALL, texels=512)


@pytest.fixture(scope="module")
def walked(corridor):
    """Estimates with the window, and with two frames."""
    odometries = StereoOdometry(WINDOW), StereoOdometry(build(Config, {"window.frames": 2}))
    return tuple([odometry.track(corridor[i]) for i in range(len(corridor))] for odometry in odometries)


def errors_over(estimates, truth, steps: int) -> np.ndarray:
    """(N - steps, 6) errors of the motion over so many frames."""
    poses = [estimate.pose for estimate in estimates]
    return np.array(
        [
            motion_error(inverse(truth[i]) @ truth[i + steps], inverse(poses[i]) @ poses[i + steps])
            for i in range(len(poses) - steps)
        ]
    )


def test_follows_the_walk(walked, corridor):
    """Over ten frames no worse than 1.5 times the two-frame odometry, which is near the noise of rendered images."""
    window, two = (errors_over(estimates, corridor.ground_truth, 10) for estimates in walked)
    assert np.linalg.norm(window[:, :3], axis=1).mean() < 1.5 * np.linalg.norm(two[:, :3], axis=1).mean()
    assert np.linalg.norm(window[:, 3:], axis=1).mean() < 1.5 * np.linalg.norm(two[:, 3:], axis=1).mean()
    assert all(estimate.status is Status.TRACKING for estimate in walked[0][1:])


@pytest.mark.parametrize("frames", [2, FRAMES])
def test_covariances_are_honest(corridor, frames):
    """Of the matches: that the calibration is perfect here is known, and told by its prior."""
    told = {name: 1e-6 for name in to_flat(WINDOW) if name.startswith("calibration.prior.")}
    truth, odometry = corridor.ground_truth, StereoOdometry(build(Config, {**told, "window.frames": frames}))
    estimates = [odometry.track(corridor[i]) for i in range(len(corridor))]
    motion, pose = [], []
    for i, estimate in enumerate(estimates[1:], start=1):
        error = motion_error(inverse(truth[i - 1]) @ truth[i], estimate.relative.motion)
        motion.append(error @ np.linalg.solve(estimate.relative.covariance, error))
        error = motion_error(inverse(truth[0]) @ truth[i], estimate.pose)
        pose.append(error @ np.linalg.solve(estimate.covariance, error))
    assert 1.6 < np.mean(motion) < 12.0
    assert np.mean(np.array(pose) < 22.46) > 0.9


def test_the_motion_is_the_step_between_published_poses(walked):
    for before, now in zip(walked[0], walked[0][1:], strict=False):
        step = inverse(before.pose) @ now.pose
        np.testing.assert_allclose(now.relative_base.motion, step, atol=1e-9)


def test_earlier_frames_are_corrected_not_the_published_ones(walked):
    stamps = [estimate.frame.stamp for estimate in walked[0]]
    published = {estimate.frame.stamp: estimate for estimate in walked[0]}
    changed = 0
    for index, estimate in enumerate(walked[0][2:], start=2):
        assert {stamp for stamp, _ in estimate.corrections} <= set(stamps[:index])
        assert 1 <= len(estimate.corrections) <= FRAMES
        for stamp, pose in estimate.corrections:
            was = published[stamp]
            off = motion_error(was.pose, pose)
            assert (np.abs(off) <= 5 * np.sqrt(was.covariance.diagonal()) + 1e-5).all()
            changed += bool(np.abs(off).max() > 0)
    assert changed


def test_the_base_is_where_the_camera_takes_it(walked, corridor):
    mounted = transform(exp_so3(np.array([0.2, -0.3, 0.1])), np.array([0.4, -0.2, 0.3]))
    odometry = StereoOdometry(WINDOW, mounted)
    for i in range(8):
        estimate = odometry.track(corridor[i])
    camera = walked[0][7].pose
    np.testing.assert_allclose(estimate.pose, mounted @ camera @ inverse(mounted), atol=1e-6)


def test_a_black_frame_ends_the_window(corridor):
    odometry = StereoOdometry(WINDOW)
    seen = []
    for i in range(9):
        frame = corridor[i]
        black = replace(frame, left=np.zeros_like(frame.left), right=np.zeros_like(frame.right))
        seen.append(odometry.track(black if i == 5 else frame))
    assert seen[5].status is Status.LOST
    assert not seen[5].corrections
    assert seen[6].status is Status.TRACKING
    assert not seen[6].corrections  # measured over the gap, by two frames
    assert {stamp for stamp, _ in seen[8].corrections} <= {corridor[6].stamp, corridor[7].stamp}
    off = motion_error(inverse(corridor.ground_truth[0]) @ corridor.ground_truth[8], seen[8].pose)
    assert (np.abs(off) < 4 * np.sqrt(seen[8].covariance.diagonal())).all()


def test_a_still_camera_does_not_drift():
    still = RenderedSequence("room", 25, 132, camera=SMALL, still=True, texels=512)
    odometry = StereoOdometry(WINDOW)
    estimates = [odometry.track(still[i]) for i in range(len(still))]
    assert np.linalg.norm(estimates[-1].pose[:3, 3]) < 1e-3
    assert np.trace(estimates[-1].covariance[:3, :3]) < 2 * np.trace(estimates[5].covariance[:3, :3]) + 1e-9


def test_same_frames_same_bits_after_a_reset(walked, corridor):
    odometry = StereoOdometry(WINDOW)
    for i in range(4):
        odometry.track(corridor[i])
    odometry.reset()
    for i in range(6):
        estimate = odometry.track(corridor[i])
        np.testing.assert_array_equal(estimate.pose, walked[0][i].pose)
        np.testing.assert_array_equal(estimate.covariance, walked[0][i].covariance)
