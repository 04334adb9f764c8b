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

"""Look-up of static transforms without tf2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("geometry_msgs", reason="ROS 2 is not installed; run `make build`")

from macvo_ros.geometry.se3 import exp_so3, inverse, transform
from macvo_ros.ros.transforms import Buffer, TransformException, transform_matrix, write_transform


def stamped(parent: str, child: str, pose: np.ndarray):
    from geometry_msgs.msg import TransformStamped

    message = TransformStamped(child_frame_id=child)
    message.header.frame_id = parent
    write_transform(message.transform, pose)
    return message


def random_pose(seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return transform(exp_so3(generator.normal(size=3)), generator.normal(size=3))


@settings(deadline=None)
@given(seed=st.integers(0, 10**6), parents=st.lists(st.integers(0, 100), min_size=1, max_size=8))
def test_any_tree_any_two_frames(seed, parents):
    """In a random tree, the look-up equals the difference of the poses in the root."""
    buffer, in_root = Buffer(), [np.eye(4)]
    for child, draw in enumerate(parents, 1):
        parent, pose = draw % child, random_pose(seed + child)
        in_root.append(in_root[parent] @ pose)
        buffer.set_transform_static(stamped(f"f{parent}", f"f{child}", pose), "test")
    target, source = seed % len(in_root), (seed // 7) % len(in_root)
    found = transform_matrix(buffer.lookup_transform(f"f{target}", f"f{source}", None).transform)
    np.testing.assert_allclose(found, inverse(in_root[target]) @ in_root[source], atol=1e-9)


def test_a_leading_slash_is_the_same_frame():
    buffer = Buffer()
    buffer.set_transform_static(stamped("/base", "camera", random_pose(1)), "test")
    assert buffer.lookup_transform("base", "/camera", None).header.frame_id == "base"


def test_unconnected_frames_are_named():
    buffer = Buffer()
    with pytest.raises(TransformException, match="known frames: none"):
        buffer.lookup_transform("base", "camera", None)
    buffer.set_transform_static(stamped("base", "imu", random_pose(1)), "test")
    buffer.set_transform_static(stamped("rig", "camera", random_pose(2)), "test")
    with pytest.raises(TransformException, match=r"'camera' to 'base'.*base, camera, imu, rig"):
        buffer.lookup_transform("base", "camera", None)


def test_impossible_transforms_are_left_out():
    buffer = Buffer()
    broken = stamped("base", "camera", np.eye(4))
    broken.transform.rotation.w = 0.0
    buffer.set_transform_static(broken, "test")
    broken = stamped("base", "camera", np.eye(4))
    broken.transform.translation.x = float("nan")
    buffer.set_transform_static(broken, "test")
    with pytest.raises(TransformException):
        buffer.lookup_transform("base", "camera", None)


def test_a_loop_is_refused_not_followed():
    buffer = Buffer()
    buffer.set_transform_static(stamped("a", "b", np.eye(4)), "test")
    buffer.set_transform_static(stamped("b", "a", np.eye(4)), "test")
    buffer.set_transform_static(stamped("x", "y", np.eye(4)), "test")
    with pytest.raises(TransformException, match="loop"):
        buffer.lookup_transform("x", "a", None)


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10**6))
def test_tf2_finds_the_same(seed):
    tf2_ros = pytest.importorskip("tf2_ros", reason="source ROS 2 from apt to run this: tf2_ros is not on PyPI")
    from rclpy.time import Time

    ours, theirs = Buffer(), tf2_ros.Buffer()
    for child in range(1, 6):
        message = stamped(f"f{seed % child}", f"f{child}", random_pose(seed + child))
        ours.set_transform_static(message, "test")
        theirs.set_transform_static(message, "test")
    for target in ("f0", "f2", "f5"):
        expected = transform_matrix(theirs.lookup_transform(target, "f4", Time()).transform)
        found = transform_matrix(ours.lookup_transform(target, "f4", Time()).transform)
        np.testing.assert_allclose(found, expected, atol=1e-9)
