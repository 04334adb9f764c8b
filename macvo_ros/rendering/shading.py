"""Colours: filtered texture look-ups, light, and the mixed pixels along silhouettes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.rendering.scene import Scene
from macvo_ros.rendering.visibility import Visibility

Float32 = npt.NDArray[np.float32]
Indices = npt.NDArray[np.intp]

_PROBE = 0.25  # pixels either side of the centre, along the direction in which the texture is most compressed


class _Coefficients:
    """Per-quad constants of a view as flat float32 tables, one extra row of zeros for "nothing there"."""

    def __init__(self, scene: Scene, visible: Visibility) -> None:
        projected, quads = visible.projected, scene.quads
        index, matrix = projected.index, projected.matrix
        light = quads.light[index]
        bilinear = np.stack(
            [light[:, 0], light[:, 1] - light[:, 0], light[:, 2] - light[:, 0], light @ [1.0, -1.0, -1.0, 1.0]]
        )
        gradient = matrix[:, 2, :2] / np.maximum(np.linalg.norm(matrix[:, 2, :2], axis=1), 1e-30)[:, None]
        tiles = quads.tiles[index]
        area = np.abs(np.linalg.det(matrix)) * np.prod(tiles, axis=1) * scene.atlas.size**2
        self.rows = matrix.reshape(len(index), 9)
        self.table = _with_nothing(
            np.concatenate(
                [
                    self.rows.T,  # 0..8
                    np.einsum("vij,vj->iv", matrix[:, :, :2], gradient) * _PROBE,  # 9..11 change of s/z, t/z, 1/z
                    bilinear,  # 12..15
                    tiles.T,  # 16, 17
                    quads.phase[index].T,  # 18, 19
                    0.5 * np.log2(np.maximum(area, 1e-300))[None],  # 20
                    projected.plane_distance[None],  # 21
                ]
            )
        )
        self.texture = np.append(quads.texture[index], 0)


def _with_nothing(table: npt.NDArray[np.float64]) -> Float32:
    return np.concatenate([table, np.zeros((len(table), 1))], axis=1).astype(np.float32)


def shade(scene: Scene, visible: Visibility) -> Float32:
    """(H, W, 3) float32 radiance, 0..255 for textures under a light of 1, anti-aliased."""
    coefficients = _Coefficients(scene, visible)
    height, width = visible.slot.shape
    u = np.arange(width, dtype=np.float32)[None, :]
    v = np.arange(height, dtype=np.float32)[:, None]
    image = _colour(scene, visible, coefficients, visible.slot, u, v)
    _mix_edges(scene, visible, coefficients, image)
    return image


def _colour(
    scene: Scene, visible: Visibility, coefficients: _Coefficients, slot: Indices, u: Float32, v: Float32
) -> Float32:
    """Colour of surfaces `slot` (H, W) at pixels u, v (broadcast to H, W); defined beyond the surfaces' edges too."""
    c = coefficients.table
    atlas = scene.atlas
    w = c[6][slot] * u + c[7][slot] * v + c[8][slot]
    s = c[0][slot] * u + c[1][slot] * v + c[2][slot]
    t = c[3][slot] * u + c[4][slot] * v + c[5][slot]
    np.maximum(w, 1e-9, out=w)
    K = visible.view.K
    ray = np.sqrt(((u - K[0, 2]) / K[0, 0]) ** 2 + ((v - K[1, 2]) / K[1, 1]) ** 2 + 1.0).astype(np.float32)
    log_w = np.log2(w)
    # texels per pixel: the geometric mean of the footprint's axes follows from the Jacobian |det M| / w^3, their ratio
    # is 1 / cos(incidence). Two probes halve the long axis; the level is chosen to fit the rest.
    compression = ray / np.maximum(w * c[21][slot], 1e-9)
    level = c[20][slot] - 1.5 * log_w + 0.5 * np.log2(np.clip(compression, 1.0, 64.0)) - 0.5
    np.clip(level, 0.0, atlas.levels - 1.001, out=level)
    lower = level.astype(np.intp)
    share = (level - lower)[..., None]
    texture = coefficients.texture[slot]
    tiles_s, tiles_t, phase_s, phase_t = (c[i][slot] for i in (16, 17, 18, 19))
    dw, ds, dt = c[11][slot], c[9][slot], c[10][slot]
    np.clip(dw, -0.5 * w, 0.5 * w, out=dw)
    total = np.zeros((*slot.shape, 3), np.float32)
    for sign in (-1.0, 1.0):
        z = 1.0 / (w + sign * dw)
        coordinate_s = (s + sign * ds) * z * tiles_s + phase_s
        coordinate_t = (t + sign * dt) * z * tiles_t + phase_t
        fine = atlas.sample(texture, coordinate_s, coordinate_t, lower)
        coarse = atlas.sample(texture, coordinate_s, coordinate_t, lower + 1)
        total += fine + share * (coarse.astype(np.float32) - fine)
    s, t = s / w, t / w
    light = c[12][slot] + c[13][slot] * s + (c[14][slot] + c[15][slot] * s) * t
    total *= (0.5 * light)[..., None]
    return total


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
    colour = _colour(scene, visible, coefficients, other[None], u[None].astype(np.float32), v[None].astype(np.float32))[
        0
    ]
    total = np.bincount(pixel, share, slot.size)[pixel]
    share = (share / np.maximum(total, 1.0)).astype(np.float32)
    flat = image.reshape(-1, 3)
    before = flat[pixel]
    np.add.at(flat, pixel, share[:, None] * (colour - before))


def _share_of_other(
    rows: npt.NDArray[np.float64], own: Indices, other: Indices, u: npt.NDArray[np.float64], v: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Share of pixel (u, v), whose centre sees `own`, that `other` covers: where it is and own is farther or is not."""

    def coverage(function: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Share of the pixel where the affine function (N, 3) is positive, from its distance to zero in pixels."""
        value = function[:, 0] * u + function[:, 1] * v + function[:, 2]
        return np.clip(0.5 + value / np.maximum(np.hypot(function[:, 0], function[:, 1]), 1e-30), 0.0, 1.0)

    def extent(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        s, t, w = matrix[:, 0:3], matrix[:, 3:6], matrix[:, 6:9]
        return np.minimum(coverage(s) + coverage(w - s), coverage(t) + coverage(w - t)) - 1.0

    a, b = rows[own], rows[other]
    nearer = coverage(b[:, 6:9] - a[:, 6:9])
    return np.clip(np.minimum(extent(b), np.maximum(nearer, 1.0 - extent(a))), 0.0, 1.0)
