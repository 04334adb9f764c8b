"""What a subscriber receives is what the core computed, to the last bit the message can carry."""

from __future__ import annotations

import numpy as np
from camera_messages import CameraDriver, stamp_of
from harness import matrix

from macvo_ros.odometry import StereoOdometry


def test_messages_equal_core(frames, start_node, make_peer):
    from geometry_msgs.msg import PoseWithCovarianceStamped
    from nav_msgs.msg import Odometry

    from macvo_ros.msg import Status

    node = start_node("equal", camera_at_base=True, watchdog=0.5)
    peer = make_peer("equal")
    status = peer.listen(Status, f"{node.name}/status")
    odometry = peer.listen(Odometry, f"{node.name}/odometry")
    poses = peer.listen(PoseWithCovarianceStamped, f"{node.name}/pose")
    driver = CameraDriver(peer, frames[0].camera)
    core = StereoOdometry()
    for i, frame in enumerate(frames[:6]):
        driver.send(frame)
        peer.until(lambda i=i: len(status) > i and len(odometry) > i and len(poses) > i, f"odometry of frame {i}")
        estimate = core.track(frame)
        message = odometry[i]
        assert stamp_of(message) == stamp_of(poses[i]) == stamp_of(status[i]) == frame.stamp
        assert (message.header.frame_id, message.child_frame_id) == ("odom", "base_link")
        np.testing.assert_allclose(matrix(message.pose.pose), estimate.pose, atol=1e-12)
        covariance = np.array(message.pose.covariance).reshape(6, 6)
        np.testing.assert_array_equal(covariance, covariance.T)
        assert np.linalg.eigvalsh(covariance)[0] > 0
        np.testing.assert_allclose(covariance, estimate.covariance, rtol=1e-9, atol=1e-12)
        assert status[i].state == estimate.status
    assert status[-1].received == status[-1].processed == 6
    assert node.stop() == 0
