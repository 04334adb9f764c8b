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

"""The renderer against brute force: rays cast one by one, areas counted, sub-pixel shifts measured."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.rendering.atlas import TextureAtlas
from macvo_ros.rendering.motion import Pace, random_rotation
from macvo_ros.rendering.projection import View
from macvo_ros.rendering.scene import SKY, WORLD, Light, Scene, SceneBuilder
from macvo_ros.rendering.sensor import Sensor
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.shading import shade
from macvo_ros.rendering.texture import TEXTURES
from macvo_ros.rendering.truth import depth, flow
from macvo_ros.rendering.visibility import look

SMALL = StereoCamera(150.0, 150.0, 119.5, 89.5, 0.12, 240, 180)
CLEAN = Sensor(read_noise=0.0, shot_noise=0.0)
FLAT_LIGHT = Light(ambient=1.0, sun_strength=0.0)


def one_colour(value: int, size: int = 64) -> np.ndarray:
    return np.full((size, size, 3), value, np.uint8)


def pose(rotation: np.ndarray, translation: np.ndarray) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, translation
    return matrix


def small_turn(rng: np.random.Generator, angle: float) -> np.ndarray:
    return cv2.Rodrigues(rng.normal(0, angle, 3))[0]


@pytest.fixture(scope="module")
def boxes() -> Scene:
    """Thirty random boxes, a third of them moving, before a sky."""
    rng = np.random.default_rng(3)
    builder = SceneBuilder()
    for index in range(30):
        centre = rng.uniform([-2, -2, 2], [2, 2, 7])
        body = WORLD
        if index % 3 == 0:
            body = builder.body(Pace(rng, centre, rng.normal(0, 0.5, 3), 0.3, spin=1.0))
            centre = np.zeros(3)
        builder.box(centre, tuple(rng.uniform(0.1, 1.5, 3)), random_rotation(rng), [0, 1], 0.7, rng, body=body)
    builder.sky([1])
    return builder.build(TextureAtlas([TEXTURES["leaves"](rng, 64), TEXTURES["clouds"](rng, 64)]))


def cast(scene: Scene, time: float, start: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First quad hit by each ray (N, 3) from `start`, and how many times the ray's length it is away."""
    quads, poses = scene.quads, scene.body_poses(time)
    best, hit = np.full(len(rays), np.inf), np.full(len(rays), -1)
    for q in range(len(quads)):
        if quads.body[q] == SKY:
            continue
        body = poses[quads.body[q]]
        o, a, b = (
            body[:3, :3] @ quads.origin[q] + body[:3, 3],
            body[:3, :3] @ quads.side_s[q],
            body[:3, :3] @ quads.side_t[q],
        )
        normal = np.cross(a, b)
        with np.errstate(divide="ignore"):
            length = ((o - start) @ normal) / (rays @ normal)
        inside = start + length[:, None] * rays - o
        s, t = inside @ a / (a @ a), inside @ b / (b @ b)
        front = (rays @ normal < 0) | quads.two_sided[q]
        good = (length > 1e-9) & (length < best) & (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1) & front
        best[good], hit[good] = length[good], q
    return hit, best


def test_depth_and_flow_agree_with_rays_cast_one_by_one(boxes: Scene) -> None:
    rng = np.random.default_rng(0)
    K = SMALL.K
    first = look(boxes, View(K, 240, 180, pose(small_turn(rng, 0.1), rng.normal(0, 0.1, 3)), 0.4))
    second = look(boxes, View(K, 240, 180, pose(small_turn(rng, 0.1), rng.normal(0, 0.2, 3)), 0.7))
    v, u = (x.ravel() for x in np.mgrid[0:180, 0:240])
    rays = (
        np.linalg.solve(K, np.stack([u, v, np.ones_like(u)]).astype(float)).T @ first.view.world_from_camera[:3, :3].T
    )
    start = first.view.world_from_camera[:3, 3]
    hit, length = cast(boxes, 0.4, start, rays)
    seen = hit >= 0
    surface = first.surface().ravel()
    assert np.mean(surface[seen] == hit[seen]) > 0.9995  # the rest is within rounding of an edge
    assert np.all(boxes.quads.body[surface[~seen]] == SKY)
    same = seen & (surface == hit)
    np.testing.assert_allclose(depth(first).ravel()[same], length[same], rtol=2e-5)
    assert np.all(np.isinf(depth(first).ravel()[~seen]))

    # every hit point, carried along by its body, seen from the second camera
    body = np.maximum(boxes.quads.body[hit], 0)
    carry = boxes.body_poses(0.7) @ np.linalg.inv(boxes.body_poses(0.4))
    point = start + np.where(seen, length, 1e7)[:, None] * rays
    for static in (True, False):
        moved = point if static else np.einsum("nij,nj->ni", carry[body, :3, :3], point) + carry[body, :3, 3]
        camera = np.linalg.inv(second.view.world_from_camera)
        local = moved @ camera[:3, :3].T + camera[:3, 3]
        pixel = local @ K.T
        expected = pixel[:, :2] / pixel[:, 2:] - np.stack([u, v], axis=1)
        got, visible = flow(boxes, first, second, static=static)
        usable = (same | ~seen) & (local[:, 2] > 0.1)
        np.testing.assert_allclose(got.reshape(2, -1).T[usable], expected[usable], atol=2e-3)
    target = pixel[:, :2] / pixel[:, 2:]
    inside = (local[:, 2] > 0) & np.all((target >= 0) & (target <= [239, 179]), axis=1)
    eye = second.view.world_from_camera[:3, 3]
    _, blocked = cast(boxes, 0.7, eye, moved - eye)
    truly = inside & ~(blocked < 0.995)
    assert np.mean(visible.ravel()[usable] == truly[usable]) > 0.99
    assert 0.3 < truly.mean() < 0.99  # otherwise the comparison would mean little
    assert np.mean(boxes.moving[surface[seen]]) > 0.1


