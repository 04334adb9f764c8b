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

"""Every layout: what is opened is what was written, and the truth is that of the left rectified camera."""

from __future__ import annotations

import logging
from pathlib import Path

import cv2
import numpy as np
import pytest
import tiny_datasets

from macvo_ros.errors import CalibrationError, MacvoError, SequenceError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import inverse, log_so3
from macvo_ros.images.frame import StereoFrame
from macvo_ros.sequences import open_sequence, recognise
from macvo_ros.sequences.euroc import open_euroc
from macvo_ros.sequences.folder import open_folder, write_folder


@pytest.mark.parametrize("layout", list(tiny_datasets.WRITERS))
def test_layouts_are_recognised_and_hold_the_contract(tmp_path: Path, layout: str) -> None:
    tiny_datasets.WRITERS[layout](tmp_path, count=5)
    assert recognise(tmp_path) == layout
    sequence = open_sequence(tmp_path)
    assert len(sequence) == 5
    assert sequence.stamps.dtype == np.int64
    assert (np.diff(sequence.stamps) > 0).all()
    assert sequence.ground_truth is not None
    assert sequence.ground_truth.shape == (5, 4, 4)
    np.testing.assert_allclose(np.linalg.det(sequence.ground_truth), 1)
    for index in range(5):
        frame = sequence[index]
        assert frame.stamp == sequence.stamps[index]
        assert frame.camera == sequence.camera
    with pytest.raises(IndexError):
        sequence[5]


@pytest.mark.parametrize("layout", list(tiny_datasets.WRITERS))
@pytest.mark.parametrize(("frames", "step"), [((1, 6), 2), ((None, 4), 1), ((-3, None), 1), (None, 3), ((2, 99), 4)])
def test_ranges_and_steps_cut_images_times_and_truth_alike(
    tmp_path: Path, layout: str, frames: tuple[int | None, int | None] | None, step: int
) -> None:
    tiny_datasets.WRITERS[layout](tmp_path, count=7)
    whole, part = open_sequence(tmp_path), open_sequence(tmp_path, layout, frames=frames, step=step)
    chosen = list(range(7))[slice(*(frames or (None, None)), step)]
    assert len(part) == len(chosen)
    assert whole.ground_truth is not None
    assert part.ground_truth is not None
    np.testing.assert_array_equal(part.stamps, whole.stamps[chosen])
    np.testing.assert_array_equal(part.ground_truth, whole.ground_truth[chosen])
    np.testing.assert_array_equal(part[len(part) - 1].right, whole[chosen[-1]].right)


def test_empty_ranges_and_wrong_names_are_refused(tmp_path: Path) -> None:
    tiny_datasets.kitti(tmp_path)
    for arguments, sentence in (
        ({"frames": (10, 20)}, "4 frames, none of them in 10:20"),
        ({"step": 0}, "step"),
        ({"layout": "nuscenes"}, "tartanair, euroc, kitti, folder"),
        ({"layout": "folder"}, "left"),
        ({"layout": "euroc"}, "mav0"),
        ({"layout": "tartanair"}, "image_lcam_front"),
        ({"sequence": "07"}, "no sequence '07'; found 00"),
    ):
        with pytest.raises(SequenceError, match=sentence):
            open_sequence(tmp_path, **arguments)
    with pytest.raises(SequenceError, match="not a folder"):
        open_sequence(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SequenceError, match="none of the known layouts"):
        open_sequence(tmp_path / "empty")


