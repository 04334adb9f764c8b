from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from macvo_ros.se3 import exp_so3, inverse, log_so3, nearest_rotation, quaternion, rotation_from_quaternion, transform

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
