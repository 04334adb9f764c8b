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

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from macvo_ros.geometry.se3 import (
    exp_each_so3,
    exp_so3,
    inverse,
    lever_arm,
    log_so3,
    nearest_rotation,
    quaternion,
    renormalised,
    rotation_from_quaternion,
    transform,
)

vectors = arrays(np.float64, 3, elements=st.floats(-3.2, 3.2))


@given(vectors)
@settings(max_examples=200, deadline=None)
def test_exp_and_log_agree_with_scipy(w):
    rotation = exp_so3(w)
    np.testing.assert_allclose(rotation, Rotation.from_rotvec(w).as_matrix(), atol=1e-12)
    np.testing.assert_allclose(exp_so3(log_so3(rotation)), rotation, atol=1e-9)
    assert np.linalg.norm(log_so3(rotation)) <= np.pi + 1e-9


@given(vectors)
@settings(max_examples=200, deadline=None)
def test_quaternion_round_trip_near_half_turns(w):
    w = w / max(np.linalg.norm(w), 1e-9) * (np.pi - 1e-9)
    rotation = exp_so3(w)
    q = quaternion(rotation)
    assert q[3] >= 0
    assert abs(np.linalg.norm(q) - 1) < 1e-12
    np.testing.assert_allclose(rotation_from_quaternion(q), rotation, atol=1e-9)


def test_inverse_and_nearest_rotation():
    pose = transform(exp_so3(np.array([0.3, -0.2, 0.9])), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(pose @ inverse(pose), np.eye(4), atol=1e-12)
    bent = pose[:3, :3] + 1e-4 * np.random.default_rng(0).normal(size=(3, 3))
    mended = nearest_rotation(bent)
    np.testing.assert_allclose(mended @ mended.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(mended) > 0.999
    assert np.abs(mended - pose[:3, :3]).max() < 3e-4


def test_lever_arm_carries_the_error_of_a_pose_to_a_point_fixed_to_it():
    arm, error = np.array([0.8, -0.3, 1.1]), np.array([0.02, -0.01, 0.03, 1e-5, -2e-5, 3e-5])
    moved = error[:3] + (exp_so3(error[3:]) - np.eye(3)) @ arm
    np.testing.assert_allclose(lever_arm(arm) @ error, np.concatenate((moved, error[3:])), atol=1e-8)


def test_many_rotations_at_once_are_those_of_one():
    vectors = np.array([[0.3, -0.2, 0.9], [1e-9, 0.0, 2e-9], [0.0, 0.0, 0.0], [-2.0, 1.0, 0.5]])
    np.testing.assert_allclose(exp_each_so3(vectors), [exp_so3(each) for each in vectors], atol=1e-12)


def test_rounding_is_taken_off_rotations():
    rotation = exp_so3(np.array([0.3, -0.2, 0.9]))
    worn = rotation + np.random.default_rng(1).normal(0, 1e-6, (5, 3, 3))
    mended = renormalised(worn)
    assert np.abs(mended @ mended.transpose(0, 2, 1) - np.eye(3)).max() < 1e-10
    np.testing.assert_allclose(mended, rotation[None].repeat(5, axis=0), atol=5e-6)