@pytest.mark.parametrize("shift", [0.0, 0.13, 0.37, 0.5, 0.81])
def test_edges_cover_pixels_by_their_area(shift: float) -> None:
    builder = SceneBuilder(FLAT_LIGHT)
    builder.quad([-50, 50, 10], [100, 0, 0], [0, -100, 0], 0, 1.0)
    turn = cv2.Rodrigues(np.array([0.0, 0.0, 0.2]))[0]
    side = 0.0507  # 30.4 px at one metre
    corner = np.array([shift / 600, 0.4 * shift / 600, 1.0])
    builder.quad(corner - turn @ [side / 2, -side / 2, 0], turn @ [side, 0, 0], turn @ [0, -side, 0], 1, 1.0)
    scene = builder.build(TextureAtlas([one_colour(0), one_colour(200)]))
    view = View(np.array([[600.0, 0, 31.0], [0, 600.0, 31.0], [0, 0, 1]]), 64, 64, np.eye(4))
    image = shade(scene, look(scene, view))[..., 0] / 200
    assert image.sum() == pytest.approx((600 * side) ** 2, rel=2e-3)
    v, u = np.mgrid[0:64, 0:64]
    assert (image * u).sum() / image.sum() == pytest.approx(31.0 + shift, abs=0.01)
    assert (image * v).sum() / image.sum() == pytest.approx(31.0 + 0.4 * shift, abs=0.01)


@pytest.mark.parametrize("distance", [0.4, 1.0, 2.3, 9.0])
def test_textures_stay_where_they_are_at_every_mip_level(distance: float) -> None:
    """A Gaussian spot on a wall is found at the projection of its centre, magnified or minified."""
    size = 256
    y, x = (np.mgrid[0:size, 0:size] + 0.5) / size
    spot = 200 * np.exp(-0.5 * ((x - 0.6) ** 2 + (y - 0.3) ** 2) / 0.05**2)
    builder = SceneBuilder(FLAT_LIGHT)
    turn = cv2.Rodrigues(np.array([0.5, 0.6, 0.1]))[0]  # seen obliquely
    a, b = turn @ [1, 0, 0], turn @ [0, -1, 0]
    builder.quad(-(a + b) / 2 + [0.02, 0.01, distance + 0.7], a, b, 0, 1.0, two_sided=True)
    texture = np.rint(np.repeat(spot[..., None], 3, axis=2)).astype(np.uint8)
    scene = builder.build(TextureAtlas([texture]))
    f = 320.0
    view = View(np.array([[f, 0, 255.3], [0, f, 254.8], [0, 0, 1]]), 512, 512, np.eye(4))
    image = shade(scene, look(scene, view))[..., 0]
    centre = -(a + b) / 2 + np.array([0.02, 0.01, distance + 0.7]) + 0.6 * a + 0.7 * b
    expected = f * centre[:2] / centre[2] + [255.3, 254.8]
    # what the projection of the spot itself would look like, as reference for its skewed centroid
    quad = np.linalg.inv(view.K @ np.stack([a, b, scene.quads.origin[0]], axis=1))
    fine = np.mgrid[0:512:0.25, 0:512:0.25] - 0.375
    s, t, w = np.einsum("ij,jkl->ikl", quad, np.stack([fine[1], fine[0], np.ones_like(fine[0])]))
    s, t = s / w, t / w
    on = (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1)
    ideal = np.where(on, 200 * np.exp(-0.5 * ((s - 0.6) ** 2 + (t - 0.7) ** 2) / 0.05**2), 0)
    ideal = ideal.reshape(512, 4, 512, 4).mean(axis=(1, 3))
    v, u = np.mgrid[0:512, 0:512]
    bright = ideal > 10  # away from where whole grey levels are coarse
    for axis in (u, v):
        found, wanted = ((picture * axis)[bright].sum() / picture[bright].sum() for picture in (image, ideal))
        assert found == pytest.approx(wanted, abs=0.01)
    assert np.hypot(*(np.unravel_index(image.argmax(), image.shape) - expected[::-1])) < 1.5


