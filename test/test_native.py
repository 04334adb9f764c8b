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

"""The compiled kernels say what their numpy, OpenCV and PyTorch twins say, on images, to float32 rounding."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from simulated_tracks import CAMERA, known_start, simulate_path, simulate_points, start_near

import macvo_ros.doubt.appearance as appearance
import macvo_ros.matching.lite.features as features
import macvo_ros.matching.lite.rigid_departure as rigid_departure
import macvo_ros.matching.lite.variance as variance
import macvo_ros.matching.native.library as library
import macvo_ros.matching.patch_fit as patch_fit
import macvo_ros.matching.patch_model as patch_model
import macvo_ros.matching.patch_refinement as patch_refinement
import macvo_ros.matching.rigid_flow as rigid_flow
import macvo_ros.matching.stereo_search as stereo_search
import macvo_ros.motion.calibration_shift as calibration_shift
import macvo_ros.motion.expected_views as expected_views
import macvo_ros.motion.point_pairs as point_pairs
import macvo_ros.motion.pose_solver as pose_solver
import macvo_ros.motion.window_solver as window_solver
import macvo_ros.motion.window_system as window_system
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import exp_so3, transform
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.lite.network import LiteNetwork, load_network
from macvo_ros.matching.matcher import Match, StereoMatch
from macvo_ros.matching.patch_tracking import cut_patches, find_patches
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.settings.config import PoseConfig
from macvo_ros.uncertainty.calibration_model import SIZE
from macvo_ros.uncertainty.motion_prior import MotionPrior

USERS = (
    appearance, features, rigid_departure, variance, patch_fit, patch_model, patch_refinement, rigid_flow,
    stereo_search, calibration_shift, expected_views, point_pairs, pose_solver, window_solver, window_system,
)  # fmt: skip
MOTION = transform(exp_so3(np.array([0.01, -0.02, 0.005])), np.array([0.05, 0.02, 0.1]))


@pytest.fixture(autouse=True)
def _built() -> None:
    if library.kernels() is None:
        pytest.skip(f"no compiled kernels: {library.why_missing()}")


@pytest.fixture
def twins(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], tuple[Any, Any]]:
    """What a function returns with the kernels and without them."""

    def both(function: Callable[[], Any]) -> tuple[Any, Any]:
        native = function()
        with monkeypatch.context() as without:
            for module in USERS:
                without.setattr(module, "kernels", lambda: None)
            return native, function()

    return both


@pytest.fixture(scope="module")
def frames() -> list[Any]:
    sequence = RenderedSequence("shapes", 2, 1)
    return [sequence[0], sequence[1]]


def patches_at(count: int, image: np.ndarray) -> np.ndarray:
    height, width = image.shape
    return np.random.default_rng(3).uniform((0, 0), (width - 1, height - 1), (count, 2))


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("perspective", [False, True])
def test_patches_are_refined_alike(twins, frames, axes: int, perspective: bool) -> None:
    if axes == 1 and perspective:
        pytest.skip("nobody asks for perspective along rows")
    source, target = frames[0].smooth_left, frames[1].smooth_left if axes == 2 else frames[0].smooth_right
    pixel = patches_at(150, source)
    rng = np.random.default_rng(4)
    dense = rng.normal(0, 0.5, (source.shape[0] // 2, source.shape[1] // 2, 3)).astype(np.float32)
    dense = cv2.GaussianBlur(dense, (0, 0), 5)[..., :axes]  # with strides of its own
    tilt = rng.normal(0, 0.01, (150, 2)) if perspective else None

    def refine() -> Any:
        model = patch_model.linearise(source, pixel, 18, 3, axes)
        return patch_refinement.refine_patches(model, target, dense, pixel, tilt)

    native, plain = twins(refine)
    same = native.ok & plain.ok
    assert same.mean() > 0.25
    assert (native.ok == plain.ok).mean() > 0.98  # one at the limit may fall to either side
    np.testing.assert_allclose(native.displacement[same], plain.displacement[same], atol=2e-3)
    np.testing.assert_allclose(native.patch_var[same], plain.patch_var[same], rtol=2e-3)
    np.testing.assert_allclose(native.likeness[same], plain.likeness[same], atol=1e-3)
    np.testing.assert_allclose(native.bend, plain.bend, rtol=1e-4, atol=1e-4)


def test_a_patch_is_looked_for_on_the_row_that_is_told(frames) -> None:
    image = frames[0].smooth_left
    lower = np.roll(image, 2, axis=0)
    pixel = patches_at(60, image)
    pixel = pixel[(np.abs(pixel - np.array(image.shape[::-1]) / 2) < np.array(image.shape[::-1]) / 2 - 40).all(axis=1)]
    dense = np.zeros((*image.shape, 1), np.float32)
    model = patch_model.linearise(image, pixel, 12, 3, 1)
    alike = [
        patch_refinement.refine_patches(model, lower, dense, pixel, rows=row).likeness.mean()
        for row in (None, np.full(len(pixel), 2.0))
    ]
    assert alike[1] > 0.999
    assert alike[0] < alike[1]


def test_no_patches_are_found_again_as_none(twins, frames) -> None:
    image, none = frames[0].smooth_left, np.zeros((0, 2))
    for found in twins(lambda: find_patches(cut_patches(image, none, 15, 3, 2), image, none, np.zeros((0, 2, 2)))):
        assert found.pixel.shape == (0, 2)


@pytest.mark.parametrize("axes", [1, 2])
def test_patches_are_found_again_alike(twins, frames, axes: int) -> None:
    first, later = frames[0].smooth_left, frames[1].smooth_left
    pixel = patches_at(80, first)
    rng = np.random.default_rng(5)
    warp = np.eye(2) + rng.normal(0, 0.02, (80, 2, 2))
    expected = pixel + rng.normal(0, 0.5, pixel.shape)
    which = rng.permutation(80)
    native, plain = twins(
        lambda: find_patches(cut_patches(first, pixel, 15, 3, axes), later, expected[which], warp[which], which=which)
    )
    both = native.found & plain.found
    assert (native.found == plain.found).mean() > 0.97
    np.testing.assert_allclose(native.pixel[both], plain.pixel[both], atol=2e-3)
    np.testing.assert_allclose(native.patch_var[both], plain.patch_var[both], rtol=5e-3)


@pytest.mark.parametrize("lowest", [-12, -1, 5])
def test_rows_are_searched_as_opencv_does(twins, frames, lowest: int) -> None:
    left, right = (cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA) for image in frames[0].grey)
    native, opencv = twins(lambda: stereo_search._semi_global(left, right, lowest, lowest + 47))
    # At the left and right edge OpenCV's costs are its own; a handful of columns in, both find the very same.
    inside = slice(64, left.shape[1] - 48)
    assert (native[:, inside] == opencv[:, inside]).mean() > 0.998
    assert (np.abs(native - opencv) > 16).mean() < 0.02


def test_a_range_with_nothing_in_it_is_searched_all_the_same(twins, frames) -> None:
    left, right = (cv2.resize(image, None, fx=0.25, fy=0.25) for image in frames[0].grey)
    native, opencv = twins(lambda: stereo_search._semi_global(left, right, 5, 4))
    assert (np.abs(native - opencv) > 16).mean() < 0.1


def test_beyond_the_width_of_an_image_nothing_is_found(frames) -> None:
    left, right = (cv2.resize(image, None, fx=0.25, fy=0.25) for image in frames[0].grey)
    # -4096 pixels are -65536 16ths: to 16 bits the same as 0.
    assert not stereo_search.search_rows(left, right, -4098.0, -4080.0).confirmed.any()


def test_gaps_are_filled_and_fractions_found_alike(frames) -> None:
    left, right = frames[0].grey
    rng = np.random.default_rng(6)
    found = np.full(left.shape, -32, np.int16)
    known = rng.random(left.shape) < 0.3
    found[known] = rng.integers(-16, 900, int(known.sum()))
    found[:3] = found[50:57] = found[-2:] = -32  # rows with nothing
    disparity, confirmed = stereo_search._finished_natively(left, right, found, -1)
    filled, sure = stereo_search._filled(found, -1)
    np.testing.assert_array_equal(confirmed, sure)
    np.testing.assert_allclose(disparity, stereo_search._sub_pixel(left, right, filled), atol=1e-3)
    nothing = np.full((6, 8), -32, np.int16)
    assert not stereo_search._finished_natively(left[:6, :8], right[:6, :8], nothing, -1)[1].any()


@pytest.mark.parametrize("size", [(480, 640), (203, 307)])
def test_evidence_is_the_same(twins, frames, size: tuple[int, int]) -> None:
    height, width = size
    camera = frames[0].camera.resized(width, height)
    images = [cv2.resize(image, (width, height)) for image in (frames[0].left, frames[1].left, frames[1].right)]
    images = [image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in images]
    rows, columns = features.grid_size(height, width)
    rng = np.random.default_rng(7)
    smooth = cv2.GaussianBlur(rng.normal(0, 20, (2 * rows, 2 * columns, 2)).astype(np.float32), (0, 0), 4)
    match = stereo_search.RowMatch(np.abs(smooth[..., 0]), rng.random((2 * rows, 2 * columns)) < 0.8)
    disparity = rng.uniform(0, 30, (rows, columns)).astype(np.float32)

    def evidence() -> tuple[np.ndarray, ...]:
        before, now, right = (features.ImageFeatures(image) for image in images)
        return (
            features.stereo_features(now, right, match, camera),
            features.temporal_features(before, now, smooth, disparity, camera, MOTION),
            before.patch_variance(),
        )

    for native, plain in zip(*twins(evidence), strict=True):
        np.testing.assert_allclose(native, plain, atol=2e-3, rtol=1e-4)


@pytest.mark.parametrize("size", [(60, 80), (61, 81), (7, 9)])
def test_the_network_says_the_same(twins, size: tuple[int, int]) -> None:
    network = variance.VarianceNetwork(load_network())
    evidence = np.random.default_rng(8).normal(0, 1.5, (len(features.CHANNELS), *size)).astype(np.float32)
    native, torch_says = twins(lambda: network(evidence))
    np.testing.assert_allclose(native, torch_says, rtol=1e-4)


@pytest.mark.parametrize("widths", [(8, 16, 24), (32, 32, 48)])
def test_a_network_of_other_widths_runs_in_torch(twins, widths: tuple[int, int, int]) -> None:
    network = variance.VarianceNetwork(LiteNetwork(widths))
    evidence = np.random.default_rng(13).normal(0, 1.5, (len(features.CHANNELS), 12, 16)).astype(np.float32)
    native, torch_says = twins(lambda: network(evidence))
    np.testing.assert_array_equal(native, torch_says)


def test_flows_of_rigid_motions_are_the_same(twins) -> None:
    camera = StereoCamera(100.0, 110.0, 70.0, 40.0, 0.1, 141, 83)
    rng = np.random.default_rng(9)
    disparity = rng.uniform(-1, 20, (83, 141)).astype(np.float32)
    native, plain = twins(lambda: rigid_flow.rigid_flow(camera, disparity, MOTION))
    np.testing.assert_allclose(native, plain, atol=1e-3)
    flow = plain + rng.normal(0, 0.2, plain.shape).astype(np.float32)
    flow[:30] += 3
    native, plain = twins(lambda: rigid_departure.fit_motion(camera, disparity, flow, np.eye(4)))
    np.testing.assert_allclose(native, plain, atol=1e-9)


@pytest.mark.parametrize("masked", [False, True])
def test_looks_are_compared_alike(twins, frames, masked: bool) -> None:
    import torch

    camera = frames[0].camera
    rng = np.random.default_rng(10)
    disparity = torch.from_numpy(rng.uniform(5, 30, (camera.height, camera.width)).astype(np.float32))
    match = Match(StereoMatch(disparity, torch.full_like(disparity, 0.1)))
    now = frames[1]
    if masked:
        hidden = np.zeros((camera.height, camera.width), bool)
        hidden[: camera.height // 3] = True
        now = StereoFrame(now.left, now.right, now.stamp, now.camera, masked=hidden)
    native, plain = twins(lambda: appearance.appearance_mismatch(frames[0], match, now, MOTION))
    assert plain > 0.02
    assert native == pytest.approx(plain, abs=2e-3)


def test_looks_are_compared_whatever_the_layout_and_kind(frames) -> None:
    import torch

    camera = frames[0].camera.cropped(0, 0, 100, 90)  # small enough to be compared as it is
    images = [frame.grey[0][:90, :100] for frame in frames]
    turned = [StereoFrame(*(np.asfortranarray(i),) * 2, n, camera) for n, i in enumerate(images)]
    plain = [StereoFrame(*(np.ascontiguousarray(i),) * 2, n, camera) for n, i in enumerate(images)]
    disparity = torch.full((90, 100), 10.0)
    exact = Match(StereoMatch(disparity.double(), torch.full_like(disparity, 0.1).double()))
    match = Match(StereoMatch(disparity, torch.full_like(disparity, 0.1)))
    expected = appearance.appearance_mismatch(plain[0], match, plain[1], MOTION)
    assert appearance.appearance_mismatch(turned[0], exact, turned[1], MOTION) == expected


@pytest.mark.parametrize("size", [(40, 4000), (90, 1)])
def test_one_row_or_column_does_not_reach_a_kernel_that_reads_two(monkeypatch, size: tuple[int, int]) -> None:
    import torch

    called, native = [], library.kernels()
    assert native is not None

    def noted(name: str, *arguments: Any) -> None:
        called.append(name)
        native(name, *arguments)

    for module in (appearance, stereo_search):
        monkeypatch.setattr(module, "kernels", lambda: noted)
    height, width = size
    image = np.random.default_rng(14).integers(0, 256, size, dtype=np.uint8)
    frame = StereoFrame(image, image, 0, StereoCamera(100.0, 100.0, width / 2, height / 2, 0.1, width, height))
    match = Match(StereoMatch(torch.ones(size), torch.ones(size)))
    assert appearance.appearance_mismatch(frame, match, frame, np.eye(4)) == 0.0
    assert "macvo_appearance" not in called  # 4000 columns are reduced to 160: one row is left of 40
    if width == 1:
        assert np.isfinite(stereo_search.search_rows(image, image, -2, 16).disparity).all()
        assert "macvo_sub_pixel" not in called


def test_residuals_and_normal_equations_are_the_same(twins) -> None:
    rng = np.random.default_rng(11)
    points = rng.uniform((-3, -2, 3), (3, 2, 20), (120, 3))
    spread = rng.normal(0, 0.05, (2, 120, 3, 3))
    covariances = spread @ spread.transpose(0, 1, 3, 2) + 1e-6 * np.eye(3)
    pairs = point_pairs.PointPairs(points + rng.normal(0, 0.1, points.shape), covariances[0], points, covariances[1])
    rotation, translation, active = MOTION[:3, :3], MOTION[:3, 3], (rng.random(120) < 0.9).astype(float)

    def system() -> tuple[np.ndarray, ...]:
        white = point_pairs.whitened(pairs, rotation, translation)
        return *white, *pose_solver._system(white, points, rotation, 1.5, active)

    for native, plain in zip(*twins(system), strict=True):
        np.testing.assert_allclose(native, plain, rtol=1e-8, atol=1e-8 * np.abs(plain).max())


@pytest.mark.parametrize("told", [False, True])
def test_poses_are_the_same(twins, told: bool) -> None:
    rng = np.random.default_rng(12)
    points = rng.uniform((-3, -2, 3), (3, 2, 20), (120, 3))
    covariance = np.tile(np.diag([1e-4, 1e-4, 1e-2]), (120, 1, 1))
    seen = (points - MOTION[:3, 3]) @ MOTION[:3, :3] + rng.normal(0, (0.01, 0.01, 0.1), points.shape)
    seen[:10] += 1.0  # outliers
    pairs = point_pairs.PointPairs(points, covariance, seen, covariance)
    prior = MotionPrior(np.eye(4), np.diag([10.0, 10, 10, 100, 100, 100])) if told else None
    native, plain = twins(lambda: pose_solver.solve_pose(pairs, np.eye(4), PoseConfig(), prior))
    assert native.iterations == plain.iterations > 2
    np.testing.assert_array_equal(native.inlier, plain.inlier)
    np.testing.assert_allclose(native.motion, plain.motion, atol=1e-9)
    np.testing.assert_allclose(native.information, plain.information, rtol=1e-7)


def window_of_tracks() -> tuple[Any, ...]:
    """Rotation, position, points and state of six frames: some points are not seen in between, one nowhere."""
    rng = np.random.default_rng(13)
    rotation, position = simulate_path(rng, 6)
    points = simulate_points(rng, rotation, position, np.repeat(np.arange(5), 12), 0.4)
    unseen = rng.random((6, len(points))) < 0.3
    points.inverse_sigma[np.broadcast_to(unseen[:, None], points.inverse_sigma.shape)] = 0.0
    points.inverse_sigma[:, :, 7] = 0.0
    return rotation, position, points, start_near(rng, rotation, position, points)


def test_an_error_of_the_calibration_moves_things_alike(twins) -> None:
    rng = np.random.default_rng(16)
    seen = np.vstack((rng.uniform(0, 639, 50), rng.uniform(0, 479, 50), rng.uniform(0.5, 60, 50)))
    lens = calibration_shift.CalibrationShift(CAMERA, rng.normal(0.0, 1e-2, SIZE))
    native, plain = twins(lambda: lens.corrected(seen))
    assert np.abs(plain - seen).max() > 0.1
    np.testing.assert_allclose(native, plain, atol=1e-10)


def test_views_from_another_pose_are_expected_alike(twins) -> None:
    rotation, position, points, state = window_of_tracks()
    slope = np.random.default_rng(15).normal(0, 0.05, (len(points), 2))
    which = np.arange(1, len(points), 2)
    for ahead in (0.2, 8.0):  # some points are behind the camera, and some seen edge on
        pose = transform(rotation[5], position[5] + np.array([0.1, 0.0, ahead]))
        native, plain = twins(
            lambda pose=pose: expected_views.expected_views(CAMERA, points, state, slope, pose, which).numbers
        )
        assert native.shape == (len(which), 12)
        assert (plain[:, 0] < -1e5).any() == (ahead > 1.0)
        np.testing.assert_allclose(native, plain, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_windows_are_linearised_alike(twins, damping: float) -> None:
    *_, points, state = window_of_tracks()
    active = (np.random.default_rng(14).random(len(points)) < 0.8).astype(float)
    native, plain = twins(lambda: window_system.linearise(CAMERA, points, state, PoseConfig(), active, damping))
    for name, value in vars(plain).items():
        np.testing.assert_allclose(getattr(native, name), value, rtol=1e-7, atol=1e-8 * np.abs(value).max())


@pytest.mark.parametrize("kernel", [0.0, 2.0])
def test_windows_are_solved_alike(twins, kernel: float) -> None:
    """From afar, with a prior on the first frames and points that move by themselves, which are rejected."""
    rotation, position, points, state = window_of_tracks()
    points.seen[:, 0, ::9] += 3.0 * np.arange(6)[:, None]
    prior = known_start(rotation, position).with_motion(np.diag([1e-3] * 3 + [1e-5] * 3), rotation[:2], position[:2])
    start = replace(state, position=state.position + np.linspace(0, 0.5, 6)[:, None] * np.array([1.0, 0, 0]))
    config = PoseConfig(kernel=kernel)
    native, plain = twins(lambda: window_solver.solve_window(CAMERA, points, start, prior, config))
    assert native.iterations == plain.iterations > 4
    np.testing.assert_array_equal(native.inlier, plain.inlier)
    assert 0.5 < plain.inlier.mean() < 1.0
    for name, value in vars(plain.state).items():
        np.testing.assert_allclose(getattr(native.state, name), value, atol=1e-9)
    np.testing.assert_allclose(native.information, plain.information, rtol=1e-7, atol=1e-9 * plain.information.max())
    np.testing.assert_allclose(native.chi2, plain.chi2, rtol=1e-9)


def test_a_window_without_points_is_solved_alike(twins) -> None:
    rotation, position, points, state = window_of_tracks()
    none = np.zeros(len(points), bool)
    prior = known_start(rotation, position)
    for frames in range(2, 7):
        prior = prior.with_motion(np.diag([1e-3] * 3 + [1e-5] * 3), rotation[:frames], position[:frames])
    empty, start = points.subset(none), replace(state, points=state.points[:, none])
    native, plain = twins(lambda: window_solver.solve_window(CAMERA, empty, start, prior, PoseConfig()))
    np.testing.assert_allclose(native.state.position, plain.state.position, atol=1e-9)
    np.testing.assert_allclose(native.state.position, position, atol=1e-6)


def test_wrong_arrays_do_not_reach_c() -> None:
    native = library.kernels()
    assert native is not None
    found, out, sure = np.zeros((4, 4), np.int16), np.empty((4, 4), np.float32), np.empty((4, 4), np.uint8)
    native("macvo_fill_rows", found, 4, 4, 0, out, sure)
    with pytest.raises(TypeError, match="int16"):
        native("macvo_fill_rows", found.astype(np.int32), 4, 4, 0, out, sure)
    with pytest.raises(TypeError, match="contiguous"):
        native("macvo_fill_rows", found, 4, 4, 0, out.T[::2], sure)
    with pytest.raises(TypeError, match="6 arguments"):
        native("macvo_fill_rows", found, 4, 4)


def test_threads_do_not_share_what_kernels_work_in(frames) -> None:
    left, right = frames[0].grey
    expected = stereo_search._semi_global(left, right, 0, 47)
    found: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: found.append(stereo_search._semi_global(left, right, 0, 47))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for each in found:
        np.testing.assert_array_equal(each, expected)


def test_a_missing_or_old_library_is_said_once_and_does_no_harm(monkeypatch, caplog, tmp_path) -> None:
    def fails() -> library.Kernels:
        raise OSError("_kernels.so was built from other sources")

    monkeypatch.setattr(library, "_loaded", fails)
    library.kernels.cache_clear()
    try:
        with caplog.at_level(logging.WARNING):
            assert library.kernels() is None
            assert library.kernels() is None
        assert caplog.text.count("built from other sources") == 1
        assert "other sources" in library.why_missing()
        monkeypatch.setenv("MACVO_NATIVE", "0")
        assert "MACVO_NATIVE" in library.why_missing()
    finally:
        library.kernels.cache_clear()
    (tmp_path / "_kernels.so").write_bytes(b"no library")
    with pytest.raises(OSError, match="_kernels"):
        library.Kernels(tmp_path / "_kernels.so")


def test_a_library_of_another_version_is_refused(monkeypatch) -> None:
    path = next(Path(library.__file__).parent.glob("_kernels*.so"))
    monkeypatch.setattr(library, "VERSION", library.VERSION + 1)
    with pytest.raises(OSError, match="built from other sources"):
        library.Kernels(path)
    monkeypatch.undo()
    monkeypatch.setitem(library.SIGNATURES, "macvo_of_tomorrow", "f")
    with pytest.raises(OSError, match="built from other sources"):
        library.Kernels(path)


def test_memory_stays_lent_when_a_library_that_was_loaded_twice_is_let_go() -> None:
    script = """
