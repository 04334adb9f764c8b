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


"""A window of frames in the running node: corrections show in the path and in what is saved, never in the odometry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from harness import matrix
from supervised_node import SupervisedNode

from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.sequences.tum import read_tum
from macvo_ros.settings.config import Config, build

COUNT = 7


def test_corrections_show_in_path_and_file_only(frames, start_node, make_peer, tmp_path):
    from nav_msgs.msg import Path

    from macvo_ros.srv import SaveTrajectory

    process = start_node("windowed", camera_at_base=True, watchdog=0.5, map_period=0.0, window__frames=4)
    peer = make_peer("windowed")
    node = SupervisedNode(process, peer, frames[0].camera)
    paths = peer.listen(Path, f"{process.name}/path")
    core = StereoOdometry(build(Config, {"matcher": "classic", "window.frames": 4}))
    published, smoothed = {}, {}
    for index, frame in enumerate(frames[:COUNT]):
        stamp = node.next_stamp()
        node.track(frame, stamp=stamp)
        message = node.newest_odometry()
        estimate = core.track(replace(frame, stamp=stamp))
        np.testing.assert_allclose(matrix(message.pose.pose), estimate.pose, atol=1e-12)
        published[stamp] = smoothed[stamp] = estimate.pose
        smoothed.update(estimate.corrections)
        peer.until(lambda index=index: paths and len(paths[-1].poses) == index + 1, f"the path of frame {index}")

    moved = max(np.abs(smoothed[stamp] - published[stamp]).max() for stamp in published)
    assert moved > 1e-6  # or there is nothing to see here
    for pose, expected in zip(paths[-1].poses, smoothed.values(), strict=True):
        np.testing.assert_allclose(matrix(pose.pose), expected, atol=1e-9)
    file = tmp_path / "run.txt"
    answer = peer.call(SaveTrajectory, f"{process.name}/save_trajectory", SaveTrajectory.Request(path=str(file)))
    assert answer.success, answer.message
    np.testing.assert_allclose(read_tum(file).poses, list(published.values()), atol=1e-8)
    np.testing.assert_allclose(read_tum(tmp_path / "run_smoothed.txt").poses, list(smoothed.values()), atol=1e-8)
    assert process.stop() == 0
