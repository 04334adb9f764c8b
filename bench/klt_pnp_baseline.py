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

"""The stereo odometry one would write with OpenCV in an afternoon, to compare with.

Good features (600), pyramidal Lucas-Kanade from the previous left image to the current one and from left to right, both
with a back-check, PnP with RANSAC and a Levenberg-Marquardt refinement on the inliers. No covariance.

    python -m bench.klt_pnp_baseline ../shared/data/kitti_clip_a
"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter

import cv2
import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from macvo_ros.errors import MacvoError
from macvo_ros.evaluation.metrics import relative_errors
from macvo_ros.evaluation.table import format_table
from macvo_ros.images.frame import StereoFrame
from macvo_ros.sequences import Sequence, open_sequence

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

POINTS = 600
SPACING = 12  # pixels between features, at least
WINDOW = {
    "winSize": (15, 15),
    "maxLevel": 4,
    "criteria": (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 30, 0.01),
}
BACK_CHECK = 0.5  # pixels between a point and itself tracked there and back
ROW_CHECK = 1.0  # pixels between the rows of a stereo match
MIN_DISPARITY = 0.5  # pixels
INLIER = 1.5  # pixels of reprojection error


class KltPnpOdometry:
    """Frame-to-frame stereo odometry by KLT and PnP."""

    def __init__(self) -> None:
        self._previous: tuple[StereoFrame, npt.NDArray[np.uint8], npt.NDArray[np.uint8]] | None = None
        self._motion = np.eye(4)

    def track(self, frame: StereoFrame) -> Float64:
        """(4, 4) pose of this left camera in the previous one, metres; the last motion again where PnP fails."""
        left, right = _grey(frame.left), _grey(frame.right)
        previous, self._previous = self._previous, (frame, left, right)
        if previous is None:
            return np.eye(4)
        before, before_left, before_right = previous
        motion = self._solve(before, before_left, before_right, left)
        if motion is not None:
            self._motion = motion
        return self._motion

    def _solve(
        self,
        before: StereoFrame,
        before_left: npt.NDArray[np.uint8],
        before_right: npt.NDArray[np.uint8],
        left: npt.NDArray[np.uint8],
    ) -> Float64 | None:
        corners = cv2.goodFeaturesToTrack(before_left, POINTS, 0.01, SPACING)
        if corners is None:
            return None
        pixel = corners.reshape(-1, 2)
        stereo, good_stereo = track_both_ways(before_left, before_right, pixel)
        moved, good_moved = track_both_ways(before_left, left, pixel)
        camera = before.camera
        disparity = pixel[:, 0] - stereo[:, 0] - camera.disparity_offset
        good = good_stereo & good_moved & (disparity > MIN_DISPARITY)
        good &= np.abs(pixel[:, 1] - stereo[:, 1]) < ROW_CHECK
        if np.count_nonzero(good) < 6:
            return None
        pixel, disparity, moved = pixel[good].astype(np.float64), disparity[good], moved[good].astype(np.float64)
        depth = camera.fx * camera.baseline / disparity
        point = np.column_stack(
            [(pixel[:, 0] - camera.cx) / camera.fx * depth, (pixel[:, 1] - camera.cy) / camera.fy * depth, depth]
        )
        found, rotation, translation, inliers = cv2.solvePnPRansac(
            point, moved, camera.K, None, iterationsCount=500, reprojectionError=INLIER, confidence=0.999,
            flags=cv2.SOLVEPNP_ITERATIVE,
        )  # fmt: skip
        if not found or inliers is None or len(inliers) < 6:
            return None
        kept = inliers.ravel()
        rotation, translation = cv2.solvePnPRefineLM(point[kept], moved[kept], camera.K, None, rotation, translation)
        current_from_before = np.eye(4)
        current_from_before[:3, :3] = cv2.Rodrigues(rotation)[0]
        current_from_before[:3, 3] = translation.ravel()
        return np.linalg.inv(current_from_before)


def track_both_ways(
    first: npt.NDArray[np.uint8], second: npt.NDArray[np.uint8], pixel: Float32
) -> tuple[Float32, npt.NDArray[np.bool_]]:
    """Where (N, 2) pixels of the first image are in the second, and whether tracking back ends where it began."""
    there, found, _ = cv2.calcOpticalFlowPyrLK(first, second, pixel, None, **WINDOW)
    back, returned, _ = cv2.calcOpticalFlowPyrLK(second, first, there, None, **WINDOW)
    good = (found.ravel() == 1) & (returned.ravel() == 1)
    return there, good & (np.linalg.norm(back - pixel, axis=1) < BACK_CHECK)


def run_baseline(sequence: Sequence) -> tuple[Float64, float]:
    """(N, 4, 4) poses over a sequence, and frames per second without reading images."""
    odometry, poses, seconds = KltPnpOdometry(), [np.eye(4)], []
    for index in tqdm(range(len(sequence)), desc=f"baseline, {sequence.name}", unit="frame", delay=2.0):
        frame = sequence[index]
        start = perf_counter()
        motion = odometry.track(frame)
        seconds.append(perf_counter() - start)
        if index:
            poses.append(poses[-1] @ motion)
    return np.array(poses), (len(seconds) - 1) / max(sum(seconds[1:]), 1e-9)


def _grey(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return image if image.ndim == 2 else np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), dtype=np.uint8)


def main() -> int:
    """Run over the sequences on the command line and print t_rel, r_rel and fps."""
    parser = argparse.ArgumentParser(description="KLT + PnP, the baseline")
    parser.add_argument("path", nargs="+", help="sequence folders with ground truth")
    parser.add_argument("--frames", metavar="A:B", default=":", help="frames A up to, not including, B")
    args = parser.parse_args()
    first, _, last = args.frames.partition(":")
    frames = (int(first) if first else None, int(last) if last else None)
    rows = []
    try:
        for path in args.path:
            sequence = open_sequence(path, frames=frames)
            if sequence.ground_truth is None:
                raise MacvoError(f"{path} has no ground truth")
            poses, fps = run_baseline(sequence)
            translation, rotation = relative_errors(poses, sequence.ground_truth)
            rows.append(
                [sequence.name, str(len(poses)), f"{translation.mean():.4f}", f"{rotation.mean():.4f}", f"{fps:.1f}"]
            )
    except MacvoError as error:
        print(f"klt_pnp_baseline: {error}", file=sys.stderr)
        return 2
    print(format_table(["sequence", "frames", "t_rel [m]", "r_rel [deg]", "fps"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
