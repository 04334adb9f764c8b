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

"""Colours: filtered texture look-ups, light, and the mixed pixels along silhouettes."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.rendering.scene import Scene
from macvo_ros.rendering.visibility import Visibility

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_BAND = 1 << 15  # pixels shaded at a time: what fits in the cache
_PROBE = 0.25  # pixels either side of the centre, along the direction in which the texture is most compressed


class _Coefficients:
    """Per-quad constants of a view as flat float32 tables, one extra column of zeros for "nothing there"."""

    def __init__(self, scene: Scene, visible: Visibility) -> None:
        projected, quads = visible.projected, scene.quads
        index, matrix = projected.index, projected.matrix
        self.rows = matrix.reshape(len(index), 9)
        self.texture = np.append(quads.texture[index], 0)
        self.gloss = np.append(quads.gloss[index], 0.0)
        self.normal = np.append(scene.normals(visible.view.time)[index], np.zeros((1, 3)), axis=0)
        tiles, phase = quads.tiles[index], quads.phase[index]
        # rows that give texture coordinates in tiles, a/z and b/z with a = s tiles + phase
        textured = matrix.copy()
        textured[:, :2] = matrix[:, :2] * tiles[..., None] + phase[..., None] * matrix[:, 2:]
        gradient = matrix[:, 2, :2] / np.maximum(np.linalg.norm(matrix[:, 2, :2], axis=1), 1e-30)[:, None]
        area = np.abs(np.linalg.det(textured)) * scene.atlas.size**2
        table = [
            textured.reshape(len(index), 9).T,  # 0..8
            np.einsum("vij,vj->iv", textured[:, :, :2], gradient) * _PROBE,  # 9..11: their change over a probe
            _bilinear(quads.light[index], tiles, phase),  # 12..15
            0.5 * np.log2(np.maximum(area, 1e-300))[None],  # 16
            projected.plane_distance[None],  # 17
        ]
        self.table = np.pad(np.concatenate(table), ((0, 0), (0, 1))).astype(np.float32)


def _bilinear(light: Float64, tiles: Float64, phase: Float64) -> Float64:
    """(4, V) coefficients of 1, a, b, a b for brightness given at the corners, a = s tiles + phase."""
    one, s, t, st = light[:, 0], light[:, 1] - light[:, 0], light[:, 2] - light[:, 0], light @ [1.0, -1.0, -1.0, 1.0]
    (m, n), (p, q) = tiles.T, phase.T
    a, b, ab = s / m, t / n, st / (m * n)  # s = (a - p) / m
    return np.stack([one - a * p - b * q + ab * p * q, a - ab * q, b - ab * p, ab])


def shade(scene: Scene, visible: Visibility) -> Float32:
    """(H, W, 3) float32 radiance, 0..255 for textures under a light of 1, anti-aliased."""
    coefficients = _Coefficients(scene, visible)
    height, width = visible.slot.shape
    u = np.arange(width, dtype=np.float32)[None, :]
    v = np.arange(height, dtype=np.float32)[:, None]
    image = np.empty((height, width, 3), np.float32)
    band = max(1, _BAND // width)
    for top in range(0, height, band):
        rows = slice(top, top + band)
        image[rows] = _colour(scene, visible, coefficients, visible.slot[rows], u, v[rows])
    _mix_edges(scene, visible, coefficients, image)
    return image


def _colour(
    scene: Scene, visible: Visibility, coefficients: _Coefficients, slot: Indices, u: Float32, v: Float32
) -> Float32:
    """Colour of surfaces `slot` (H, W) at pixels u, v (broadcast to H, W); defined beyond the surfaces' edges too."""
    table = coefficients.table

    def c(row: int) -> Float32:
        return np.take(table[row], slot)

    a = c(0) * u + (c(1) * v + c(2))
    b = c(3) * u + (c(4) * v + c(5))
    w = c(6) * u + (c(7) * v + c(8))
    np.maximum(w, 3e-6, out=w)
    level = _mip_level(visible, c(16), w * c(17), w, u, v)
    np.clip(level, 0.0, scene.atlas.levels - 1.001, out=level)
    lower = level.astype(np.intp)
    level -= lower.astype(np.float32)
    texture = coefficients.texture[slot]
    da, db, dw = c(9), c(10), c(11)
    np.clip(dw, -0.5 * w, 0.5 * w, out=dw)
    probes: list[tuple[Float32, Float32]] = []
    for step in (np.subtract, np.add):
        z: Float32 = np.reciprocal(step(w, dw))
        probes.append((step(a, da) * z, step(b, db) * z))
    z = np.float32(0.5) / w  # half, for the mean of two probes
    light = a * c(13)
    light += b * (c(14) + c(15) * (2.0 * z * a))
    light *= z
    light += 0.5 * c(12)
    colour: Float32 = scene.atlas.sample(texture, probes, lower, level)
    cv2.multiply(colour, cv2.merge([light, light, light]), dst=colour)
    glossy = coefficients.gloss[slot] > 0
    if glossy.any():
        pixel_u, pixel_v = np.broadcast_to(u, slot.shape)[glossy], np.broadcast_to(v, slot.shape)[glossy]
        colour[glossy] = _mirror(scene, visible, coefficients, slot[glossy], pixel_u, pixel_v, colour[glossy])
    return colour


