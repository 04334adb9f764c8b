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

"""The robot's own body under a mask: it moves as it likes, and neither the pose nor the doubt about it hears of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from macvo_ros.cli import main
from macvo_ros.errors import ConfigError, ImageError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import StereoFrame
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.pipelined_odometry import PipelinedOdometry
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.settings.config import ClassicConfig, Config, MaskConfig, MatchingConfig

CAMERA = StereoCamera(fx=160.0, fy=160.0, cx=159.5, cy=99.5, baseline=0.12, width=320, height=200)
FRAMES, TOP, DISPARITY = 8, 120, 24
BODY = MaskConfig(polygons=f"0,{TOP} 319,{TOP} 319,199 0,199")
HONEST = 0.03
"""Metres after FRAMES of .05 m: what the upper part of the images alone is good for is half of it."""


@pytest.fixture(scope="module")
def walk() -> RenderedSequence:
    return RenderedSequence("room", FRAMES, 1, camera=CAMERA, texels=256)


@pytest.fixture(scope="module")
def frames(walk: RenderedSequence) -> list[StereoFrame]:
    """A walk with a textured arm before the lower 40 % of the lens, .8 m away, that moves 3.6 pixels a frame."""
    noise = cv2.GaussianBlur(np.random.default_rng(5).integers(0, 255, (400, 800)).astype(np.uint8), (0, 0), 1.5)
    texture = np.asarray(cv2.normalize(noise, noise, 0, 255, cv2.NORM_MINMAX))
    found = []
    for index in range(FRAMES):
        rows = slice(100 + 2 * index, 100 + 2 * index + CAMERA.height - TOP)
        frame = walk[index]
        left, right = frame.left.copy(), frame.right.copy()
        for image, shift in ((left, 0), (right, DISPARITY)):
            arm = texture[rows, 200 + 3 * index + shift :][:, : CAMERA.width]
            image[TOP:] = arm if image.ndim == 2 else arm[..., None]
        found.append(replace(frame, left=left, right=right))
    return found


def tracked(config: Config, frames: list[StereoFrame]) -> list[Estimate]:
    odometry = StereoOdometry(config)
    return [odometry.track(frame) for frame in frames]


def end_error(estimates: list[Estimate], walk: RenderedSequence) -> float:
    truth = np.linalg.inv(walk.ground_truth[0]) @ walk.ground_truth[-1]
    return float(np.linalg.norm(estimates[-1].pose[:3, 3] - truth[:3, 3]))


@pytest.mark.parametrize(("matcher", "work_pixels"), [("classic", 0), ("lite", 0), ("classic", 32000)])
def test_a_moving_arm_disturbs_the_pose_no_more(
    walk: RenderedSequence, frames: list[StereoFrame], matcher: str, work_pixels: int
) -> None:
    config = Config(matcher=matcher, matching=MatchingConfig(work_pixels=work_pixels))
    disturbed = tracked(config, frames)
    assert end_error(disturbed, walk) > 10 * HONEST, "otherwise there is nothing to mask"
    masked = tracked(replace(config, mask=BODY), frames)
    assert {estimate.status for estimate in masked[1:]} == {Status.TRACKING}
    assert end_error(masked, walk) < HONEST
    for estimate in masked[1:]:
        assert estimate.landmarks is not None
        assert len(estimate.landmarks.pixel) > 50
        assert estimate.landmarks.pixel[:, 1].max() < TOP


@pytest.mark.parametrize("matcher", ["classic", "lite"])
def test_what_is_under_the_mask_is_no_evidence(walk: RenderedSequence, frames: list[StereoFrame], matcher: str) -> None:
    """Of stereo faults: the arm in the right image is three rows off, as after a knock; above, all is well."""
    knocked = []
    for frame in frames:
        right = frame.right.copy()
        right[TOP:] = np.roll(right[TOP:], 3, axis=0)
        knocked.append(replace(frame, right=right))
    config = Config(matcher=matcher, mask=BODY)
    sound, other = (tracked(config, each)[0].match for each in (frames, knocked))
    assert sound is not None
    assert other is not None
    unmasked = tracked(replace(config, mask=MaskConfig()), knocked)[0].match
    assert unmasked is not None
    hidden, rows, expected = (match.row_check() for match in (unmasked, other, sound))
    assert hidden.epipolar_var > 1.0, "otherwise there is nothing to hide"
    assert rows.epipolar_var == pytest.approx(expected.epipolar_var, abs=0.01)


def test_an_image_that_shows_only_the_robot_shows_nothing(frames: list[StereoFrame]) -> None:
    dark = frames[0].left.copy()
    dark[:TOP] = 0
    night = replace(frames[0], left=dark)
    (estimate,) = tracked(Config(matcher="classic", mask=BODY), [night])
    assert estimate.status is Status.LOST
    assert "the left image is black" in estimate.reason


def test_a_picture_is_as_good_as_a_polygon(frames: list[StereoFrame], tmp_path: Path) -> None:
    picture = np.full((CAMERA.height, CAMERA.width, 3), 255, np.uint8)
    picture[TOP:] = 0
    cv2.imwrite(str(tmp_path / "mask.png"), picture)
    by_picture = Config(matcher="classic", mask=MaskConfig(image=str(tmp_path / "mask.png")))
    expected = tracked(Config(matcher="classic", mask=BODY), frames[:4])
    for one, other in zip(tracked(by_picture, frames[:4]), expected, strict=True):
        np.testing.assert_array_equal(one.pose, other.pose)


def test_the_pipeline_masks_alike(frames: list[StereoFrame]) -> None:
    config = Config(matcher="classic", classic=ClassicConfig(seeded=False, preset="fast"), mask=BODY)
    expected = tracked(config, frames[:4])
    pipelined = PipelinedOdometry(config)
    late = [*[pipelined.track(frame) for frame in frames[:4]][1:], pipelined.flush()]
    pipelined.close()
    for one, other in zip(late, expected, strict=True):
        assert one is not None
        np.testing.assert_array_equal(one.pose, other.pose)
        assert one.status is other.status


def test_without_a_mask_nothing_is_wrapped(frames: list[StereoFrame]) -> None:
    odometry = StereoOdometry(Config(matcher="classic"))
    assert type(odometry.matcher).__name__ == "ClassicMatcher"
    assert odometry.track(frames[0]).frame is frames[0]


@pytest.mark.parametrize(
    ("polygons", "words"),
    [
        ("0,10 20,30", "at least three points"),
        ("0,10 20,30 a,b", "at least three points"),
        ("0 10 20 30 40 50", "at least three points"),
        ("0,0 9,0 9,9; 4,4", r"at least three points.*'4,4'"),
    ],
)
def test_polygons_that_are_none(polygons: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        StereoOdometry(Config(matcher="classic", mask=MaskConfig(polygons=polygons)))


@pytest.mark.parametrize("content", [None, b"no picture"])
def test_pictures_that_are_none(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "mask.png"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"mask\.image: .*mask\.png (does not exist|is not an image)"):
        StereoOdometry(Config(matcher="classic", mask=MaskConfig(image=str(file))))


def test_masks_that_do_not_fit_the_images(frames: list[StereoFrame], tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "large.png"), np.zeros((480, 640), np.uint8))
    cv2.imwrite(str(tmp_path / "white.png"), np.full((200, 320), 255, np.uint8))
    for mask, words in (
        (MaskConfig(image=str(tmp_path / "large.png")), r"640x480 but the rectified left images are 320x200; draw"),
        (MaskConfig(image=str(tmp_path / "white.png")), r"hides nothing of the 320x200 images: .* black"),
        (MaskConfig(polygons="400,300 500,300 500,400"), "hides nothing"),
        (MaskConfig(polygons="-9,-9 400,-9 400,400 -9,400"), "hides everything"),
    ):
        odometry = StereoOdometry(Config(matcher="classic", mask=mask))
        with pytest.raises(ImageError, match=words):
            odometry.track(frames[0])


def test_a_wrong_mask_is_one_line_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cv2.imwrite(str(tmp_path / "mask.png"), np.zeros((4, 6), np.uint8))
    words = ["run", "render:room", "--frames", "0:2", "--matcher", "classic", "--out", str(tmp_path / "out")]
    assert main([*words, "--set", f"mask.image={tmp_path / 'mask.png'}"]) == 2
    assert "mask.png is 6x4 but the rectified left images are" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