@pytest.fixture(scope="module")
def clean_room() -> RenderedSequence:
    camera = StereoCamera(200.0, 200.0, 255.5, 191.5, 0.12, 512, 384)
    return RenderedSequence("room", 60, seed=5, camera=camera, sensor=CLEAN, texels=512)


@pytest.mark.parametrize("index", [0, 30])
def test_the_truth_aligns_the_images_without_bias(clean_room: RenderedSequence, index: int) -> None:
    frame, following, truth = clean_room[index], clean_room[index + 1], clean_room.truth(index)
    left, right, later = (cv2.cvtColor(i, cv2.COLOR_RGB2GRAY) for i in (frame.left, frame.right, following.left))
    v, u = np.mgrid[0:384, 0:512].astype(np.float32)
    to_right = np.stack([-truth.disparity, np.zeros_like(truth.disparity)])
    corners = np.rint(cv2.goodFeaturesToTrack(left, 800, 0.01, 4)).astype(np.int32).reshape(-1, 2)
    for image, offset, valid in ((right, to_right, truth.disparity_valid), (later, truth.flow, truth.flow_valid)):
        assert valid.mean() > 0.7
        aligned = cv2.remap(image, u + offset[0], v + offset[1], cv2.INTER_CUBIC)
        residual = (aligned.astype(np.float32) - left)[valid]
        assert np.median(np.abs(residual)) <= 1.0
        assert abs(residual.mean()) < 0.1
        # Lucas-Kanade between the image and its twin brought back by the truth: no displacement left
        clear = cv2.erode(valid.astype(np.uint8), np.ones((17, 17)))[corners[:, 1], corners[:, 0]] > 0
        point = corners[clear].astype(np.float32)
        found, ok, _ = cv2.calcOpticalFlowPyrLK(
            left, aligned, point, point.copy(), winSize=(15, 15), maxLevel=0, criteria=(3, 40, 1e-4)
        )
        error = (found - point)[ok.ravel() > 0]
        assert len(error) > 150
        assert np.all(np.abs(np.median(error, axis=0)) < 0.01)
        assert np.all(np.abs(error.mean(axis=0)) < 0.01)
        assert np.median(np.abs(error)) < 0.04


def test_disparity_is_focal_length_times_baseline_over_depth(clean_room: RenderedSequence) -> None:
    truth, camera = clean_room.truth(3), clean_room.camera
    np.testing.assert_allclose(truth.disparity, camera.fx * camera.baseline / truth.depth, rtol=1e-4, atol=1e-3)


def test_static_flow_differs_only_on_moving_things(boxes: Scene) -> None:
    first = look(boxes, View(SMALL.K, 240, 180, np.eye(4), 0.0))
    second = look(boxes, View(SMALL.K, 240, 180, pose(np.eye(3), np.array([0.05, 0, 0.1])), 0.2))
    real, static = (flow(boxes, first, second, static=s)[0] for s in (False, True))
    differs = np.abs(real - static).max(axis=0) > 1e-3
    moving = np.append(boxes.moving, False)[first.surface()]
    assert not np.any(differs & ~moving)
    assert np.mean(differs[moving]) > 0.9


def test_the_pose_of_a_blurred_frame_is_the_one_its_image_shows() -> None:
    exposure = 0.06
    blurred = RenderedSequence("room", 3, 4, camera=SMALL, texels=64, sensor=Sensor(blur=exposure))
    sharp = RenderedSequence("room", 3, 4, camera=SMALL, texels=64, sensor=CLEAN)
    trajectory, time = sharp.world.trajectory, 2 / sharp.rate
    np.testing.assert_array_equal(sharp.ground_truth[2], trajectory(time))
    moments = time + np.linspace(-exposure / 2, exposure / 2, 401)
    mean = np.mean([trajectory(t)[:3, 3] for t in moments], axis=0)
    middle = np.linalg.norm(mean - trajectory(time)[:3, 3])
    assert np.linalg.norm(mean - blurred.ground_truth[2][:3, 3]) < 0.3 * middle  # a few sub-frames
    turn = np.mean([trajectory(t)[:3, :3] for t in moments], axis=0)  # small angles: nearly a rotation
    np.testing.assert_allclose(blurred.ground_truth[2][:3, :3], turn, atol=1e-4)