def _mirror(
    scene: Scene, visible: Visibility, coefficients: _Coefficients, slot: Indices, u: Float32, v: Float32, own: Float32
) -> Float32:
    """Colours (N, 3) of glossy surfaces: their own mixed with distant surroundings, which move like nothing else."""
    view = visible.view
    ray = np.linalg.solve(view.K, np.stack([u, v, np.ones_like(u)]).astype(np.float64))
    ray = view.world_from_camera[:3, :3] @ (ray / np.linalg.norm(ray, axis=0))
    normal = coefficients.normal[slot].T
    cosine = (ray * normal).sum(axis=0)
    x, y, z = ray - 2 * cosine * normal
    # once around the horizon is two tiles; heights are equal-area
    s, t = (np.arctan2(y, x) / np.pi).astype(np.float32), (0.5 + 0.499 * z).astype(np.float32)
    texture = np.full((1, len(u)), scene.mirrored)
    level = np.full((1, len(u)), 2)
    surroundings = scene.atlas.sample(texture, [(s[None], t[None])], level, np.zeros((1, len(u)), np.float32))[0]
    share = coefficients.gloss[slot] * (0.5 + 0.5 * (1 - np.abs(cosine)) ** 2)  # more at grazing angles
    mixed: Float32 = own + share[:, None].astype(np.float32) * (surroundings - own)
    return mixed


def _mip_level(visible: Visibility, log_scale: Float32, cosine: Float32, w: Float32, u: Float32, v: Float32) -> Float32:
    """log2 of texels per pixel.

    The geometric mean of the footprint's axes follows from the Jacobian |det M| / w^3, and their ratio is
    1 / cos(incidence), with cos = w plane_distance / |ray|. Two probes halve the long axis; the level fits the rest.
    """
    K = visible.view.K
    across, down = ((u - K[0, 2]) / K[0, 0]) ** 2, ((v - K[1, 2]) / K[1, 1]) ** 2 + 1.0
    compression2 = (across.astype(np.float32) + down.astype(np.float32)) / np.maximum(cosine * cosine, 1e-12)
    # log_scale - 1.5 log2(w) + 0.5 log2(compression) - 0.5, in one logarithm
    np.clip(compression2, 1.0, 4096.0, out=compression2)
    cubed = w * w * w
    level: Float32 = log_scale + 0.25 * np.log2(compression2 / (cubed * cubed)) - np.float32(0.5)
    return level


def _mix_edges(scene: Scene, visible: Visibility, coefficients: _Coefficients, image: Float32) -> None:
    """Blend, in place, pixels that two surfaces share, by how much of the pixel each covers."""
    slot = visible.slot
    nothing = len(visible.projected.index)
    change_u = slot[:, 1:] != slot[:, :-1]
    change_v = slot[1:] != slot[:-1]
    both: list[tuple[Indices, Indices, Indices]] = []  # row, column of the pixel, slot of the neighbour
    for change, step in ((change_u, (0, 1)), (change_v, (1, 0))):
        row, column = np.nonzero(change)
        both.append((row, column, slot[row + step[0], column + step[1]]))
        both.append((row + step[0], column + step[1], slot[row, column]))
    row, column, other = (np.concatenate(parts) for parts in zip(*both, strict=True))
    # one entry per pixel and neighbouring surface
    key = np.unique((row * slot.shape[1] + column) * (nothing + 1) + other)
    pixel, other = key // (nothing + 1), key % (nothing + 1)
    own = slot.ravel()[pixel]
    keep = (own < nothing) & (other < nothing)
    pixel, other, own = pixel[keep], other[keep], own[keep]
    if not len(pixel):
        return
    u = (pixel % slot.shape[1]).astype(np.float64)
    v = (pixel // slot.shape[1]).astype(np.float64)
    share = _share_of_other(coefficients.rows, own, other, u, v)
    some = share > 1 / 512
    pixel, other, share, u, v = pixel[some], other[some], share[some], u[some], v[some]
    # OpenCV looks up fewer than 32767 pixels a row
    pieces = [slice(at, at + 30_000) for at in range(0, len(pixel), 30_000)]
    small = u.astype(np.float32), v.astype(np.float32)
    colours = [_colour(scene, visible, coefficients, other[None, p], *(x[None, p] for x in small))[0] for p in pieces]
    colour = np.concatenate(colours) if colours else np.empty((0, 3), np.float32)
    total = np.bincount(pixel, share, slot.size)[pixel]
    share = (share / np.maximum(total, 1.0)).astype(np.float32)
    flat = image.reshape(-1, 3)
    before = flat[pixel]
    np.add.at(flat, pixel, share[:, None] * (colour - before))


def _share_of_other(rows: Float64, own: Indices, other: Indices, u: Float64, v: Float64) -> Float64:
    """Share of pixel (u, v), whose centre sees `own`, that `other` covers: where it is and own is farther or is not."""

    def coverage(function: Float64) -> Float64:
        """Share of the pixel where the affine function (N, 3) is positive, from its distance to zero in pixels."""
        value = function[:, 0] * u + function[:, 1] * v + function[:, 2]
        return np.clip(0.5 + value / np.maximum(np.hypot(function[:, 0], function[:, 1]), 1e-30), 0.0, 1.0)

    def extent(matrix: Float64) -> Float64:
        s, t, w = matrix[:, 0:3], matrix[:, 3:6], matrix[:, 6:9]
        return np.minimum(coverage(s) + coverage(w - s), coverage(t) + coverage(w - t)) - 1.0

    a, b = rows[own], rows[other]
    nearer = coverage(b[:, 6:9] - a[:, 6:9])
    return np.clip(np.minimum(extent(b), np.maximum(nearer, 1.0 - extent(a))), 0.0, 1.0)