@pytest.mark.parametrize(("version", "size"), [(1, (40, 30)), (1, (640, 480)), (2, (640, 640)), (2, (64, 64))])
def test_tartanair(tmp_path: Path, version: int, size: tuple[int, int]) -> None:
    """NED: with the camera level and heading north, forward (z) is world x, right (x) is y and down (y) is z."""
    poses = tiny_datasets.tartanair(tmp_path / "P000", 2, version, size)
    sequence = open_sequence(tmp_path, sequence="P000")
    assert sequence.ground_truth is not None
    for truth, ned in zip(sequence.ground_truth, poses, strict=True):
        np.testing.assert_allclose(truth[:3, 3], ned[:3, 3])
        np.testing.assert_allclose(truth[:3, 2], ned[:3, 0], atol=1e-12)
        np.testing.assert_allclose(truth[:3, 0], ned[:3, 1], atol=1e-12)
        np.testing.assert_allclose(truth[:3, 1], ned[:3, 2], atol=1e-12)
    camera = sequence.camera
    assert camera.baseline == 0.25
    assert (camera.fx / camera.width, camera.cx) == (0.5, (camera.width - 1) / 2)
    np.testing.assert_array_equal(np.diff(sequence.stamps), 100_000_000)
    np.testing.assert_array_equal(sequence[1].left, tiny_datasets.image(2, *size, colour=True))


def test_tartanair_of_another_shape_is_refused(tmp_path: Path) -> None:
    tiny_datasets.tartanair(tmp_path, size=(64, 32))
    with pytest.raises(SequenceError, match="64x32"):
        open_sequence(tmp_path)


@pytest.mark.parametrize("colour", [False, True])
def test_kitti_truth_is_that_of_the_left_camera_in_use(tmp_path: Path, colour: bool) -> None:
    """A world point projected by camera 0's pose and the left P is where the left camera's own pose puts it."""
    poses = tiny_datasets.kitti(tmp_path, colour=colour)
    sequence = open_sequence(tmp_path)
    assert sequence.ground_truth is not None
    fx, *shift = (tiny_datasets.KITTI_COLOUR if colour else tiny_datasets.KITTI_GREY)[0]
    P = np.column_stack([sequence.camera.K, shift])
    assert sequence.camera.fx == fx
    for truth, camera0 in zip(sequence.ground_truth, poses, strict=True):
        world = camera0 @ [0.5, -0.3, 6.0, 1]
        expected = P @ np.linalg.inv(camera0) @ world
        actual = sequence.camera.P_left @ np.linalg.inv(truth) @ world
        np.testing.assert_allclose(actual[:2] / actual[2], expected[:2] / expected[2], rtol=1e-9)
    assert sequence[0].left.ndim == (3 if colour else 2)
    assert sequence.stamps.tolist() == [0, 103_700_000, 207_400_000, 311_100_000]


def test_kitti_by_root_by_sequence_and_through_links(tmp_path: Path) -> None:
    tiny_datasets.kitti(tmp_path / "data")
    (tmp_path / "elsewhere").symlink_to(tmp_path / "data/sequences/00")
    names = [
        open_sequence(tmp_path / "data").name,
        open_sequence(tmp_path / "data", sequence="00").name,
        open_sequence(tmp_path / "data/sequences/00").name,
        open_sequence(tmp_path / "data/sequences/00", sequence="00").name,
        open_sequence(tmp_path / "elsewhere").name,
    ]
    assert set(names) == {"kitti 00"}
    assert open_sequence(tmp_path / "elsewhere").ground_truth is not None
    (tmp_path / "data/sequences/01").mkdir()
    with pytest.raises(SequenceError, match="00, 01; say which"):
        open_sequence(tmp_path / "data")


