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

"""What needs no process of its own: mistakes in parameters, and a core that fails to load."""

from __future__ import annotations

import pytest


@pytest.fixture
def make_node(ros):
    from rclpy.parameter import Parameter

    from macvo_ros.ros.node import MacvoNode

    nodes = []

    def make(core=None, **parameters):
        overrides = [Parameter(key.replace("__", "."), value=value) for key, value in parameters.items()]
        arguments = {} if core is None else {"make_odometry": core}
        nodes.append(MacvoNode(parameter_overrides=overrides, **arguments))
        return nodes[-1]

    yield make
    for node in nodes:
        node.release()
        node.destroy_node()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"keypoints__count": 2}, "keypoints.count: expected a whole number from 8 to 5000, got 2"),
        ({"approximate_sync": 3}, "approximate_sync: expected true or false, got 3"),
        ({"sync_tolerence": 0.1}, "did you mean sync_tolerance"),
        ({"base_frame": ""}, "expected the name of a frame"),
    ],
)
def test_wrong_parameters_are_refused_at_once(make_node, parameters, words):
    from macvo_ros.errors import ConfigError

    with pytest.raises(ConfigError) as error:
        make_node(**parameters)
    assert words in str(error.value)


def test_a_whole_number_is_a_number(make_node):
    node = make_node(sync_tolerance=1, use_sim_time=True)
    assert node.config.sync_tolerance == 1.0
    assert node.get_parameter("sync_tolerance").value == 1.0


def test_a_core_that_cannot_load_leaves_the_node_unconfigured(make_node):
    from rclpy.lifecycle import TransitionCallbackReturn

    from macvo_ros.errors import WeightsError

    def broken(config):
        raise WeightsError("no such file: weights.pth")

    node = make_node(core=broken)
    assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
    assert node._state_machine.current_state[1] == "unconfigured"


def test_transitions_leave_nothing_behind(make_node):
    """After ten walks the node has as many publishers, services, subscriptions and timers as after one."""
    node = make_node()

    def walk():
        node.trigger_configure()
        node.trigger_activate()
        node.trigger_deactivate()
        node.trigger_cleanup()
        return [len(list(getattr(node, name))) for name in ("publishers", "services", "subscriptions", "timers")]

    first = walk()
    for _ in range(9):
        assert walk() == first


def test_an_unwritable_log_folder_is_replaced(monkeypatch, tmp_path, capsys):
    """An unwritable home makes rclpy.init raise; a robot's odometry is worth more than its log."""
    import os

    import rclpy

    from macvo_ros.ros.main import initialise

    def init(**arguments):
        if "ROS_LOG_DIR" not in os.environ:
            raise RuntimeError("Failed to configure logging: could not create log folder")

    monkeypatch.delenv("ROS_LOG_DIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(rclpy, "init", init)
    monkeypatch.setattr(rclpy, "try_shutdown", lambda: None)
    initialise([])
    assert os.environ["ROS_LOG_DIR"].startswith(str(tmp_path))
    assert "logging to" in capsys.readouterr().err
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path))


def test_images_that_are_overwritten_before_they_are_taken_are_counted(make_node):
    """Twenty come while nobody spins, and the reader keeps eight."""
    import rclpy
    from camera_messages import set_stamp
    from rclpy.duration import Duration
    from rclpy.executors import SingleThreadedExecutor
    from sensor_msgs.msg import Image

    from macvo_ros.ros.counters import Counters
    from macvo_ros.ros.inputs import QUEUE, StereoInputs

    node = make_node(camera_at_base=True, reliability="reliable")
    inputs = StereoInputs(node, node.config, Counters(), deliver=None, refuse=None)
    record = inputs.topics["left image"]
    camera = rclpy.create_node("camera")
    publisher = camera.create_publisher(Image, record.name, 100)
    executor = SingleThreadedExecutor()
    executor.add_node(node)

    def send(numbers: range) -> None:
        for number in numbers:
            publisher.publish(set_stamp(Image(), number))
        assert publisher.wait_for_all_acked(Duration(seconds=60))

    inputs.paused = True  # what becomes of the images is of no interest here
    while not publisher.get_subscription_count():
        executor.spin_once(timeout_sec=0.1)
    send(range(1, 2))
    while not record.received:
        executor.spin_once(timeout_sec=0.1)
    assert record.overwritten == 0
    send(range(2, 22))
    while record.received < 1 + QUEUE:
        executor.spin_once(timeout_sec=0.1)
    assert record.overwritten == 20 - QUEUE
    inputs.close()
    executor.remove_node(node)
    camera.destroy_node()
