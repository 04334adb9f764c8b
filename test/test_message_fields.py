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

"""The fields of our messages: definition against simulation, and the cloud bit by bit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import StereoFrame
from macvo_ros.motion.landmarks import Landmarks
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.message_fields import (
    CLOUD_FIELDS,
    UNKNOWN_VARIANCE,
    cloud_covariance,
    cloud_points,
    is_published,
    join_stamp,
    keypoint_cloud,
    measured_velocity,
    message_covariance,
    odometry_fields,
    split_stamp,
    status_fields,
    transform_cloud,
    twist,
)
from macvo_ros.odometry.status import Status
from macvo_ros.uncertainty.relative_motion import RelativeMotion
from macvo_ros.uncertainty.trajectory import MINIMUM_VARIANCE

vectors = st.lists(st.floats(-3, 3), min_size=3, max_size=3).map(np.array)


def rigid(rotation_vector, translation):
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec(rotation_vector).as_matrix()
    pose[:3, 3] = translation
    return pose


def random_covariance(rng, size, scale):
    root = rng.normal(size=(size, size)) * scale
    return root @ root.T


def estimate_of(relative=None, elapsed=0.0, pose=None, covariance=None, status=Status.TRACKING):
    camera = StereoCamera(100.0, 100.0, 4.0, 3.0, 0.1, 8, 6)
    image = np.zeros((6, 8), np.uint8)
    return Estimate(
        frame=StereoFrame(image, image, 1, camera),
        status=status,
        pose=np.eye(4) if pose is None else pose,
        covariance=np.zeros((6, 6)) if covariance is None else covariance,
        relative_base=relative,
        elapsed=elapsed,
    )


@settings(deadline=None)
@given(vectors.filter(lambda v: np.linalg.norm(v) < 3.1), vectors, st.floats(0.01, 1.0))
def test_twist_held_for_the_interval_makes_the_motion(rotation_vector, translation, elapsed):
    motion = rigid(rotation_vector, translation)
    linear, angular = twist(motion, elapsed)
    generator = np.zeros((4, 4))
    generator[:3, :3] = np.cross(np.eye(3), angular)
    generator[:3, 3] = linear
    np.testing.assert_allclose(expm(generator * elapsed), motion, atol=1e-7)


def test_a_velocity_that_nobody_measured_is_not_claimed():
    """One axis known to 1 cm/s, the others worse than unknown: only the known part of the velocity remains."""
    rng = np.random.default_rng(5)
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    covariance = (axes * np.array([1e-4, 2e3, 3e3, 5e3, 1e4, 1e5])) @ axes.T
    speed = rng.normal(size=6) * 100
    velocity, kept = measured_velocity(speed, covariance)
    np.testing.assert_allclose(axes[:, 0] @ velocity, axes[:, 0] @ speed)
    np.testing.assert_allclose(axes[:, 1:].T @ velocity, 0, atol=1e-6)
    np.testing.assert_allclose(axes[:, 0] @ kept @ axes[:, 0], 1e-4, rtol=1e-3)
    assert np.diag(kept).max() <= UNKNOWN_VARIANCE
    sure = random_covariance(rng, 6, 1.0)
    assert all(given is back for given, back in zip((speed, sure), measured_velocity(speed, sure), strict=True))


def test_two_stamps_hardly_apart_are_no_speed():
    """A centimetre in a microsecond, known to a millimetre: not ten kilometres a second, but unknown."""
    relative = RelativeMotion(rigid(np.zeros(3), [0.01, 0, 0]), np.eye(6) * 1e-6)
    fields = odometry_fields(estimate_of(relative, elapsed=1e-6))
    np.testing.assert_allclose(np.concatenate([fields.linear, fields.angular]), 0, atol=1e-9)
    assert 0 < fields.twist_covariance.max() <= UNKNOWN_VARIANCE


def test_twist_covariance_is_that_of_simulated_velocities():
    """Velocities recomputed from motions drawn with the stated error have the stated covariance, in current axes."""
    rng = np.random.default_rng(3)
    motion, elapsed = rigid([0.02, -0.05, 0.03], [0.4, 0.1, -0.2]), 0.1
    S = random_covariance(rng, 6, 1e-3)
    fields = odometry_fields(estimate_of(RelativeMotion(motion, S), elapsed))
    draws = rng.multivariate_normal(np.zeros(6), S, 20_000)
    samples = np.empty_like(draws)
    for sample, draw in zip(samples, draws, strict=True):
        moved = motion.copy()
        moved[:3, :3] = Rotation.from_rotvec(draw[3:]).as_matrix() @ motion[:3, :3]
        moved[:3, 3] += draw[:3]
        sample[:3], sample[3:] = twist(moved, elapsed)
    error = samples - np.concatenate([fields.linear, fields.angular])
    nees = np.einsum("ni,ij,nj->n", error, np.linalg.inv(fields.twist_covariance.reshape(6, 6)), error)
    assert nees.mean() == pytest.approx(6.0, abs=0.3)


def test_pose_fields_are_the_estimate_itself():
    rng = np.random.default_rng(1)
    pose, covariance = rigid([0.3, -1.0, 2.0], [1.0, 2.0, 3.0]), random_covariance(rng, 6, 0.1)
    fields = odometry_fields(estimate_of(pose=pose, covariance=covariance))
    np.testing.assert_array_equal(fields.position, pose[:3, 3])
    np.testing.assert_allclose(Rotation.from_quat(fields.orientation).as_matrix(), pose[:3, :3], atol=1e-12)
    np.testing.assert_allclose(fields.pose_covariance.reshape(6, 6), covariance, rtol=1e-12)


def test_first_frame_claims_no_velocity():
    fields = odometry_fields(estimate_of(status=Status.INITIALIZING))
    np.testing.assert_array_equal(fields.linear, 0)
    np.testing.assert_allclose(fields.twist_covariance.reshape(6, 6), UNKNOWN_VARIANCE * np.eye(6))
    assert np.linalg.eigvalsh(fields.pose_covariance.reshape(6, 6)).min() >= 0.999 * MINIMUM_VARIANCE


def test_covariance_is_made_symmetric_and_positive():
    skewed = np.diag([1.0, 2, 3, 4, 5, -1e-3])
    skewed[0, 1] = 0.2
    fixed = message_covariance(skewed).reshape(6, 6)
    np.testing.assert_array_equal(fixed, fixed.T)
    assert np.linalg.eigvalsh(fixed).min() > 0
    assert fixed[0, 1] == pytest.approx(0.1)


def test_lost_is_silence():
    assert [is_published(status) for status in Status] == [True, True, True, False]


@given(st.integers(0, 2**31 * 10**9 - 1))
def test_stamps_survive_to_the_nanosecond(stamp):
    assert join_stamp(*split_stamp(stamp)) == stamp


def landmarks(count=5):
    rng = np.random.default_rng(7)
    covariance = np.stack([random_covariance(rng, 3, 0.1) for _ in range(count)])
    pixel = rng.uniform(0, 5, (count, 2))
    return Landmarks(
        pixel=pixel,
        point=rng.normal(size=(count, 3)),
        covariance=covariance,
        match_sigma=rng.uniform(size=count),
        weight=np.ones(count),
        inlier=np.arange(count) != 2,
    )


def test_cloud_holds_inliers_with_colour_and_covariance():
    marks = landmarks()
    left = np.random.default_rng(0).integers(0, 255, (6, 8, 3), dtype=np.uint8)
    cloud = keypoint_cloud(marks, left)
    assert cloud.dtype.itemsize == 4 * len(CLOUD_FIELDS)
    np.testing.assert_array_equal(cloud_points(cloud), marks.point[marks.inlier].astype(np.float32))
    np.testing.assert_array_equal(cloud_covariance(cloud), marks.covariance[marks.inlier].astype(np.float32))
    u, v = np.rint(marks.pixel[0]).astype(int)
    packed = int(cloud["rgb"].view(np.uint32)[0])
    assert [packed >> 16, packed >> 8 & 255, packed & 255] == list(left[v, u])
    assert len(keypoint_cloud(None, left)) == 0


def test_status_counts_and_medians_are_of_the_inliers():
    marks = landmarks()
    estimate = dataclasses.replace(
        estimate_of(covariance=np.diag([1.0, 4, 9, 0.01, 0.04, 0.09])),
        landmarks=marks,
        timings={"match": 0.5, "total": 0.7},
    )
    fields = status_fields(estimate)
    assert (fields["state"], fields["keypoints"], fields["inliers"]) == (Status.TRACKING, 5, 4)
    assert fields["position_sigma"] == pytest.approx(3.0)
    assert fields["rotation_sigma"] == pytest.approx(0.3)
    assert (fields["match_time"], fields["core_time"], fields["pose_time"]) == (0.5, 0.7, 0.0)
    sigmas = [np.sqrt(np.linalg.eigvalsh(c)[-1]) for c in marks.covariance[marks.inlier]]
    assert fields["median_point_sigma"] == pytest.approx(np.median(sigmas))
    assert fields["median_match_sigma"] == pytest.approx(np.median(marks.match_sigma[marks.inlier]))
    assert np.isnan(status_fields(estimate_of())["median_point_sigma"])


def test_grey_cloud_is_grey():
    cloud = keypoint_cloud(landmarks(), np.full((6, 8), 0x7B, np.uint8))
    assert set(cloud["rgb"].view(np.uint32)) == {0x7B7B7B}


def test_moved_cloud_rotates_its_covariances():
    marks = landmarks()
    cloud = keypoint_cloud(marks, np.zeros((6, 8), np.uint8))
    transform = rigid([0.4, -0.2, 1.0], [1.0, -2.0, 3.0])
    moved = transform_cloud(cloud, transform)
    R = transform[:3, :3]
    expected = np.einsum("ij,njk,lk->nil", R, marks.covariance[marks.inlier], R)
    np.testing.assert_allclose(cloud_covariance(moved), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(cloud_points(moved), marks.point[marks.inlier] @ R.T + transform[:3, 3], atol=1e-5)
    np.testing.assert_array_equal(moved["rgb"].view(np.uint32), cloud["rgb"].view(np.uint32))
