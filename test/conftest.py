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

"""Fixtures shared by all tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import ZED_X

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

SHARED = ROOT.parent / "shared" / "data"


@pytest.fixture
def shared_data() -> Path:
    """Folder with real sequences, where the machine has it."""
    if not SHARED.is_dir():
        pytest.skip("put real sequences into ../shared/data to run this; rendered ones are tested in its place")
    return SHARED


@pytest.fixture(scope="session")
def room() -> RenderedSequence:
    """A short walk through a rendered room, 480x300, with truth."""
    return RenderedSequence("room", frames=25, seed=7, camera=ZED_X.resized(480, 300), texels=512)
