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

"""Which parameters of a command line are for one node, and which for whoever has them."""

from __future__ import annotations

import pytest

from macvo_ros.ros.parameter_addresses import shared_parameters

NODE = "/robot/front/macvo"


@pytest.fixture
def shared(tmp_path):
    """What is shared of parameter files with these contents, and of more words."""

    def ask(*contents: str, words: tuple[str, ...] = ()) -> set[str]:
        arguments = ["macvo_node", "--ros-args"]
        for number, content in enumerate(contents):
            file = tmp_path / f"{number}.yaml"
            file.write_text(content)
            arguments += ["--params-file", str(file)]
        found = shared_parameters([*arguments, *words], NODE)
        assert all(file.startswith(str(tmp_path)) for file in found.values())
        return set(found)

    return ask


@pytest.mark.parametrize("section", ["/**", "/*/*/*", "/robot/**", "/robot/front/*", "robot/front/**", "/**/*"])
def test_a_wildcard_for_the_node_is_shared(shared, section):
    assert shared(f"{section}: {{ros__parameters: {{a: 1, b: {{c: 2, d: [1, 2]}}}}}}") == {"a", "b.c", "b.d"}


@pytest.mark.parametrize(
    "section", ["/**/macvo", "/robot/front/macvo", "robot/front/macvo", "/robot/*/macvo", "/other/**", "/*", "planner"]
)
def test_what_names_the_node_or_is_for_another_is_not(shared, section):
    assert shared(f"{section}: {{ros__parameters: {{a: 1}}}}") == set()


def test_names_may_be_nested_and_tags_odd(shared):
    """A file as launch writes it: tuples keep their tag."""
    content = "robot:\n  front:\n    '*':\n      ros__parameters:\n        a: !!python/tuple\n        - 2\n"
    assert shared(content) == {"a"}


def test_an_address_wins_over_a_wildcard(shared):
    everybody = "/**: {ros__parameters: {a: 1, b: 2, c: 3, d: 4}}"
    assert shared(everybody, "/**/macvo: {ros__parameters: {a: 1}}") == {"b", "c", "d"}
    assert shared(everybody, words=("-p", "b:=2", "--param", "macvo:c:=3")) == {"a", "d"}
    assert shared(everybody, words=("--", "-p", "b:=2")) == {"a", "b", "c", "d"}  # no longer words for ROS


@pytest.mark.parametrize("content", ["", "- 1", "/**: 3", "/**: {ros__parameters: 3}", "a: [", "\0"])
def test_a_file_that_says_nothing_shares_nothing(shared, content):
    assert shared(content) == set()


def test_a_command_line_without_files():
    assert shared_parameters([], NODE) == {}
    assert shared_parameters(["macvo_node", "--ros-args", "--params-file", "/nowhere.yaml"], NODE) == {}
