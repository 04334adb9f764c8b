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

"""The lite matcher: its evidence, its network, its variances against exact truth, and its training."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import torch

from macvo_ros.errors import SequenceError, WeightsError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import exp_so3, inverse, log_so3, transform
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.auto import choose_matcher
from macvo_ros.matching.lite.features import CHANNELS, ImageFeatures, stereo_features, temporal_features, to_grid
from macvo_ros.matching.lite.matcher import LiteMatcher
from macvo_ros.matching.lite.network import OUTPUTS, WEIGHTS, LiteNetwork, load_network, save_network
from macvo_ros.matching.lite.rigid_departure import fit_motion, rigid_departure
from macvo_ros.matching.matcher import Match, PointMatches, Prediction, look_up, make_matcher
from macvo_ros.matching.rigid_flow import rigid_flow
from macvo_ros.matching.stereo_search import RowMatch
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.truth import Truth
from macvo_ros.settings.config import Config, load_config
from macvo_ros.training.distributed import Worker
from macvo_ros.training.lite import LARGEST_ERROR, LiteTraining, robust_nll
from macvo_ros.training.lite_clips import Clip
from macvo_ros.training.lite_samples import LiteSamples
from macvo_ros.training.lite_scenes import render_clip
from macvo_ros.training.loop import TrainingSettings, train

SMALL = StereoCamera(fx=200.0, fy=200.0, cx=159.5, cy=119.5, baseline=0.12, width=320, height=240)
ODD = StereoCamera(fx=200.0, fy=200.0, cx=160.5, cy=117.0, baseline=0.12, width=323, height=237)


@pytest.fixture(scope="module")
def room() -> RenderedSequence:
    return RenderedSequence("room", 6, 3, camera=SMALL, texels=256)


@pytest.fixture(scope="module")
def crowd() -> RenderedSequence:
    return RenderedSequence("shapes", 8, 5, texels=256)


def matched(sequence: RenderedSequence, index: int) -> tuple[LiteMatcher, StereoFrame, Match, StereoFrame, Match]:
    """Frames `index` and the next with their matches, predicted by the motion before."""
    assert sequence.ground_truth is not None
    matcher = LiteMatcher()
    first, second = sequence[index], sequence[index + 1]
    reference = matcher.match(None, first)
    motion = inverse(sequence.ground_truth[index - 1]) @ sequence.ground_truth[index]
    match = matcher.match(first, second, Prediction(motion, reference.disparity))
    return matcher, first, reference, second, match


def test_weights_are_in_the_package_and_small() -> None:
    assert WEIGHTS.stat().st_size < 1_000_000
    assert all(torch.isfinite(tensor).all() for tensor in load_network().state_dict().values())


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    save_network(LiteNetwork((8, 8, 8)), tmp_path / "other.safetensors", {})
    with pytest.raises(WeightsError, match="does not hold the weights"):
        load_network(tmp_path / "other.safetensors")


def test_weights_of_ones_own_are_used(tmp_path: Path, crowd: RenderedSequence) -> None:
    mine = load_network()
    with torch.no_grad():
        mine.out.bias += 1.0  # all sigmas e times as large
    save_network(mine, tmp_path / "mine.safetensors", {})
    own = make_matcher(load_config(assignments=["matcher=lite", f"lite.weights={tmp_path / 'mine.safetensors'}"]))
    ratio = own.match(None, crowd[0]).disparity_var / LiteMatcher().match(None, crowd[0]).disparity_var
    assert float(ratio.median()) == pytest.approx(np.exp(2.0), rel=0.01)
    with pytest.raises(WeightsError, match="nowhere"):
        make_matcher(load_config(assignments=["matcher=lite", "lite.weights=nowhere.safetensors"]))


@pytest.mark.parametrize("camera", [SMALL, ODD])
def test_matches_cover_the_image_whatever_its_size(camera: StereoCamera) -> None:
    sequence = RenderedSequence("room", 3, 3, camera=camera, texels=128)
    _, _, reference, _, match = matched(sequence, 1)
    size = (camera.height, camera.width)
    assert reference.disparity.shape == reference.disparity_var.shape == size
    assert match.flow is not None
    assert match.flow_var is not None
    assert match.flow.shape == match.flow_var.shape == (2, *size)
    for variance in (reference.disparity_var, match.flow_var):
        assert bool((variance >= 0.01**2 * 0.999).all())
        assert bool((variance < 41**2).all())
    assert match.row_check().epipolar_var >= 0


def test_channels_are_finite_and_bounded_even_for_nonsense() -> None:
    rng = np.random.default_rng(0)
    noise = [ImageFeatures(rng.integers(0, 256, (237, 323), dtype=np.uint8)) for _ in range(2)]
    black = ImageFeatures(np.zeros((237, 323), np.uint8))
    flow = rng.normal(0, 150, (118, 160, 2)).astype(np.float32)
    disparity = rng.normal(0, 50, (59, 80)).astype(np.float32)
    match = RowMatch(rng.normal(0, 150, (118, 160)).astype(np.float32), rng.random((118, 160)) < 0.5)
    for source, target in ((noise[0], noise[1]), (black, black), (noise[0], black)):
        for channels in (
            stereo_features(source, target, match, ODD),
            temporal_features(source, target, flow, disparity, ODD, np.eye(4)),
        ):
            assert channels.shape == (len(CHANNELS), 59, 80)
            assert np.isfinite(channels).all()
            assert np.abs(channels).max() <= 8


def test_departure_shows_what_moves_by_itself() -> None:
    camera = SMALL.resized(80, 60)
    v, u = np.mgrid[:60, :80]
    disparity = (2 + 0.02 * v + np.sin(u / 9.0)).astype(np.float32)
    motion = transform(exp_so3(np.array([0.01, -0.02, 0.015])), np.array([0.1, -0.03, 0.25]))
    flow = rigid_flow(camera, disparity, motion)
    flow[20:40, 30:50] += np.float32([1.5, -0.7])
    flow += np.random.default_rng(0).normal(0, 0.02, flow.shape).astype(np.float32)
    start = transform(exp_so3(np.array([0.0, 0.02, 0.0])), np.array([0.0, 0.0, 0.1]))
    departure = rigid_departure(camera, disparity, flow, start)
    still = np.ones((60, 80), bool)
    still[20:40, 30:50] = False
    assert np.abs(np.median(departure[still], axis=0)).max() < 0.03
    assert np.allclose(np.median(departure[~still], axis=0), [1.5, -0.7], atol=0.1)
    error = inverse(motion) @ fit_motion(camera, disparity, flow, start)
    assert np.linalg.norm(error[:3, 3]) < 0.02
    assert np.linalg.norm(log_so3(error[:3, :3])) < 0.003


def z_scores(truth: Truth, match: Match) -> np.ndarray:
    assert match.flow is not None
    assert match.flow_var is not None
    error = np.clip(match.flow.numpy() - truth.static_flow, -LARGEST_ERROR, LARGEST_ERROR)
    z: np.ndarray = error / np.sqrt(match.flow_var.numpy())
    return z[np.isfinite(z)]


def test_sigma_is_honest_and_follows_the_error(crowd: RenderedSequence) -> None:
    _, _, reference, _, match = matched(crowd, 3)
    truth = crowd.truth(3)
    z = z_scores(truth, match)
    assert 0.5 < z.std() < 2.0
    assert np.mean(np.abs(z) < 1) > 0.6
    assert match.flow is not None
    assert match.flow_var is not None
    error = np.abs(match.flow[0].numpy() - truth.static_flow[0])
    sigma = np.sqrt(match.flow_var[0].numpy())
    good = np.isfinite(error)
    assert np.corrcoef(np.log(error[good] + 0.01), np.log(sigma[good]))[0, 1] > 0.4
    hidden = ~truth.disparity_valid
    stereo = np.sqrt(reference.disparity_var.numpy())
    assert np.median(stereo[hidden]) > 3 * np.median(stereo[~hidden])


def test_refinement_improves_and_knows_how_good_it_is(room: RenderedSequence) -> None:
    matcher, first, reference, second, match = matched(room, 2)
    truth = room.truth(2)
    rng = np.random.default_rng(0)
    pixel = np.column_stack((rng.integers(20, 300, 400), rng.integers(20, 220, 400)))
    u, v = pixel.T
    assert match.flow_var is not None
    certain = match.flow_var.sum(0).numpy()[v, u] < np.median(match.flow_var.sum(0).numpy())
    pixel = pixel[certain & truth.flow_valid[v, u]].astype(np.float64)
    dense = look_up(pixel, reference, match)
    refined = matcher.refine(first, reference, second, match, pixel)

    def errors(points: PointMatches) -> np.ndarray:
        column, row = points.pixel.astype(int).T
        return np.asarray(points.flow - truth.static_flow[:, row, column].T)

    assert np.median(np.abs(errors(refined))) < 0.8 * np.median(np.abs(errors(dense)))
    z = errors(refined) / np.sqrt(refined.flow_var)
    assert 0.4 < 1.4826 * np.median(np.abs(z)) < 1.8


def test_the_stereo_match_of_a_frame_is_made_once_and_sizes_may_change(room: RenderedSequence) -> None:
    matcher, _, _, second, match = matched(room, 2)
    again = matcher.match(room[2], second)
    assert again.disparity is match.disparity
    for size in ((640, 480), (320, 240), (200, 160)):
        camera = SMALL.resized(*size)
        images = [np.random.default_rng(i).integers(0, 255, size[::-1], dtype=np.uint8) for i in range(2)]
        frames = [StereoFrame(images[i], images[1 - i], i, camera) for i in range(2)]
        reference = matcher.match(None, frames[0])
        matcher.match(frames[0], frames[1], Prediction(np.eye(4), reference.disparity))
    matcher.reset()


def test_odometry_with_lite_follows_the_truth(crowd: RenderedSequence) -> None:
    odometry = StereoOdometry(Config(matcher="lite"))
    estimates = [odometry.track(crowd[index]) for index in range(5)]
    assert crowd.ground_truth is not None
    assert all(estimate.status is Status.TRACKING for estimate in estimates[1:])
    truth = inverse(crowd.ground_truth[0]) @ crowd.ground_truth[4]
    error = inverse(truth) @ estimates[-1].pose
    assert np.linalg.norm(error[:3, 3]) < 0.02 * np.linalg.norm(truth[:3, 3]) + 0.005
    assert np.linalg.norm(log_so3(error[:3, :3])) < np.deg2rad(0.15)


def test_auto_says_what_it_chose_and_why(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    weights = ["flowformer.weights=net.safetensors"]
    with caplog.at_level(logging.INFO):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        assert choose_matcher(load_config(assignments=weights)) == "flowformer"
        assert choose_matcher(load_config()) == "lite"
        assert choose_matcher(load_config(assignments=[*weights, "device=cpu"])) == "lite"
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        assert choose_matcher(load_config(assignments=weights)) == "lite"
    assert [record.message.split("because ")[1] for record in caplog.records] == [
        "there are a CUDA device and flowformer.weights",
        "flowformer.weights names no checkpoint",
        "device is cpu",
        "there is no CUDA device",
    ]
    assert isinstance(make_matcher(Config(matcher="auto")), LiteMatcher)


def test_robust_loss_is_least_at_the_true_sigma_and_ignores_outliers() -> None:
    rng = np.random.default_rng(0)
    error = torch.from_numpy(rng.normal(0, 0.2, 20_000))
    error[:100] = 15.0
    log_sigma = torch.linspace(-3, 1, 81, dtype=torch.float64)
    losses = torch.stack([robust_nll(error, s.expand_as(error)).mean() for s in log_sigma])
    assert abs(float(log_sigma[losses.argmin()]) - np.log(0.2)) < 0.1
    gaussian = torch.stack([((error / s.exp()) ** 2 + 2 * s).mean() for s in log_sigma])
    assert float(log_sigma[gaussian.argmin()]) > np.log(0.2) + 1


@pytest.fixture(scope="module")
def samples(room: RenderedSequence, tmp_path_factory: pytest.TempPathFactory) -> LiteSamples:
    folder = tmp_path_factory.mktemp("lite")
    np.savez(folder / "7_0.npz", **render_clip(room, 1, 7))  # type: ignore[arg-type]
    return LiteSamples([folder / "7_0.npz"], folder / "evidence")


def test_samples_hold_the_errors_of_the_matcher(samples: LiteSamples) -> None:
    assert len(samples) == 4
    for index in range(4):
        evidence, refined, dense, valid = samples[index]
        assert evidence.shape == (len(CHANNELS), 60, 80)
        assert float(valid.float().mean()) > 0.95
        assert float(dense[0][valid].abs().median()) < 0.6
        known = torch.isfinite(refined[0])
        assert 200 <= int(known.sum()) <= 600
        assert float(refined[0][known].abs().median()) < float(dense[0][valid].abs().median())


def test_training_learns_and_goes_on_after_a_kill_as_if_nothing_happened(samples: LiteSamples, tmp_path: Path) -> None:
    settings = TrainingSettings(steps=12, batch=2, height=40, width=48, learning_rate=3e-3, seed=1)
    worker = Worker(0, 1, torch.device("cpu"))

    def run(folder: Path, kill_at: int | None = None) -> tuple[LiteNetwork, list[str]]:
        torch.manual_seed(0)
        training, lines = LiteTraining(LiteNetwork((8, 8, 8))), list[str]()

        def report(line: str) -> None:
            lines.append(line)
            if kill_at is not None and line.startswith(f"step {kill_at}/"):
                raise KeyboardInterrupt

        train(training, samples, settings, folder, worker, save_every=4, report_every=2, report=report)
        return training.network, lines

    whole, lines = run(tmp_path / "whole")
    losses = [float(line.split("loss ")[1].split()[0]) for line in lines]
    assert losses[-1] < losses[0]
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "killed", kill_at=6)
    resumed, lines = run(tmp_path / "killed")
    assert lines[0].startswith("step 6/")
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name


def test_network_answers_for_every_cell_of_any_even_grid() -> None:
    network = LiteNetwork().eval()
    for rows, columns in ((60, 80), (92, 306), (6, 10)):
        out = network(torch.zeros(1, len(CHANNELS), rows, columns))
        assert out.shape == (1, len(OUTPUTS), rows, columns)


def test_a_damaged_clip_is_named(tmp_path: Path) -> None:
    (tmp_path / "1_0.npz").write_bytes(b"no clip")
    with pytest.raises(SequenceError, match=r"1_0\.npz is not a clip"):
        Clip(tmp_path / "1_0.npz")


def test_grid_means_are_those_of_the_blocks() -> None:
    dense = np.arange(9 * 14, dtype=np.float32).reshape(9, 14)
    expected = dense[:8, :12].reshape(2, 4, 3, 4).mean(axis=(1, 3))
    assert np.allclose(to_grid(dense), expected)
