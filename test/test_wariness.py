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

"""Doubt remains for a while after two motions were to be seen, and not for ever."""

from __future__ import annotations

from macvo_ros.wariness import Wariness


def test_doubt_remains_for_some_frames():
    wary = Wariness()
    assert not wary.active
    wary.update(contested=False, lost=True)
    assert not wary.active  # black images are no contest
    wary.update(contested=True, lost=False)
    sound = 0
    while wary.active:
        wary.update(contested=False, lost=False)
        sound += 1
    assert 2 <= sound <= 5


def test_what_always_contradicts_a_little_becomes_ordinary():
    wary = Wariness()
    wary.update(contested=True, lost=True)
    for _ in range(10):
        wary.update(contested=False, lost=True)
        assert wary.active
    for _ in range(10):
        wary.update(contested=False, lost=True)
    assert not wary.active


def test_another_contest_begins_it_anew():
    wary = Wariness()
    for _ in range(50):
        wary.update(contested=True, lost=False)
    assert wary.active
