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

"""Pictures of one frame: the keypoints with their uncertainty, depth, and how sure the matcher is of its matches."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.evaluation import theme
from macvo_ros.evaluation.theme import to_svg
from macvo_ros.matching.full_size import at_full_size
from macvo_ros.odometry.estimate import Estimate

WIDTH = 560  # pixels of a picture on the page


def frame_pictures(estimate: Estimate) -> list[tuple[str, str]]:
    """(SVG, caption) for what the estimate of a frame holds: keypoints, depth, sigma of disparity, sigma of flow."""
    pictures = []
    if estimate.landmarks is not None and len(estimate.landmarks.pixel):
        pictures.append(
            (
                keypoints(estimate),
                "Keypoints: colour and size grow with the standard deviation of the depth; crosses were rejected.",
            )
        )
    if estimate.match is not None:
        camera = estimate.frame.camera
        match = at_full_size(estimate.match, camera)
        disparity = match.disparity.detach().cpu().numpy().astype(np.float64) - camera.disparity_offset
        depth = np.where(disparity > 0.1, camera.fx * camera.baseline / np.maximum(disparity, 0.1), np.nan)
        pictures.append((heat_map(depth, "depth [m]", "turbo_r"), "Depth from the disparity of this frame."))
        known = True if estimate.frame.masked is None else ~estimate.frame.masked
        sigma = np.sqrt(match.disparity_var.detach().cpu().numpy().astype(np.float64))
        sigma = np.where(known, sigma, np.nan)
        pictures.append(
            (heat_map(sigma, "sigma of the disparity [px]", "viridis"), "How far the disparity may be off.")
        )
        if match.flow_var is not None:
            flow = np.sqrt(match.flow_var.detach().cpu().numpy().astype(np.float64).mean(axis=0))
            flow = np.where(known, flow, np.nan)
            pictures.append(
                (
                    heat_map(flow, "sigma of the flow [px]", "viridis"),
                    "How far the flow from the reference frame may be off.",
                )
            )
    return pictures


def keypoints(estimate: Estimate) -> str:
    """The left image with the keypoints on it."""
    assert estimate.landmarks is not None
    image, landmarks = estimate.frame.left, estimate.landmarks
    sigma = np.sqrt(np.maximum(landmarks.covariance[:, 2, 2], 1e-18))
    shown, scale = _shrunk(image)
    with theme.style():
        drawing, axes = _canvas(shown.shape)
        axes.imshow(shown if shown.ndim == 3 else np.repeat(shown[..., None], 3, axis=2), interpolation="bilinear")
        pixel = (landmarks.pixel + 0.5) * scale - 0.5
        good = landmarks.inlier
        size = 10 + 50 * np.clip((np.log(sigma) - np.log(np.median(sigma))) / 3 + 0.3, 0, 1)
        norm = _log_norm(sigma)
        dots = axes.scatter(*pixel[good].T, c=sigma[good], s=size[good], cmap="plasma", norm=norm, lw=0.8, ec="white")
        axes.scatter(*pixel[~good].T, marker="x", s=18, lw=1.1, color="white")
        axes.set_xlim(-0.5, shown.shape[1] - 0.5)
        axes.set_ylim(shown.shape[0] - 0.5, -0.5)
        _colour_bar(drawing, dots, axes, "sigma of the depth [m]")
        return to_svg(drawing)


def heat_map(values: npt.NDArray[np.float64], label: str, colours: str) -> str:
    """A map (H, W) of positive values in logarithmic colours between its 1st and 99th percentile."""
    known = np.isfinite(values) & (values > 0)
    shown, _ = _shrunk(np.where(known, values, 0).astype(np.float32))
    weight, _ = _shrunk(known.astype(np.float32))
    average = np.where(weight > 0.5, shown / np.maximum(weight, 1e-6), np.nan)
    with theme.style():
        drawing, axes = _canvas(average.shape)
        image = axes.imshow(average, cmap=colours, norm=_log_norm(average), interpolation="nearest")
        _colour_bar(drawing, image, axes, label)
        return to_svg(drawing)


def _canvas(shape: tuple[int, ...]) -> tuple[Any, Any]:
    drawing = theme.figure(5.2, 5.2 * shape[0] / shape[1] + 0.65)
    axes = drawing.subplots()
    axes.set_axis_off()
    return drawing, axes


def _colour_bar(drawing: Any, image: Any, axes: Any, label: str) -> None:
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    bar = drawing.colorbar(image, ax=axes, orientation="horizontal", fraction=0.05, pad=0.02, aspect=45)
    bar.outline.set_visible(False)
    bar.set_label(label)
    bar.ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    bar.ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    bar.ax.xaxis.set_minor_locator(NullLocator())
    bar.ax.grid(False)


def _log_norm(values: npt.NDArray[np.float64]) -> Any:
    from matplotlib.colors import LogNorm

    known = values[np.isfinite(values) & (values > 0)]
    low, high = np.percentile(known, (1, 99)) if known.size else (1.0, 2.0)
    return LogNorm(low, max(high, 1.5 * low), clip=True)


def _shrunk(image: Any) -> tuple[Any, float]:
    scale = min(1.0, WIDTH / image.shape[1])
    size = (round(image.shape[1] * scale), round(image.shape[0] * scale))
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA), scale
