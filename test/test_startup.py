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

"""What starts must not import what only some of its work needs: `python -m bench.startup` measures the seconds."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed; run `make build`")


def test_the_node_imports_no_plots_and_no_evaluation() -> None:
    """Up to a first estimate: an import that is only put off would cost the first pair."""
    code = (
        "import sys, macvo_ros.ros.main\n"
        "from macvo_ros.odometry.pipelined_odometry import make_odometry\n"
        "from macvo_ros.ros.parameters import NodeConfig\n"
        "odometry = make_odometry(NodeConfig())\n"
        "configured = set(sys.modules)\n"
        "heavy = {'matplotlib', 'scipy', 'evo', 'pypose', 'rosbags', 'rerun', 'onnxruntime'} & configured\n"
        "assert not heavy, heavy\n"
        "from macvo_ros.rendering.sequence import RenderedSequence\n"
        "from macvo_ros.rendering.worlds import ZED_X\n"
        "sequence = RenderedSequence('room', frames=2, camera=ZED_X.resized(320, 200), texels=256)\n"
        "frames = [sequence[0], sequence[1]]\n"
        "before = set(sys.modules)\n"
        "assert all(odometry.track(frame).status.name != 'LOST' for frame in frames)\n"
        "assert set(sys.modules) == before, set(sys.modules) - before"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
