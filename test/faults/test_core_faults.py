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

"""A few faults of each kind through the core; `python test/faults/run_all.py` does all of them, longer.

In all of them: no exception, covariances symmetric and positive, errors inside the stated three sigma, nothing blind
called tracked, tracking again within five good frames.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from faulty_sequence import FAULTS, Source, Worth, apply
from honesty import CHI2_6, Verdict, run

from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import ZED_X, build
from macvo_ros.settings.config import Config

PAGE = (
    (Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md")
    .read_text()
    .replace("right image", "left image")
)

QUICK = (
    "a second of left images only",
    "black-out of 5",
    "left lens covered",
    "lens flare",
    "half is robot arm",
    "frozen images",
    "right image frozen",
    "right image a frame late",
    "stamps jitter by 20 ms",
    "third is robot arm",
    "cameras swapped",
    "another resolution",
    "clock jumps an hour ahead",
)


@pytest.fixture(scope="module")
def source() -> Source:
    return Source(RenderedSequence("room", 30, seed=7, camera=ZED_X.resized(480, 300), texels=512))


@pytest.mark.parametrize("name", QUICK)
def test_fault(source, name):
    verdict, _ = run(apply(name, source, seed=7, after=6)[4:], StereoOdometry(Config()))
    assert verdict.complaints() == []
    assert verdict.count(Status.TRACKING) >= 5
    for reason in filter(None, verdict.reasons):
        assert is_explained(reason), f"docs/troubleshooting.md does not explain: {reason}"


def is_explained(reason: str) -> bool:
    """Whether the page has the sentence, whatever its figures."""
    words = re.sub(r"[0-9][0-9.]*", "…", reason).replace("right image", "left image").split("(")[0]
    words = re.sub("(black|white|uniform)", "black", words).split(":")[0].split(";")[0].strip()
    return words in PAGE or words.replace("the right", "the left") in PAGE


def test_every_fault_changes_something(source):
    """A fault that does nothing would pass every test."""
    longer = Source(RenderedSequence(source.sequence.world, 72, seed=7, camera=source.sequence.camera))
    longer._frames = {key: source.frame(0) for key in [(i, source.sequence.camera) for i in range(72)]}
    plain = apply("none", longer)
    for name in FAULTS:
        if name not in ("none", "another lens", "another resolution"):
            shots = apply(name, longer)
            changed = len(shots) != len(plain) or any(
                a.frame.stamp != b.frame.stamp or a.worth is not b.worth or not np.array_equal(a.pose, b.pose)
                for a, b in zip(shots, plain, strict=True)
            )
            assert changed, name


def test_the_judge_notices_lies():
    honest = Verdict([3.0] * 40, [5.0] * 40, [Status.TRACKING] * 40, [""] * 40)
    assert honest.complaints() == []
    assert any("poses" in c for c in Verdict([2 * CHI2_6] * 3 + [1.0] * 37).complaints())
    assert any("motions" in c for c in Verdict(motion_nees=[2 * CHI2_6] * 3 + [1.0] * 37).complaints())
    assert Verdict(lies=[3]).complaints()
    assert Verdict(improper=[3]).complaints()
    assert Verdict(recovery=[6]).complaints()
    assert Verdict(recovery=[5]).complaints() == []
    assert Verdict(states=[Status.LOST], reasons=[""]).complaints()
    assert Worth.BLIND is not Worth.GOOD


def test_a_right_image_that_comes_late_is_noticed_by_the_rows():
    """By as little as a few tenths of a pixel, which is much where rows are usually kept to some hundredths."""
    world = build("shapes", 94, 512)
    hall = RenderedSequence(world, 30, seed=94, camera=world.camera.resized(253, 253))
    verdict, _ = run(apply("right image a frame late", Source(hall), seed=7, after=6), StereoOdometry(Config()))
    assert verdict.complaints() == []
    assert verdict.count(Status.LOST) > 6
