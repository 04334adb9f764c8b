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

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macvo_ros.errors import ConfigError
from macvo_ros.settings.config import Config, load_config
from macvo_ros.settings.declaration import build, parse_assignments, to_flat
from macvo_ros.settings.declaration import settings as leaves


def test_round_trip_of_every_setting():
    flat = to_flat(Config())
    assert set(flat) == {leaf.key for leaf in leaves(Config)}
    assert build(Config, flat) == Config()


def test_file_then_command_line(tmp_path):
    path = tmp_path / "macvo.yaml"
    path.write_text("keypoints: {count: 300, nms: 5}\nsolver: pypose\n")
    config = load_config(path, ["keypoints.count=400", "pose.kernel=3"])
    assert (config.keypoints.count, config.keypoints.nms, config.solver, config.pose.kernel) == (400, 5, "pypose", 3.0)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["keypoints.cuont=3"], "did you mean keypoints.count"),
        (["keypoints.count=2"], "from 8 to 5000"),
        (["keypoints.count=many"], "a whole number"),
        (["keypoints.count=true"], "a whole number"),
        (["covariance.model=big"], "one of full, diagonal"),
        (["classic.seeded=1"], "true or false"),
        (["pose.kernel=.nan"], "a number"),
        (["nonsense"], "expected key=value"),
    ],
)
def test_wrong_words_name_key_value_and_what_is_allowed(words, expected):
    with pytest.raises(ConfigError, match=expected.replace(".", r"\.")):
        load_config(None, words)


@pytest.mark.parametrize("text", ["a: [1", "- 1\n- 2", "\x00", "keypoints: 3"])
def test_broken_files_are_refused_in_a_sentence(tmp_path, text):
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError):
        load_config(path)
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(tmp_path / "missing.yaml")


keys = st.sampled_from(sorted(to_flat(Config()))) | st.text(max_size=8)
values = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers(), max_size=2)
)


@given(st.dictionaries(keys, values, max_size=4))
@settings(max_examples=300, deadline=None)
def test_any_values_give_a_configuration_or_a_typed_error(values):
    try:
        config = build(Config, values)
    except ConfigError:
        return
    assert {key: to_flat(config)[key] for key in values} == values


@given(st.lists(st.text(max_size=20), max_size=3))
@settings(max_examples=200, deadline=None)
def test_any_words_parse_or_are_refused(words):
    with contextlib.suppress(ConfigError):
        assert isinstance(parse_assignments(words), dict)
