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

"""Worlds, motions, sensors and the sequence made of them."""

from __future__ import annotations

import argparse
import warnings

import cv2
import numpy as np
import pytest

from macvo_ros.commands import render as render_command
from macvo_ros.errors import SequenceError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.rendering.clearance import CLEARANCE
from macvo_ros.rendering.close_motion import Hop, Inspect
from macvo_ros.rendering.landing import standing_height
from macvo_ros.rendering.motion import ClosedPath, Drive, Flight, Pace, Walk, camera_pose
from macvo_ros.rendering.palette import Palette, photograph
from macvo_ros.rendering.sensor import Digitizer, Sensor, random_sensor
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.texture import TEXTURES
from macvo_ros.rendering.visibility import look
from macvo_ros.rendering.worlds import CAR, HARD, WORLDS, World, build

TINY = StereoCamera(60.0, 60.0, 47.5, 35.5, 0.12, 96, 72)


def tiny(world: str, frames: int = 200, seed: int = 0, **options: object) -> RenderedSequence:
    return RenderedSequence(world, frames, seed, camera=TINY, texels=128, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def room() -> RenderedSequence:
    return tiny("room")


def test_same_seed_same_bytes_in_any_order(room: RenderedSequence) -> None:
    again = tiny("room")
    later, first = again[5], again[2]
    np.testing.assert_array_equal(room[2].left, first.left)
    np.testing.assert_array_equal(room[5].right, later.right)
    other = tiny("room", seed=1)
    assert np.abs(other[2].left.astype(int) - first.left).mean() > 10


def test_a_sequence_is_what_the_odometry_expects(room: RenderedSequence) -> None:
    assert len(room) == 200
    frame = room[-1]
    assert frame.stamp == room.stamps[-1]
    assert frame.left.shape == (72, 96, 3)
    assert np.all(np.diff(room.stamps) > 0)
    assert room.ground_truth is not None
    rotation = room.ground_truth[:, :3, :3]
    np.testing.assert_allclose(
        rotation @ rotation.transpose(0, 2, 1), np.broadcast_to(np.eye(3), (200, 3, 3)), atol=1e-12
    )
    with pytest.raises(IndexError):
        room[200]


def test_still_means_still_but_for_the_noise() -> None:
    still = tiny("room", still=True)
    assert np.ptp(still.ground_truth, axis=0).max() == 0
    difference = still[0].left.astype(float) - still[7].left
    assert 0.5 < difference.std() < 5
    assert np.abs(still.truth(3).flow).max() < 1e-4


@pytest.mark.parametrize("name", list(WORLDS))
def test_every_world_renders_and_keeps_its_distance(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sequence = tiny(name, frames=1200, seed=7)
        frame = sequence[11]
        nearest = [sequence.truth(i).depth.min() for i in range(0, 1200, 60)]
    assert frame.left.std() > (2 if name in ("dark", "textureless") else 4)
    if name not in ("dynamic", "mixture"):  # where somebody may pass close by
        assert min(nearest) > 0.1


def test_the_hard_families_are_hard_in_their_own_way() -> None:
    assert set(HARD) <= set(WORLDS)
    assert build("dark", 3, 64).sensor.exposure < 0.1
    assert build("blurred", 3, 64).sensor.blur > 0.01
    dynamic = tiny("dynamic", seed=1)
    assert max(dynamic.truth(i).moving.mean() for i in range(0, 200, 20)) > 0.02
    rich, bare = (np.mean([cv2.Laplacian(tiny(n, seed=2)[i].left, cv2.CV_32F).std() for i in (0, 50)])
                  for n in ("room", "textureless"))  # fmt: skip
    assert bare < 0.7 * rich


def disparities(world: World, moments: tuple[int, ...]) -> np.ndarray:
    """(N, H / 4, W / 4) true disparities of the world's own camera, in its pixels, at frames of 10 Hz."""
    camera = world.camera.resized(world.camera.width // 4, world.camera.height // 4)
    small = RenderedSequence(world, max(moments) + 1, rate=10.0, camera=camera)
    return np.stack([4 * small.truth(index).disparity for index in moments])


def test_the_near_field_has_disparities_of_60_to_250_pixels() -> None:
    found = np.concatenate([disparities(build("near", seed, 64), (0, 90)).ravel() for seed in range(6)])
    assert np.mean((found > 60) & (found < 250)) > 0.9
    assert np.quantile(found, 0.99) > 180
    assert found.max() < 400


def test_a_landed_drone_stands_still_with_the_ground_before_it_and_takes_off() -> None:
    for seed in range(4):
        world = build("landing", seed, 64)
        hop = world.trajectory
        assert isinstance(hop, Hop)
        times = np.arange(0, 20, 0.1)
        landed = int(np.argmin([hop.flying(time) for time in times]))
        step = np.linalg.solve(hop(times[landed]), hop(times[landed] + 0.05))
        assert np.abs(step - np.eye(4)).max() < 1e-4
        heights = [hop(time)[2, 3] for time in times]
        assert np.ptp(heights) > 0.2
        (found,) = disparities(world, (landed,))
        height = found.shape[0]
        assert 80 < np.median(found[int(0.9 * height) :]) < 260  # gaps between boards are farther
        assert np.median(found[: height // 4]) < 40


def test_the_height_of_a_standing_camera_follows_from_the_disparity_below() -> None:
    camera = StereoCamera(458.0, 458.0, 367.0, 248.0, 0.11, 752, 480)
    height = standing_height(camera, -0.2, 200.0)
    ray = np.array([0.0, (479 - 248.0) / 458.0, 1.0])  # of the lowest row, x right, y down, z ahead
    down = ray[1] * np.cos(0.2) + ray[2] * np.sin(0.2)  # its part towards the floor, at a depth of 1
    assert camera.fx * camera.baseline / (height / down) == pytest.approx(200.0)


def test_a_car_on_the_motorway_moves_two_to_three_metres_a_frame() -> None:
    world = build("motorway", 1, 64)
    places = np.stack([world.trajectory(time)[:3, 3] for time in np.arange(0, 60, 0.1)])
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert steps.min() > 1.0
    assert 1.7 < np.median(steps) < 3.0
    assert steps.max() < 3.3
    found = disparities(world, (0, 50))
    assert np.median(found) < 20
    assert 40 < found.max() < 200


@pytest.mark.parametrize("name", ["near", "landing"])
def test_the_close_worlds_are_the_same_every_time(name: str) -> None:
    one, two = (tiny(name, frames=10, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one[4].left, two[4].left)
    np.testing.assert_array_equal(one.truth(4).disparity, two.truth(4).disparity)


def test_the_fingers_of_a_gripper_stay_where_they_are_in_the_image() -> None:
    seed = next(seed for seed in range(20) if build("near", seed, 64).scene.moving.any())
    truth = tiny("near", frames=10, seed=seed).truth(5)
    assert 0.005 < truth.moving.mean() < 0.4
    assert np.abs(truth.flow[:, truth.moving]).max() < 1e-3  # they move with the camera
    assert np.abs(truth.static_flow[:, truth.moving]).max() > 0.01


def test_nobody_walks_through_the_camera() -> None:
    """Of a room full of people, who is going to be too near in these frames is left out, and nothing else changes."""
    world = build("dynamic", 8423, 64)
    whole, kept = world.scene, RenderedSequence(world, 30, 8423, camera=TINY)
    assert 0 < kept.world.scene.moving.sum() < whole.moving.sum()
    assert (~kept.world.scene.moving).sum() == (~whole.moving).sum()
    for index in range(0, 30, 3):
        seen = kept.truth(index)
        assert not (seen.moving & (seen.depth < 0.5 * CLEARANCE)).any()
    alone = RenderedSequence(World(whole, lambda time: camera_pose([99.0, 0.0, 99.0], 0.0)), 2, camera=TINY)
    assert alone.world.scene is whole


def test_no_camera_drives_through_a_parked_car() -> None:
    kept, whole = RenderedSequence("street", 20, 703, camera=CAR, texels=64), build("street", 703, 64).scene
    gone = len(whole.quads) - len(kept.world.scene.quads)
    assert gone == 42, "one car: seven boxes"
    right = look(kept.world.scene, kept.view(17 / 15, right=True))
    assert 1 / right.inverse_depth.max() > 1.0


def test_no_camera_walks_into_a_tree() -> None:
    kept = RenderedSequence("park", 30, 9305, texels=64)  # its way led into a trunk
    assert len(kept.world.scene.quads) < len(build("park", 9305, 64).scene.quads)
    assert kept.truth(29).depth.min() > 1.0


def test_unknown_worlds_and_empty_sequences_are_refused() -> None:
    with pytest.raises(SequenceError, match="room"):
        RenderedSequence("moon", 5)
    with pytest.raises(SequenceError, match="at least one frame"):
        RenderedSequence("room", 0)


@pytest.mark.parametrize("kind", [Walk, Drive, Flight, Pace, Inspect, Hop])
def test_motions_are_smooth(kind: type) -> None:
    rng = np.random.default_rng(1)
    path = ClosedPath([(3, 2), (-3, 2), (-3, -2), (3, -2)], 0.7)
    motion = {
        Walk: lambda: Walk(rng, path, 1.5),
        Drive: lambda: Drive(rng, path, 1.5, 2.0),
        Flight: lambda: Flight(rng, np.zeros(3), np.ones(3)),
        Pace: lambda: Pace(rng, np.zeros(3), np.ones(3), 0.2),
        Inspect: lambda: Inspect(rng, 0.4, 0.1, -1.0),
        Hop: lambda: Hop(rng, [0, 0, 0.2], -0.2, 0.8),
    }[kind]()
    step = 1e-3
    poses = np.stack([motion(t) for t in np.arange(0, 20, step)])
    for entries in (poses[:, :3, 3], poses[:, :3, :3].reshape(len(poses), 9)):
        acceleration = np.diff(entries, 2, axis=0) / step**2
        assert np.abs(np.diff(acceleration, axis=0)).max() < 0.06 * max(1.0, np.abs(acceleration).max())


def test_a_closed_path_keeps_speed_and_closes() -> None:
    path = ClosedPath([(50, 30), (-50, 30), (-50, -30), (50, -30)], 5.0)
    points = np.array([path(d) for d in np.linspace(0, path.length, 2000)])
    speed = np.linalg.norm(np.diff(points[:, :2], axis=0), axis=1) / (path.length / 1999)
    np.testing.assert_allclose(points[0, :2], points[-1, :2], atol=1e-9)
    assert 0.6 < speed.min() <= speed.max() < 1.05


@pytest.mark.parametrize("name", list(TEXTURES))
def test_textures_are_tileable(name: str) -> None:
    texture = TEXTURES[name](np.random.default_rng(4), 256).astype(float)
    assert texture.shape == (256, 256, 3)
    inside = np.abs(np.diff(texture, axis=1)).mean(axis=(0, 2))
    seam = np.abs(texture[:, 0] - texture[:, -1]).mean()
    if name not in ("marks", "glare", "facade"):  # prints end where the paper ends
        assert seam <= 1.5 * inside.max()


def test_photographs_become_tileable_textures(tmp_path) -> None:
    y, x = np.mgrid[0:300, 0:400]
    cv2.imwrite(str(tmp_path / "a.png"), np.stack([x * 0.6, y * 0.8, x * 0], axis=2).astype(np.uint8))
    texture = photograph(tmp_path / "a.png", np.random.default_rng(0), 128).astype(int)
    assert np.abs(texture[:, 0] - texture[:, -1]).max() < 8
    assert texture[..., 0].max() <= 1  # RGB, not BGR: the ramp along x was blue
    assert texture[..., 2].std() > 10
    Palette(np.random.default_rng(0), size=64, photographs=[tmp_path / "a.png"])
    (tmp_path / "b.png").write_text("no image")
    with pytest.raises(SequenceError, match=r"b\.png"):
        photograph(tmp_path / "b.png", np.random.default_rng(0), 128)


def test_noise_has_the_stated_variance_and_is_fresh_every_time() -> None:
    grey = np.full((200, 200, 3), 100.0, np.float32)
    digitizer = Digitizer(Sensor(read_noise=2.0, shot_noise=6.0), seed=3)
    images = [digitizer.digitize(grey, 0.0, i, r).astype(float) for i, r in ((0, False), (0, True), (1, False))]
    expected = 4.0 + 36.0 * 100 / 255 + 1 / 12
    for image in images:
        assert image.var() == pytest.approx(expected, rel=0.03)
        assert image.mean() == pytest.approx(100, abs=0.1)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert abs(np.corrcoef(images[a].ravel(), images[b].ravel())[0, 1]) < 0.02


def test_a_grey_camera_has_one_noise() -> None:
    colourful = np.broadcast_to(np.float32([40.0, 100.0, 160.0]), (64, 64, 3)).copy()
    image = Digitizer(Sensor(mono=True, softness=0.5), seed=0).digitize(colourful, 0.0, 0, False)
    assert image.shape == (64, 64, 3)
    np.testing.assert_array_equal(image, np.repeat(image[..., :1], 3, axis=2))
    assert image.mean() == pytest.approx(100, abs=0.5)
    assert image.std() > 1


def test_darkness_costs_signal_to_noise() -> None:
    half = np.full((100, 100, 3), 120.0, np.float32)
    half[:, 50:] = 60
    contrast = []
    for light in (1.0, 0.05):
        image = Digitizer(Sensor().in_light(light), seed=0).digitize(half, 0.0, 0, False).astype(float)
        contrast.append((image[:, :50].mean() - image[:, 50:].mean()) / image[:, :50].std())
    assert contrast[1] < 0.15 * contrast[0]


def test_exposure_differs_between_left_and_right_and_over_time() -> None:
    grey = np.full((32, 32, 3), 100.0, np.float32)
    digitizer = Digitizer(Sensor(imbalance=0.1, flicker=0.1), seed=1)
    left, right = (digitizer.digitize(grey, 0.5, 3, side).mean() for side in (False, True))
    assert right / left == pytest.approx(1.1, abs=0.02)
    assert np.ptp([digitizer.digitize(grey, t, 3, False).mean() for t in np.arange(0, 5, 0.5)]) > 5
    assert isinstance(random_sensor(np.random.default_rng(0)), Sensor)


def test_a_bad_rectification_moves_the_right_image_only() -> None:
    true, tilted = (tiny("room", sensor=Sensor(0.9, read_noise=0, shot_noise=0, tilt=(s, 0.0)))[4] for s in (0, 1))
    np.testing.assert_array_equal(true.left, tilted.left)
    np.testing.assert_allclose(
        tilted.right[2:-1].astype(float), true.right[1:-2].astype(float), atol=1
    )  # one pixel down, exactly


def test_blur_smears_along_the_motion() -> None:
    sharp = tiny("room", sensor=Sensor(read_noise=0, shot_noise=0))
    smeared = tiny("room", sensor=Sensor(read_noise=0, shot_noise=0, blur=0.1))
    index = max(range(0, 60, 5), key=lambda i: np.abs(sharp.truth(i).flow[0]).mean())
    energy = [np.abs(np.diff(s[index].left.astype(float), axis=1)).mean() for s in (sharp, smeared)]
    assert energy[1] < 0.9 * energy[0]


def test_the_command_writes_a_folder_that_can_be_read_back(tmp_path, capsys) -> None:
    from macvo_ros.sequences.folder import open_folder

    parser = argparse.ArgumentParser()
    render_command.add_parser(parser.add_subparsers())
    words = f"render room --frames 3 --seed 4 --size 96x72 --rate 20 --light 0.3 --out {tmp_path / 'out'}".split()
    args = parser.parse_args(words)
    assert args.run(args) == 0
    sequence = open_folder(tmp_path / "out")
    assert len(sequence) == 3
    assert (sequence.camera.width, sequence.camera.height) == (96, 72)
    assert sequence.camera.fx == pytest.approx(367.0 / 10)
    np.testing.assert_array_equal(np.diff(sequence.stamps), 50_000_000)
    world = build("room", 4, texels=64)
    assert sequence.ground_truth is not None
    np.testing.assert_allclose(sequence.ground_truth[2], world.trajectory(0.1), atol=1e-6)
    assert set(render_command.NAMES) == set(WORLDS)
    args.size = "96"
    with pytest.raises(SequenceError, match="WIDTHxHEIGHT"):
        args.run(args)