import gc, sys
from pathlib import Path
import numpy as np
from macvo_ros.matching.native.library import Kernels

def work(native):
    ray = np.ones((3, 5000))
    native("macvo_fit_motion", ray, ray[:2].copy(), np.ones(5000), 5000, 3, 100.0, 0.1, 1e-6, 0.01, np.eye(4))

first, second = Kernels(Path(sys.argv[1])), Kernels(Path(sys.argv[1]))
work(first)
work(second)
del second
gc.collect()
work(first)
"""
    path = next(Path(library.__file__).parent.glob("_kernels*.so"))
    root = Path(library.__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", script, str(path)], cwd=root, check=False).returncode == 0


def test_signatures_are_those_of_the_sources() -> None:
    kinds = {"float *": "fFs", "double *": "dD", "int64_t *": "l", "int16_t *": "h", "uint8_t *": "bB"}
    kinds |= {"int64_t": "I", "int": "i", "float": "x", "double": "y"}
    sources = "".join(file.read_text() for file in sorted(Path(library.__file__).parent.glob("*.c")))
    found = dict(re.findall(r"KERNEL\((\w+),\s*\(([^)]*)\)", sources))
    assert found.keys() == library.SIGNATURES.keys()
    for name, parameters in found.items():
        letters = library.SIGNATURES[name].replace(" ", "")
        each = (" ".join(parameter.split()).removeprefix("const ") for parameter in parameters.split(","))
        declared = [re.sub(r"\w+$", "", parameter) for parameter in each]
        assert len(letters) == len(declared), name
        for letter, kind in zip(letters, declared, strict=True):
            assert letter in kinds[kind.strip()], (name, kind)
