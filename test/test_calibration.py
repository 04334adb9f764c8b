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

"""Calibration files: what they mean, and that a broken one is a sentence, never a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import tiny_datasets
from hypothesis import given, settings
from hypothesis import strategies as st

from macvo_ros.errors import CalibrationError
from macvo_ros.geometry.calibration import (
    load_calibration,
    load_euroc_calibration,
    load_kitti_calibration,
    read_kitti_projections,
    save_calibration,
)
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.rectification import RawStereoCalibration, StereoRectifier


def test_rectified_yaml(tmp_path: Path) -> None:
    (tmp_path / "calib.yaml").write_text(tiny_datasets.RECTIFIED_YAML + "cx_right: 1.45e1\n")
    assert load_calibration(tmp_path / "calib.yaml") == StereoCamera(30.5, 30.0, 15.5, 11.5, 0.12, 32, 24, 14.5)


@settings(deadline=None, derandomize=True)
@given(
    st.floats(1e-3, 1e5),
    st.floats(-1e4, 1e4),
    st.floats(1e-4, 1e3),
    st.none() | st.floats(-1e4, 1e4),
    st.integers(1, 9999),
)
def test_saved_cameras_are_read_back_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, f: float, c: float, baseline: float, cx_right: float | None, size: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "saved.yaml"
    camera = StereoCamera(f, f / 3, c, -c, baseline, size, size + 1, cx_right)
    save_calibration(path, camera)
    assert load_calibration(path) == camera


def test_raw_yaml(tmp_path: Path) -> None:
    (tmp_path / "calib.yaml").write_text(tiny_datasets.RAW_YAML)
    calibration = load_calibration(tmp_path / "calib.yaml")
    assert isinstance(calibration, RawStereoCalibration)
    assert calibration.left.K.tolist() == [[39.0, 0, 31.0], [0, 38.9, 24.5], [0, 0, 1]]
    assert calibration.right.D[3] == -3e-5  # which PyYAML reads as text
    assert StereoRectifier.from_calibration(calibration).camera.baseline == pytest.approx(0.11, abs=1e-3)


def test_kitti(tmp_path: Path) -> None:
    tiny_datasets.kitti(tmp_path)
    camera = load_kitti_calibration(tmp_path / "sequences/00/calib.txt", 40, 24)
    assert (camera.fx, camera.cx, camera.cx_right) == (718.856, 20, None)
    assert camera.baseline == pytest.approx(0.5371657, abs=1e-6)
    with pytest.raises(CalibrationError, match=r"expected a line 'P2'.*found P0, P1"):
        load_kitti_calibration(tmp_path / "sequences/00/calib.txt", 40, 24, "P2", "P3")


def test_kitti_raw_data_names(tmp_path: Path) -> None:
    numbers = " ".join(map(str, range(12)))
    (tmp_path / "calib.txt").write_text(f"calib_time: 09-Jan-2012\nP_rect_02: {numbers}\nR_rect_02: 1 0 0\n")
    assert read_kitti_projections(tmp_path / "calib.txt")["P2"][2, 3] == 11


def test_euroc(tmp_path: Path) -> None:
    tiny_datasets.euroc(tmp_path)
    calibration, T_BS = load_euroc_calibration(*(tmp_path / f"mav0/cam{i}/sensor.yaml" for i in (0, 1)))
    np.testing.assert_allclose(T_BS, tiny_datasets.EUROC_T_BS[0])
    point = np.array([0.3, -0.2, 4.0, 1])  # in the left camera, seen from the right one through the body
    through_body = np.linalg.inv(tiny_datasets.EUROC_T_BS[1]) @ tiny_datasets.EUROC_T_BS[0] @ point
    np.testing.assert_allclose(calibration.R @ point[:3] + calibration.T, through_body[:3])
    with pytest.raises(CalibrationError, match="swapped"):
        load_euroc_calibration(*(tmp_path / f"mav0/cam{i}/sensor.yaml" for i in (1, 0)))


def test_euroc_with_opencv_header(tmp_path: Path) -> None:
    tiny_datasets.euroc(tmp_path)
    files = [tmp_path / f"mav0/cam{i}/sensor.yaml" for i in (0, 1)]
    for file in files:
        file.write_text("%YAML:1.0\n" + file.read_text())
    assert load_euroc_calibration(*files)[0].left.width == 64


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("fx: 30.5", "fx: 0"), "fx must be a positive"),
        (("fx: 30.5", "fx: .nan"), "finite"),
        (("fx: 30.5\n", ""), "fx is missing"),
        (("fx: 30.5", "fx: [1, 2]"), "one number"),
        (("fx: 30.5", "fx: wide"), "expected numbers, got 'wide'"),
        (("baseline: 0.12", "baseline: -0.12"), "swapped"),
        (("baseline: 0.12", "baseline: 0"), "baseline must be"),
        (("width: 32", "width: 32.5"), "whole number"),
        (("width: 32", "width: 0"), "whole number"),
        (("cx: 15.5", "focal: 15.5"), "focal is not a known key"),
        (("fx: 30.5", "fx: 30.5: 3"), "not a YAML file"),
    ],
)
def test_broken_rectified_yaml_is_refused_with_file_and_sentence(
    tmp_path: Path, change: tuple[str, str], sentence: str
) -> None:
    path = tmp_path / "calib.yaml"
    path.write_text(tiny_datasets.RECTIFIED_YAML.replace(*change))
    with pytest.raises(CalibrationError, match=f"calib.yaml.*{sentence}"):
        load_calibration(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("T: [-0.11", "T: [0.11"), "swapped"),
        (("T: [-0.11, 0.001, 0.0005]\n", ""), "T is missing"),
        (("model: plumb_bob", "model: pinhole"), "not known"),
        (("right: {", "wrong: {"), "right must hold"),
        (("0.99995, -0.01]", "0.5, -0.01]"), "not a rotation"),
        (("K: [39.0", "K: [0.0"), "not calibrated"),
    ],
)
def test_broken_raw_yaml_is_refused(tmp_path: Path, change: tuple[str, str], sentence: str) -> None:
    path = tmp_path / "calib.yaml"
    path.write_text(tiny_datasets.RAW_YAML.replace(*change))
    with pytest.raises(CalibrationError, match=f"calib.yaml.*{sentence}"):
        load_calibration(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for load in (load_calibration, read_kitti_projections):
        with pytest.raises(CalibrationError, match="nowhere"):
            load(tmp_path / "nowhere")


ODD = st.sampled_from(
    ["0", "-1", "1e308", "-1e308", ".nan", ".inf", "1e400", "null", "true", "[]", "{}", "*a", "&a [*a]", "2001-99-99",
     "!!binary x", "'", "9" * 5000, "0x", "1_0", "~", "\x00", "\u0661", "!!python/name:os", "[[1,2],[3]]", "%", "-"]
)  # fmt: skip


@st.composite
def broken(draw: st.DrawFn, text: str) -> str:
    """`text` with a few of its numbers or words replaced, or cut, or with odd characters in it."""
    for _ in range(draw(st.integers(1, 3))):
        words = list(re.finditer(r"[-\w.]+", text)) or [re.match("", text)]
        word = draw(st.sampled_from(words))
        new = draw(ODD | st.floats().map(repr) | st.integers().map(str) | st.text(max_size=5))
        text = text[: word.start()] + new + text[word.end() :]
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_any_text_is_a_calibration_or_a_calibration_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp() / "fuzz"
    if not folder.exists():
        tiny_datasets.euroc(folder)
    sensor = folder / "mav0/cam0/sensor.yaml"
    kitti = "P0: 7e2 0 6e2 0 0 7e2 1e2 0 0 0 1 0\nP1: 7e2 0 6e2 -3e2 0 7e2 1e2 0 0 0 1 0\n"
    source = data.draw(
        st.sampled_from([tiny_datasets.RECTIFIED_YAML, tiny_datasets.RAW_YAML, kitti, sensor.read_text()])
    )
    path = folder / "broken"
    text = data.draw(broken(source) | st.text(max_size=60))
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    for load in (
        lambda: load_calibration(path),
        lambda: load_kitti_calibration(path, 40, 24),
        lambda: load_euroc_calibration(path, folder / "mav0/cam1/sensor.yaml")[0],
    ):
        try:
            calibration = load()
            if isinstance(calibration, RawStereoCalibration) and calibration.left.width * calibration.left.height < 1e6:
                calibration = StereoRectifier.from_calibration(calibration).camera
        except CalibrationError:
            continue
        assert isinstance(calibration, RawStereoCalibration) or calibration.baseline > 0


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_calibration_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes"
    path.write_bytes(content)
    with pytest.raises(CalibrationError):
        load_calibration(path)
