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

"""A short fuzz of every reader; `python test/fuzz/long_run.py` is the long one, with limits of time and memory."""

from __future__ import annotations

import random

import pytest
from checkpoint_target import executed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from message_targets import png
from targets import TARGETS

from macvo_ros.errors import CalibrationError, ConfigError, ImageError, MacvoError
from macvo_ros.geometry.calibration import load_calibration
from macvo_ros.images.image_decoding import decode_compressed
from macvo_ros.settings.config import load_config
from macvo_ros.settings.plain_yaml import load_plain_yaml

CASES = {"bag": 25, "dataset": 40, "configuration": 60, "reset_to_pose": 60}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.filterwarnings("ignore")
def test_reads_or_refuses(name):
    if name == "reset_to_pose":
        pytest.importorskip("rclpy", reason="ROS 2 is not installed; run `make build`")

    @settings(
        max_examples=CASES.get(name, 120), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(st.integers(0, 2**32))
    def run(seed: int) -> None:
        message = "read"
        try:
            TARGETS[name][0](random.Random(seed))
        except MacvoError as error:
            message = str(error)
        assert message
        assert "\n" not in message

    run()
    assert not executed().exists()


def nested(levels: int, width: int = 10) -> str:
    """A few lines that stand for width ** levels numbers."""
    lines = [f"l0: &l0 [{', '.join('1' * width)}]"]
    lines += [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * width)}]" for i in range(1, levels)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        nested(9),
        "keypoints: &a {x: *a}",
        "fx: " + "[" * 5000,
        "seed: 2001-99-99",
        "a: !!python/object/apply:os.abort []",
    ],
    ids=["aliases", "recursion", "depth", "date", "code"],
)
def test_yaml_that_means_harm_is_refused(tmp_path, text):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError):
        load_config(path)
    with pytest.raises(CalibrationError):
        load_calibration(path)
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        load_plain_yaml(text)


def test_yaml_for_people_is_read():
    assert load_plain_yaml("a: [1, 2.5, x]\nb: {c: true}\n") == {"a": [1, 2.5, "x"], "b": {"c": True}}
    assert load_plain_yaml("") is None


def test_a_picture_that_claims_gigabytes_is_refused_unread():
    with pytest.raises(ImageError, match="30000x30000"):
        decode_compressed(png(30000, 30000), "png")
