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


"""Patches of first views, found again in images that are the same surface seen otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from macvo_ros.matching.patch_tracking import cut_patches, find_patches

SIZE = (240, 320)
MIDDLE = np.array([160.0, 120.0])


class Texture:
    """A smooth random pattern that can be read anywhere."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._wave = rng.normal(0, 0.35, (40, 2))
        self._phase = rng.uniform(0, 2 * np.pi, 40)

    def __call__(self, pixel: np.ndarray) -> np.ndarray:
        return 128 + 12 * np.sin(pixel @ self._wave.T + self._phase).sum(axis=-1)


def image(texture: Texture, warp: np.ndarray, shift: np.ndarray, gain: float = 1.0, offset: float = 0.0) -> np.ndarray:
    """What is at pixel x of the first image is at MIDDLE + warp (x - MIDDLE) + shift of this one."""
    u, v = np.meshgrid(np.arange(SIZE[1]), np.arange(SIZE[0]))
    there = np.stack((u, v), axis=-1) - MIDDLE - shift
    return (gain * texture(there @ np.linalg.inv(warp).T + MIDDLE) + offset).astype(np.float32)


POINTS = np.array([[u, v] for u in (110.0, 150.0, 190.0) for v in (90.0, 120.3, 150.0)])


@pytest.mark.parametrize(
    "warp",
    [np.eye(2), 1.4 * np.eye(2), 0.75 * np.eye(2), np.array([[1.0, 0.15], [-0.1, 0.9]])],
    ids=["same", "nearer", "farther", "slanted"],
)
def test_found_where_they_are(warp):
    """To some hundredths of a pixel, from a pixel away, in other light, with the warp known to two per cent."""
    texture = Texture(1)
    shift = np.array([3.3, -2.6])
    first = image(texture, np.eye(2), np.zeros(2))
    patches = cut_patches(first, POINTS, 10, 2)
    true = MIDDLE + (POINTS - MIDDLE) @ warp.T + shift
    known = np.tile(1.02 * warp, (len(POINTS), 1, 1))
    expected = true + np.array([0.8, -0.6])
    found = find_patches(patches, image(texture, warp, shift, 0.8, 12.0), expected, known)
    assert found.found.all()
    assert np.abs(found.pixel - true).max() < 0.06
    assert found.likeness.min() > 0.95


def test_along_the_row_only():
    texture = Texture(2)
    first, other = image(texture, np.eye(2), np.zeros(2)), image(texture, np.eye(2), np.array([-7.4, 0.0]))
    patches = cut_patches(first, POINTS, 10, 2, axes=1)
    expected = POINTS - np.array([7.0, 0.0])
    found = find_patches(patches, other, expected, np.tile(np.eye(2), (len(POINTS), 1, 1)))
    assert np.abs(found.pixel - (POINTS - np.array([7.4, 0.0]))).max() < 0.03
    assert np.array_equal(found.pixel[:, 1], POINTS[:, 1])
    assert found.patch_var.shape == (len(POINTS), 1)


@pytest.mark.parametrize("warp", [1.0, 1.5])
def test_what_reaches_beyond_the_edge_is_not_found(warp):
    """What is not in the image cannot be compared: taken for the edge's own grey it would pull a patch outward."""
    texture, turn = Texture(8), warp * np.eye(2)
    patches = cut_patches(image(texture, np.eye(2), np.zeros(2)), POINTS, 10, 2)
    for reach, inside in ((10 * warp - 1, False), (10 * warp + 2, True)):
        shift = np.array([reach, 0.0]) - (MIDDLE + (POINTS[0] - MIDDLE) @ turn.T) * np.array([1.0, 0.0])
        true = MIDDLE + (POINTS[:3] - MIDDLE) @ turn.T + shift  # those of the first column, `reach` from the left edge
        there = image(texture, turn, shift)
        found = find_patches(patches, there, true + 0.3, np.tile(turn, (3, 1, 1)), which=np.arange(3))
        assert (found.found == inside).all()
        if inside:
            assert np.abs(found.pixel - true).max() < 0.03


def test_another_surface_does_not_look_alike():
    first, other = (image(Texture(seed), np.eye(2), np.zeros(2)) for seed in (3, 4))
    patches = cut_patches(first, POINTS, 10, 2)
    found = find_patches(patches, other, POINTS, np.tile(np.eye(2), (len(POINTS), 1, 1)))
    assert (found.found & (found.likeness > 0.8)).mean() < 0.2


def test_noise_is_seen_in_the_variance():
    """Errors over the least-squares sigma are about one, whatever the noise."""
    texture, rng = Texture(5), np.random.default_rng(6)
    clean = image(texture, np.eye(2), np.zeros(2))
    errors = []
    for _ in range(40):
        noisy = [(clean + rng.normal(0, 4.0, SIZE)).astype(np.float32) for _ in range(2)]
        found = find_patches(
            cut_patches(noisy[0], POINTS, 10, 2), noisy[1], POINTS, np.tile(np.eye(2), (len(POINTS), 1, 1))
        )
        errors.append((found.pixel - POINTS) / np.sqrt(found.patch_var))
    assert 0.5 < np.std(errors) < 2.0


def test_some_of_many_patches_are_found_where_they_are():
    """Patches that were written over others are those that are looked for."""
    one, other = (image(Texture(seed), np.eye(2), np.zeros(2)) for seed in (3, 4))
    count = len(POINTS)
    many = cut_patches(one, POINTS, 10, 2).with_room(2 * count)
    many.overwrite(np.arange(count, 2 * count), cut_patches(other, POINTS, 10, 2))
    which = np.array([count + 3, count + 1])
    found = find_patches(many, other, POINTS[[3, 1]], np.tile(np.eye(2), (2, 1, 1)), which=which)
    assert found.likeness.min() > 0.999
    assert np.abs(found.pixel - POINTS[[3, 1]]).max() < 1e-3


def test_no_patches():
    first = image(Texture(7), np.eye(2), np.zeros(2))
    found = find_patches(cut_patches(first, np.empty((0, 2)), 10, 2), first, np.empty((0, 2)), np.empty((0, 2, 2)))
    assert len(found.pixel) == len(found.found) == 0