def test_kitti_without_poses_or_with_too_few(tmp_path: Path) -> None:
    tiny_datasets.kitti(tmp_path)
    poses = tmp_path / "poses/00.txt"
    poses.write_text("".join(poses.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(SequenceError, match="3 poses for 4 images"):
        open_sequence(tmp_path)
    poses.unlink()
    assert open_sequence(tmp_path).ground_truth is None


@pytest.mark.parametrize("model", ["radial-tangential", "equidistant"])
@pytest.mark.parametrize("inner", ["", "mav0"])
def test_euroc_truth_is_that_of_the_rectified_camera(tmp_path: Path, model: str, inner: str) -> None:
    """A world point seen through body, T_BS and lens lands on the raw pixel from which its rectified pixel is taken."""
    size = (320, 240)
    tiny_datasets.euroc(tmp_path / "MH_01", size=size, model=model)
    sequence = open_euroc(tmp_path / "MH_01" / inner)
    assert sequence.name == "euroc MH_01"
    assert sequence.ground_truth is not None
    assert sequence.rectifier is not None
    y, x = np.mgrid[: size[1], : size[0]].astype(np.float32)
    ramp = np.stack([x, y, 0 * x], axis=2)
    raw_of, _ = sequence.rectifier.apply(ramp, ramp)  # type: ignore[arg-type]
    K = np.array([[0.61 * 320, 0, 0.49 * 320], [0, 0.608 * 320, 0.52 * 240], [0, 0, 1]])
    fisheye = model == "equidistant"
    D = np.array([0.0034, 0.0007, -0.002, 0.0002] if fisheye else [-0.28, 0.07, 0.0002, 1.8e-05])
    zero = np.zeros(3)
    for stamp, truth in zip(sequence.stamps, sequence.ground_truth, strict=True):
        world = truth @ [0.4, -0.6, 3.0, 1]
        image = sequence.camera.P_left @ inverse(truth) @ world
        pixel = (image[:2] / image[2]).astype(np.float32)
        in_raw = np.linalg.inv(tiny_datasets.euroc_body(int(stamp)) @ tiny_datasets.EUROC_T_BS[0]) @ world
        points = in_raw[:3].reshape(1, 1, 3)
        project = cv2.fisheye.projectPoints if fisheye else cv2.projectPoints
        expected = project(points, zero, zero, K, D)[0].ravel()
        actual = cv2.remap(raw_of, pixel.reshape(1, 1, 2), None, cv2.INTER_LINEAR).ravel()[:2]
        np.testing.assert_allclose(actual, expected, atol=0.05)
    turn = np.degrees(np.linalg.norm(log_so3(sequence.rectifier.R_left)))
    assert turn > 0.3  # so that forgetting it would fail above: 0.3 degrees are a pixel


def test_euroc_takes_the_stamps_both_cameras_have(tmp_path: Path) -> None:
    tiny_datasets.euroc(tmp_path, count=6)
    for camera, missing in (("cam0", 2), ("cam1", 4)):
        csv = tmp_path / f"mav0/{camera}/data.csv"
        lines = csv.read_text().splitlines()
        del lines[1 + missing]
        csv.write_text("\n".join(lines))
    sequence = open_sequence(tmp_path)
    start, period = tiny_datasets.EUROC_START, tiny_datasets.EUROC_PERIOD
    assert sequence.stamps.tolist() == [start + i * period for i in (0, 1, 3, 5)]
    other = {file.stem for file in (tmp_path / "mav0/cam1/data").iterdir()} - {str(start + 4 * period)}
    assert str(sequence.stamps[2]) in other


def test_euroc_frames_without_truth_are_left_out_and_said_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tiny_datasets.euroc(tmp_path, count=6)
    truth = tmp_path / "mav0/state_groundtruth_estimate0/data.csv"
    header, *rows = truth.read_text().splitlines()
    late = tiny_datasets.EUROC_START + 2 * tiny_datasets.EUROC_PERIOD
    truth.write_text("\n".join([header, *(row for row in rows if int(row.split(",")[0]) >= late - 5_000_000)]))
    with caplog.at_level(logging.WARNING):
        sequence = open_sequence(tmp_path)
    assert sequence.stamps[0] == late
    assert len(sequence) == 4
    assert "frames 2 to 5 of 6" in caplog.text


def test_euroc_swapped_cameras_are_refused(tmp_path: Path) -> None:
    tiny_datasets.euroc(tmp_path)
    (tmp_path / "mav0/cam0").rename(tmp_path / "mav0/x")
    (tmp_path / "mav0/cam1").rename(tmp_path / "mav0/cam0")
    (tmp_path / "mav0/x").rename(tmp_path / "mav0/cam1")
    with pytest.raises(CalibrationError, match="swapped"):
        open_sequence(tmp_path)


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_folder(tmp_path: Path, suffix: str) -> None:
    poses = tiny_datasets.folder(tmp_path, count=12, suffix=suffix)
    sequence = open_sequence(tmp_path)
    assert sequence.stamps[11] == 1403636595_123456789
    np.testing.assert_allclose(sequence.ground_truth, poses, atol=1e-12)
    written = [tiny_datasets.image(i, 32, 24, colour=True).astype(int) for i in range(12)]
    differences = [np.abs(sequence[10].left - pixels).mean() for pixels in written]
    assert np.argmin(differences) == 10  # "10" comes after "9", not after "1"
    assert suffix == ".jpg" or differences[10] == 0


def test_raw_folder_truth_is_turned_with_the_rectification(tmp_path: Path) -> None:
    poses = tiny_datasets.folder(tmp_path, raw=True)
    sequence = open_folder(tmp_path)
    assert sequence.rectifier is not None
    assert sequence.ground_truth is not None
    R = sequence.rectifier.R_left
    assert np.linalg.norm(log_so3(R)) > 1e-3
    forward = np.array([0, 0, 1.0])  # the rectified camera's axis, in raw axes, in the world
    np.testing.assert_allclose(sequence.ground_truth[2, :3, :3] @ forward, poses[2, :3, :3] @ (R.T @ forward))
    np.testing.assert_allclose(sequence.ground_truth[2, :3, 3], poses[2, :3, 3])


def test_folder_without_times(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tiny_datasets.folder(tmp_path)
    (tmp_path / "times.txt").unlink()
    assert open_sequence(tmp_path).stamps[1] == 1403636585_123456789  # from the ground truth, line by line
    truth = tmp_path / "groundtruth.txt"
    truth.write_text("\n".join(truth.read_text().splitlines()[:-1]))
    with pytest.raises(SequenceError, match=r"add times\.txt"):
        open_sequence(tmp_path)
    truth.unlink()
    assert open_sequence(tmp_path).stamps.tolist() == [0, 100_000_000, 200_000_000, 300_000_000]
    assert "10 Hz is assumed" in caplog.text


def test_folder_with_truth_of_another_time_goes_on_without_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tiny_datasets.folder(tmp_path)
    (tmp_path / "times.txt").write_text("1\n2\n3\n4\n")
    assert open_sequence(tmp_path).ground_truth is None
    assert "no two frames in a row have ground truth" in caplog.text


class Memory:
    """A sequence in memory, grey or colour, to be written."""

    def __init__(self, colour: bool, truth: bool) -> None:
        self.name = "memory"
        self.camera = StereoCamera(30.1, 30.2, 15.7, 11.3, 0.1203, 32, 24, 15.2)
        self.stamps = np.array([5, 1_000_000_123, 1403636584763555584], dtype=np.int64)
        self.ground_truth = tiny_datasets.trajectory(3) if truth else None
        self.colour = colour

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> StereoFrame:
        left, right = (tiny_datasets.image(seed + index, 32, 24, colour=self.colour) for seed in (0, 10))
        return StereoFrame(left, right, int(self.stamps[index]), self.camera)


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("truth", [False, True])
def test_written_folders_are_read_back_to_the_bit(tmp_path: Path, colour: bool, truth: bool) -> None:
    written, seen = Memory(colour, truth), []
    write_folder(tmp_path / "new/folder", written, progress=seen.append)
    assert seen == [0, 1, 2]
    read = open_sequence(tmp_path / "new/folder")
    assert read.camera == written.camera
    np.testing.assert_array_equal(read.stamps, written.stamps)
    for index in range(3):
        np.testing.assert_array_equal(read[index].left, written[index].left)
        np.testing.assert_array_equal(read[index].right, written[index].right)
    if truth:
        np.testing.assert_allclose(read.ground_truth, written.ground_truth, atol=1e-8)
    else:
        assert read.ground_truth is None
    with pytest.raises(SequenceError, match="not empty"):
        write_folder(tmp_path / "new/folder", written)


def test_writing_where_a_file_is_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(MacvoError, match="taken"):
        write_folder(tmp_path / "taken", Memory(False, False))
