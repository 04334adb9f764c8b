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

"""The table of whole sequences says what is worse than others' figures."""

from __future__ import annotations

import math

from fake_odometry import NoisyOdometry, NoisyTruth, winding_path

from bench.sequences import KITTI_ANCHORS, Anchor, report, worse
from macvo_ros.evaluation.metrics import evaluate
from macvo_ros.evaluation.report import Evaluation
from macvo_ros.evaluation.runner import run_sequence
from macvo_ros.settings.config import Config


def test_what_is_worse_is_said() -> None:
    figures = {"t_err": 0.83, "r_err": 0.21, "t_rel": 0.02}
    lines = worse("ours", figures, [*KITTI_ANCHORS, Anchor("lost", {"t_rel": math.nan}), Anchor("other", {"ate": 1.0})])
    assert lines == [
        "  ours is worse than ORB-SLAM2 without loops (theirs): t_err 0.83 > 0.81",
        "  ours is worse than Stereo DSO (theirs): r_err 0.21 > 0.2",
    ]


def test_a_report_has_every_row() -> None:
    truth = winding_path(40)
    sequence = NoisyTruth(truth, "kitti 09")
    run = run_sequence(sequence, NoisyOdometry(truth, lost=(5,)), progress=False)
    metrics, errors = evaluate(run, truth)
    text = report(sequence, [Evaluation(sequence, run, Config(matcher="lite"), metrics, errors)], {"t_rel": 1e-9})
    for words in ("macvo_ros, lite", "OpenCV KLT + PnP", "cuVSLAM (theirs)", "1 LOST: nothing to see (frame 5)"):
        assert words in text
    assert "macvo_ros, lite is worse than OpenCV KLT + PnP: t_rel" in text
