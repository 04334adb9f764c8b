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

"""What the odometry sees and believes as a rerun recording: images, uncertainty, points with ellipsoids, trajectory.

rerun is an optional extra (`pip install "macvo_ros[view]"`); this is the only module that imports it.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import rerun as rr
import rerun.blueprint as rrb

from macvo_ros.evaluation.metrics import anchored
from macvo_ros.geometry.se3 import quaternion
from macvo_ros.images.frame import Image
from macvo_ros.matching.full_size import at_full_size
from macvo_ros.motion.landmarks import Landmarks
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.status import Status
from macvo_ros.sequences.sequence import Sequence

Float64 = npt.NDArray[np.float64]

SIGMAS = 3.0
"""Half axes of every ellipsoid, in standard deviations."""
CLOUD_FRAMES = 60
"""Frames whose points stay in the cloud."""
CHUNK = 50
"""Poses of the path in one entity: a growing line costs what changed, not what is there."""
MAP_WIDTH = 480
"""Columns of the uncertainty maps; images keep their size."""

_WORLD, _CAMERA = "odom", "odom/camera"
_IMAGE, _RIGHT = f"{_CAMERA}/left", "right"
_COLOURS = {
    Status.INITIALIZING: (150, 160, 180),
    Status.TRACKING: (60, 130, 250),
    Status.DEGRADED: (240, 180, 30),
    Status.LOST: (220, 50, 40),
}
_LEVELS = {Status.LOST: "ERROR", Status.DEGRADED: "WARN"}


class RerunScene:
    """Logs estimates of the left camera to a recording, one after the other. odom has optical axes at the start."""

    def __init__(self, recording: rr.RecordingStream, sequence: Sequence) -> None:
        self._recording = recording
        self._begin = int(sequence.stamps[0])
        self._frames = 0
        self._cloud: deque[tuple[Float64, npt.NDArray[np.uint8]]] = deque(maxlen=CLOUD_FRAMES)
        self._path: list[Float64] = []
        self._tube: list[tuple[Float64, Float64]] = []
        self._said = ""
        camera = sequence.camera
        self._log(_WORLD, rr.ViewCoordinates.RDF, static=True)
        pinhole = rr.Pinhole(
            image_from_camera=camera.K, resolution=(camera.width, camera.height), image_plane_distance=0.3
        )
        self._log(_IMAGE, pinhole, static=True)
        if sequence.ground_truth is not None:
            truth = anchored(sequence.ground_truth, np.eye(4))[:, :3, 3]
            self._log(f"{_WORLD}/truth", rr.LineStrips3D([truth], colors=[(150, 160, 180)]), static=True)

    def add(self, estimate: Estimate) -> None:
        """Show one more frame."""
        self._recording.set_time("frame", sequence=self._frames)
        self._recording.set_time("time", duration=(estimate.frame.stamp - self._begin) * 1e-9)
        rotation, position = estimate.pose[:3, :3], estimate.pose[:3, 3]
        self._log(_CAMERA, rr.Transform3D(translation=position, mat3x3=rotation))
        self._log(_IMAGE, _photograph(estimate.frame.left))
        self._log(_RIGHT, _photograph(estimate.frame.right))
        self._show_path(estimate)
        self._show_maps(estimate)
        if estimate.landmarks is not None and len(estimate.landmarks.point):
            self._show_landmarks(estimate.landmarks, rotation, position)
        self._show_numbers(estimate)
        self._frames += 1

    def _show_landmarks(self, landmarks: Landmarks, rotation: Float64, position: Float64) -> None:
        sigma = np.sqrt(np.maximum(landmarks.covariance[:, 2, 2], 1e-18))
        colours = _heat(np.log(sigma), cv2.COLORMAP_PLASMA)
        seen = np.where(landmarks.inlier[:, None], colours, np.uint8(255)).astype(np.uint8)
        radii = np.where(landmarks.inlier, 3.0, 1.5)
        self._log(f"{_IMAGE}/keypoints", rr.Points2D(landmarks.pixel + 0.5, colors=seen, radii=radii))
        good = landmarks.inlier
        points = landmarks.point[good] @ rotation.T + position
        covariances = rotation @ landmarks.covariance[good] @ rotation.T
        self._log(f"{_WORLD}/keypoints", _ellipsoids(points, covariances, colours[good]))
        self._cloud.append((points, colours[good]))
        cloud, painted = (np.concatenate(parts) for parts in zip(*self._cloud, strict=True))
        self._log(f"{_WORLD}/cloud", rr.Points3D(cloud, colors=painted, radii=rr.Radius.ui_points(1.5)))

    def _show_path(self, estimate: Estimate) -> None:
        chunk = self._frames // CHUNK
        position, covariance = estimate.pose[:3, 3].copy(), estimate.covariance[:3, :3]
        if self._frames % CHUNK == 0:
            self._path, self._tube = self._path[-1:], []
        self._path.append(position)
        self._tube.append((position, covariance))
        if len(self._path) > 1:
            line = rr.LineStrips3D([np.array(self._path)], colors=[_COLOURS[Status.TRACKING]])
            self._log(f"{_WORLD}/path/{chunk}", line)
        centres, covariances = (np.array(parts) for parts in zip(*self._tube[::5], strict=True))
        tube = np.tile(np.array([[60, 130, 250, 60]], dtype=np.uint8), (len(centres), 1))
        self._log(f"{_WORLD}/tube/{chunk}", _ellipsoids(centres, covariances, tube))
        colour = np.array([[*_COLOURS[estimate.status], 140]], dtype=np.uint8)
        self._log(f"{_WORLD}/here", _ellipsoids(position[None], covariance[None], colour))

    def _show_maps(self, estimate: Estimate) -> None:
        if estimate.match is None:
            return
        match = at_full_size(estimate.match, estimate.frame.camera)
        variances = {"sigma/disparity": match.disparity_var}
        if match.flow_var is not None:
            variances["sigma/flow"] = match.flow_var.mean(dim=0)
        for name, variance in variances.items():
            # Masked pixels have no variance to speak of: 100 pixels stand for that in the colours.
            values = 0.5 * np.log(np.clip(variance.detach().cpu().numpy().astype(np.float32), 1e-8, 1e4))
            scale = min(1.0, MAP_WIDTH / values.shape[1])
            small = cv2.resize(values, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
            self._log(name, rr.Image(_heat(small, cv2.COLORMAP_VIRIDIS)).compress(jpeg_quality=85))

    def _show_numbers(self, estimate: Estimate) -> None:
        sigma = np.sqrt(np.maximum(np.diag(estimate.covariance), 0.0))
        self._log("sigma/pose/position_m", rr.Scalars(float(np.linalg.norm(sigma[:3]))))
        self._log("sigma/pose/rotation_rad", rr.Scalars(float(np.linalg.norm(sigma[3:]))))
        if estimate.landmarks is not None:
            self._log("evidence/inliers", rr.Scalars(float(np.count_nonzero(estimate.landmarks.inlier))))
        if np.isfinite(estimate.chi2):
            self._log("evidence/chi2", rr.Scalars(estimate.chi2))
        said = f"{estimate.status.name}{f': {estimate.reason}' if estimate.reason else ''}"
        if said != self._said:
            self._log("status", rr.TextLog(said, level=_LEVELS.get(estimate.status, "INFO")))
            self._said = said

    def _log(self, entity: str, what: Any, *, static: bool = False) -> None:
        self._recording.log(entity, what, static=static)


def layout() -> rrb.Blueprint:
    """The world on the left; images, uncertainty and figures on the right."""
    return rrb.Blueprint(
        rrb.Horizontal(
            rrb.Vertical(
                rrb.Spatial3DView(origin=_WORLD, name="world"), rrb.TextLogView(origin="status"), row_shares=[5, 1]
            ),
            rrb.Vertical(
                rrb.Spatial2DView(origin=_IMAGE, name="left, keypoints"),
                rrb.Tabs(
                    rrb.Spatial2DView(origin="sigma/flow", name="sigma of the flow"),
                    rrb.Spatial2DView(origin="sigma/disparity", name="sigma of the disparity"),
                    rrb.Spatial2DView(origin=_RIGHT, name="right"),
                ),
                rrb.Tabs(
                    rrb.TimeSeriesView(origin="sigma/pose", name="sigma of the pose"),
                    rrb.TimeSeriesView(origin="evidence/inliers", name="inliers"),
                    rrb.TimeSeriesView(origin="evidence/chi2", name="chi2"),
                ),
            ),
            column_shares=[3, 2],
        ),
        collapse_panels=True,
    )


def open_recording(name: str, save: Path | None) -> rr.RecordingStream:
    """A recording that goes to the file `save`, or to a viewer that is started."""
    recording = rr.RecordingStream(f"macvo {name}")
    if save is None:
        recording.spawn(default_blueprint=layout())
    else:
        recording.save(save, default_blueprint=layout())
    return recording


def _ellipsoids(centres: Float64, covariances: Float64, colours: npt.NDArray[np.uint8]) -> rr.Ellipsoids3D:
    """Centres (N, 3) and covariances (N, 3, 3), metres, as ellipsoids of three sigmas."""
    values, axes = np.linalg.eigh(covariances)
    axes[..., 0] *= np.sign(np.linalg.det(axes))[:, None]
    return rr.Ellipsoids3D(
        centers=centres,
        half_sizes=SIGMAS * np.sqrt(np.maximum(values, 1e-18)),
        quaternions=[rr.Quaternion(xyzw=quaternion(rotation)) for rotation in axes],
        colors=colours,
        fill_mode=rr.components.FillMode.Solid,
    )


def _photograph(image: Image) -> Any:
    return rr.Image(image).compress(jpeg_quality=85)


def _heat(values: npt.NDArray[Any], colours: int) -> npt.NDArray[np.uint8]:
    """(..., 3) RGB of values (...), from their 1st to their 99th percentile."""
    low, high = np.percentile(values, (1, 99))
    grey = np.clip((values - low) / max(high - low, 1e-6) * 255, 0, 255).astype(np.uint8)
    painted = cv2.applyColorMap(grey.reshape(-1, 1), colours)
    return np.asarray(painted[..., ::-1].reshape(*values.shape, 3), dtype=np.uint8)
