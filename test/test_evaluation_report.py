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

"""What a run leaves behind: a page that loads nothing, strict JSON, trajectories that read back, the paper's rows."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from fake_odometry import NoisyOdometry, NoisyTruth, winding_path

from macvo_ros.commands.run import summary, write_all
from macvo_ros.errors import SequenceError
from macvo_ros.evaluation.ablation import OURS, VARIANTS, format_ablation
from macvo_ros.evaluation.comparison import load, paired, rows, write_comparison
from macvo_ros.evaluation.metrics import evaluate
from macvo_ros.evaluation.paper import paper_ablation, paper_rows, paper_sequence
from macvo_ros.evaluation.report import Evaluation, report
from macvo_ros.evaluation.result import write_json
from macvo_ros.evaluation.runner import run_sequence
from macvo_ros.sequences.tum import StampedPoses, read_kitti_poses, read_tum, write_tum
from macvo_ros.settings.config import Config

VOID = {"meta", "br", "path", "use", "image", "rect", "line"}


class TagBalance(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def evaluated(name: str = "fake", seed: int = 0, truth_known: bool = True, maps: bool = False) -> Evaluation:
    count = 30
    truth = winding_path(count)
    sequence = NoisyTruth(truth if truth_known else None, name, count)
    run = run_sequence(sequence, NoisyOdometry(truth, seed, lost=(7, 8), maps=maps), progress=False)
    if not truth_known:
        return Evaluation(sequence, run, Config())
    metrics, errors = evaluate(run, truth)
    return Evaluation(sequence, run, Config(), metrics, errors, dict.fromkeys((v.name for v in VARIANTS), metrics))


def test_page_is_whole_and_loads_nothing() -> None:
    page = report(evaluated(maps=True))
    checker = TagBalance()
    checker.feed(page)
    assert checker.open == []
    for attribute in re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?([^"\')\s>]+)', page):
        assert attribute.startswith(("#", "data:")), attribute
    assert "@import" not in page
    for text in ("Trajectory", "Is the covariance honest?", "Ablation", "sigma of the disparity", "nothing to see"):
        assert text in page
    assert page.count("<svg") == 13, "trajectory, two error figures, NEES, horizons, and four pictures of two frames"
    assert not re.search(r"#0[0-9a-b]0[0-9a-b]0[0-9a-b]\b", page), "a marker colour escaped its CSS variable"


def test_page_without_truth_says_so() -> None:
    page = report(evaluated(truth_known=False))
    assert "no ground truth" in page
    assert "Uncertainty of the pose" in page
    printed = summary(evaluated(truth_known=False)).splitlines()
    table = dict(zip(re.split(r"  +", printed[2].strip()), re.split(r"  +", printed[4].strip())[1:], strict=True))
    assert (table["degraded"], table["lost"], table["ATE [m]"]) == ("0", "2", "-")
    assert printed[-1] == "  2 LOST: nothing to see (frames 7-8)"


def test_names_are_escaped() -> None:
    assert "<script>" not in report(evaluated("<script>alert(1)</script>"))


def test_files_read_back(tmp_path: Path) -> None:
    evaluation = evaluated()
    write_all(tmp_path / "deep" / "out", evaluation)
    folder = tmp_path / "deep" / "out"
    assert sorted(path.name for path in folder.iterdir()) == [
        "groundtruth.txt", "report.html", "result.json", "trajectory.txt", "trajectory_covariance.txt",
        "trajectory_kitti.txt",
    ]  # fmt: skip
    run = evaluation.run
    tum = read_tum(folder / "trajectory_covariance.txt")
    np.testing.assert_array_equal(tum.stamps, run.stamps)
    np.testing.assert_allclose(tum.poses, run.poses, atol=1e-8)
    np.testing.assert_allclose(tum.covariance, run.covariances, rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(read_kitti_poses(folder / "trajectory_kitti.txt"), run.poses, atol=1e-8)
    document = json.loads((folder / "result.json").read_text())
    assert document["t_rel"] == evaluation.metrics.t_rel
    assert [line["variant"] for line in document["ablation"]][-1] == "Ours"


def test_json_has_no_nan(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"a": math.nan, "b": [math.inf, 1.5], "c": {"d": -math.inf}})
    assert json.loads((tmp_path / "a.json").read_text(), parse_constant=pytest.fail) == {
        "a": None,
        "b": [None, 1.5],
        "c": {"d": None},
    }


def test_ablation_variants_differ_from_ours_only_where_they_say() -> None:
    settings = {(v.selector, v.model, v.frames) for v in VARIANTS}
    assert len(settings) == len(VARIANTS) == 10
    assert OURS.applied(Config()) == Config()
    config = VARIANTS[0].applied(Config(seed=7))
    assert (config.keypoints.selector, config.covariance.model, config.seed) == ("random", "identity", 7)
    evaluation = evaluated()
    text = format_ablation(evaluation.sequence, evaluation.ablation)
    assert len(text.splitlines()) == 12
    assert "0.0743" in text, "the paper's own figure"


@pytest.mark.parametrize(
    ("name", "fx", "found"),
    [
        ("euroc MH_01_easy", 458.0, "MH01"),
        ("euroc euroc_mh01_clip", 458.0, "MH01"),
        ("euroc V2_03_difficult", 458.0, "V203"),
        ("kitti 00", 718.856, "00"),
        ("kitti 00", 707.0912, None),  # a folder called 00 with the camera of another drive
        ("kitti 06", 707.0912, "06"),
        ("kitti 11", 707.0912, None),
        ("tartanair H03", 320.0, "H03"),
        ("tartanair E000", 320.0, "E00"),
        ("tartanair abandonedfactory P000", 320.0, None),
        ("house_00", 320.0, None),
    ],
)
def test_sequences_of_the_paper_are_recognised(name: str, fx: float, found: str | None) -> None:
    assert paper_sequence(name, fx) == found
    assert bool(paper_rows(name, fx)) == (found is not None)


def test_figures_of_the_paper() -> None:
    ours = {
        name: paper_rows(name, fx)[-1] for name, fx in (("euroc V1_03", 1.0), ("kitti 01", 718.9), ("tartanair H06", 1))
    }
    assert [(row.method, row.t_rel, row.r_rel) for row in ours.values()] == [
        ("MAC-VO, stereo", 0.0032, 0.058),
        ("MAC-VO, stereo", 0.2663, 0.1670),
        ("MAC-VO, stereo", 0.0217, 0.4160),
    ]
    assert len(paper_rows("euroc MH_03", 1.0)) == 8
    lost = next(row for row in paper_rows("tartanair E00", 1.0) if row.method.startswith("ORB"))
    assert math.isnan(lost.t_rel)
    assert paper_ablation("tartanair E05", 1.0)[1]["DiagCov"].t_rel == 0.012
    assert set(paper_ablation("anything", 1.0)[1]) == {
        variant.name for variant in VARIANTS if not (variant.frames and variant.doubted)
    }
    assert "paper: DPVO, mono*" in summary(evaluated("euroc MH_01"))


def test_compare_runs_and_foreign_trajectories(tmp_path: Path) -> None:
    for seed in (0, 1):
        write_all(tmp_path / f"run{seed}", evaluated(seed=seed))
    own = [load(tmp_path / "run0"), load(tmp_path / "run1" / "result.json")]
    foreign = load(tmp_path / "run1" / "trajectory.txt", tmp_path / "run0" / "groundtruth.txt")
    assert foreign.figures["t_rel"] == pytest.approx(own[1].figures["t_rel"], abs=1e-7)
    heading, lines = rows([*own, foreign])
    assert [line[0] for line in lines] == ["run0", "run1", "run1"]
    assert all(len(line) == len(heading) for line in lines)
    write_comparison(tmp_path / "page.html", [*own, foreign])
    assert (tmp_path / "page.html").read_text().count("<svg") == 1, "one picture for one sequence"


def test_compare_refuses_what_it_cannot_measure(tmp_path: Path) -> None:
    with pytest.raises(SequenceError, match="does not exist"):
        load(tmp_path / "nothing.json")
    with pytest.raises(SequenceError, match=r"holds no result\.json"):
        load(tmp_path)
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(SequenceError, match="not a result"):
        load(tmp_path / "bad.json")
    write_tum(tmp_path / "a.txt", np.arange(3) * 10**9, winding_path(3))
    with pytest.raises(SequenceError, match="--groundtruth"):
        load(tmp_path / "a.txt")
    write_tum(tmp_path / "groundtruth.txt", np.arange(3) * 10**9 + 10**15, winding_path(3))
    with pytest.raises(SequenceError, match="share 0 instants"):
        load(tmp_path / "a.txt")


def test_pairing_takes_the_nearest_truth() -> None:
    path = winding_path(30)
    truth = StampedPoses(np.arange(30, dtype=np.int64) * 10_000_000, path)
    ours = StampedPoses(np.array([21_000_000, 98_000_000, 400_000_000], dtype=np.int64), path[:3])
    first, second = paired(ours, truth)
    np.testing.assert_array_equal(first, path[:2])
    np.testing.assert_array_equal(second, path[[2, 10]])
