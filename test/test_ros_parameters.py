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

"""One tree of parameters: descriptors, the parameter files and the answers to changes all come from it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from macvo_ros.errors import ConfigError
from macvo_ros.ros.parameter_file import parameter_file
from macvo_ros.ros.parameters import LEAVES, NodeConfig, changed, descriptor, why_not
from macvo_ros.settings.declaration import build, flatten, to_flat

CONFIG = Path(__file__).resolve().parent.parent / "config"


def test_parameter_file_holds_every_default():
    text = (CONFIG / "macvo.yaml").read_text()
    values = flatten(yaml.safe_load(text)["/**"]["ros__parameters"])
    assert values == to_flat(NodeConfig()), "run `python -m macvo_ros.ros.parameter_file > config/macvo.yaml`"
    assert text == parameter_file()


@pytest.mark.parametrize("name", ["zedx", "euroc", "kitti"])
def test_shipped_parameter_files_are_valid(name):
    values = yaml.safe_load((CONFIG / f"{name}.yaml").read_text())
    build(NodeConfig, flatten(values["/**"]["ros__parameters"]))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"keypoint.count": 9}, "did you mean keypoints.count?"),
        ({"sync_tolerance": 5.0}, "sync_tolerance: expected a number from 1e-06 to 1, got 5.0"),
        ({"base_frame": ""}, "expected the name of a frame"),
        ({"base_frame": "odom"}, "must differ"),
        ({"on_time_jump": "panic"}, "one of continue, reset"),
    ],
)
def test_mistakes_are_named(values, words):
    with pytest.raises(ConfigError, match=words.replace("?", r"\?")):
        build(NodeConfig, values)


def test_what_changes_at_run_time():
    live = {key for key, leaf in LEAVES.items() if leaf.live}
    assert {"keypoints.count", "keypoints.max_uncertainty", "publish_tf", "publish.depth"} <= live
    assert why_not("keypoints.count", 100, configured=True) == ""
    assert "from 8 to 5000" in why_not("keypoints.count", 3, configured=True)
    assert "configure again" in why_not("matcher", "classic", configured=True)
    assert why_not("matcher", "classic", configured=False) == ""


def test_a_change_keeps_the_rest():
    config = changed(NodeConfig(base_frame="robot"), {"keypoints.count": 99})
    assert (config.base_frame, config.keypoints.count) == ("robot", 99)


@pytest.mark.parametrize("leaf", LEAVES.values(), ids=LEAVES)
def test_descriptors(leaf):
    pytest.importorskip("rcl_interfaces", reason="ROS 2 is not installed; run `make build`")
    message = descriptor(leaf)
    assert message.description == leaf.doc
    assert message.read_only == (leaf.key == "autostart")
    ranges = [*message.integer_range, *message.floating_point_range]
    assert len(ranges) == (leaf.low is not None or leaf.high is not None)
    if leaf.low is not None:
        assert ranges[0].from_value == leaf.low
