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

"""The calibration that motions are measured with: as it was told, corrected by what was learned since.

What is learned is in the covariance in any case: where motions are not to be corrected (`calibration.online: false`),
poses are those of the calibration as told, and their covariance says what its errors did to them.
Learns slowly (`calibration_filter.py`) from sound frames only. Where the last second contradicts those before it
(`knock_watch.py`), or the rows of doubted frames say so (`row_knock.py`), a camera was knocked, which is said, and
learned anew from a wide prior about where it is seen to stand.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.settings.config import CalibrationConfig
from macvo_ros.uncertainty.block_scatter import BlockScatter, Evidence
from macvo_ros.uncertainty.calibration_error import CalibrationField
from macvo_ros.uncertainty.calibration_filter import CalibrationEstimate, CalibrationFilter
from macvo_ros.uncertainty.calibration_model import (
    CONSIDERED,
    FIELDS,
    PARTS,
    ROTATIONS,
    ROWS,
    SCALING,
    SIZE,
    CalibrationModel,
)
from macvo_ros.uncertainty.knock_watch import KNOCK, KnockWatch
from macvo_ros.uncertainty.learned_calibration import LearnedCalibration
from macvo_ros.uncertainty.row_evidence import row_evidence
from macvo_ros.uncertainty.row_field import RowField, RowLearning

Float64 = npt.NDArray[np.float64]

_log = logging.getLogger(__name__)
LEAST_FLOW = 0.004
"""Of the image's width: a frame that moved less (its median flow) shows less of a field of 0.4 pixels than half a
hundredth of a pixel, which matching is biased by."""
_SCATTER, _ROW_SCATTER = 20.0, 50.0
"""Of blocks of frames, before it is measured (`block_scatter.py`): chosen between those of a rendered street, 6 and 20
to 40, and those of KITTI 09, 29 and 59 (`python -m bench.calibration real` and `rendered` print them)."""


@dataclass(frozen=True, eq=False)
class AssumedCalibration:
    """What one motion is measured with. error: (C,) of the calibration, to be corrected; None: not looked for.

    rows: where in the right image matches are; None: on their rows.
    """

    field: CalibrationField
    model: CalibrationModel
    error: Float64 | None = None
    rows: RowField | None = None

    @staticmethod
    def of(camera: StereoCamera) -> AssumedCalibration:
        """As it was told."""
        return AssumedCalibration(CalibrationField.of(camera), CalibrationModel(camera))


class OnlineCalibration:
    """Learns the errors of one pair of cameras."""

    def __init__(self, camera: StereoCamera, config: CalibrationConfig) -> None:
        self.model = CalibrationModel(camera)
        self.online = config.online
        self.prior = self.model.prior_sigma(config.prior)
        self._baseline = config.prior.baseline
        self._scatter, self._row_scatter = (BlockScatter(self.prior, assumed) for assumed in (_SCATTER, _ROW_SCATTER))
        self._field_size = 0.0
        self._filter = self._from(self.prior, np.zeros(SIZE))
        self._field = CalibrationField.of(camera)
        self.knocks = 0
        self._rows = RowLearning(self.model, self.prior)
        self._watch = KnockWatch()

    @property
    def _knocked_sigma(self) -> Float64:
        """(C,) of the prior, where a knock may have turned the right camera."""
        sigma = self.prior.copy()
        sigma[ROTATIONS] = np.maximum(KNOCK, sigma[ROTATIONS])
        return np.asarray(sigma)

    def _from(self, sigma: Float64, mean: Float64) -> CalibrationFilter:
        """A filter that has learned nothing yet, whose prior has (C,) `sigma` about `mean`."""
        return CalibrationFilter(
            sigma,
            CONSIDERED,
            ROWS,
            parts=PARTS,
            fields=FIELDS,
            field_size=self._field_size,
            scaling=SCALING,
            mean=mean,
        )

    @property
    def assumed(self) -> AssumedCalibration:
        """What the next motion is to be measured with."""
        error = self._filter.estimate.error if self.online else np.zeros(SIZE)
        return AssumedCalibration(self._field, self.model, error, self._rows.field if self.online else None)

    @property
    def estimate(self) -> CalibrationEstimate:
        """What was learned."""
        return self._filter.estimate

    def formal(self, held: npt.NDArray[np.bool_] | None = None) -> tuple[Float64, Float64]:
        """See `CalibrationFilter.formal`."""
        return self._filter.formal(held)

    def claimed_scale(self) -> tuple[float, float]:
        """See `CalibrationFilter.claimed_scale`; radians of yaw."""
        return self._filter.claimed_scale()

    def constant_bias(self, truth: Float64) -> float:
        """See `CalibrationFilter.constant_bias`."""
        return self._filter.constant_bias(truth)

    @property
    def scatter(self) -> tuple[float, float]:
        """Of blocks of frames, in what they promise: of residuals, and of rows (`block_scatter.py`)."""
        return self._scatter.value, self._row_scatter.value

    @property
    def turned_lately(self) -> list[tuple[Float64, Float64]]:
        """See `KnockWatch.seen`."""
        return self._watch.seen

    @property
    def learned(self) -> LearnedCalibration:
        """The same for people."""
        known = self._filter.estimate
        return LearnedCalibration(self.model.camera, known.error, known.sigma, self.prior, self.knocks)

    @property
    def covariance(self) -> Float64:
        """(C + 2, C + 2) of what remains unknown, the baseline's share before the last.

        The last is for what motions along a path were corrected by: its column is X c of each motion, X its sensitivity
        and c what was known then. Now c' is: with X and y the sums along the path, these motions lack X c' - y.
        """
        known = self._filter.estimate
        size = len(known.error)
        out = np.zeros((size + 2, size + 2))
        out[:size, :size] = known.covariance
        out[size, size] = self._baseline**2
        since = np.concatenate((known.error, [0.0, -1.0]))
        return np.asarray(out + np.outer(since, since))

    def learn(self, residuals: Evidence, seconds: float, flow: float, rows: Evidence | None = None) -> bool:
        """Take in a sound frame, `seconds` after its reference; true where it proves that a camera was knocked.

        residuals, rows: what those of its motion say, and those of its stereo match, if any. flow: median of its
        keypoints, pixels.
        """
        if flow < LEAST_FLOW * self.model.camera.width:
            return False
        self._scatter.add(residuals, seconds)
        evidence = residuals.times(1.0 / self._scatter.value)
        if rows is not None:
            pitch_and_roll = row_evidence(self.model, rows)
            self._row_scatter.add(pitch_and_roll, seconds)
            evidence = evidence.plus(pitch_and_roll.times(1.0 / self._row_scatter.value))
            self._rows.learn(rows.times(1.0 / self._row_scatter.value), seconds)
        self._filter.learn(evidence, seconds)
        turn = self._watch.look(evidence, self._filter.estimate.error, seconds)
        if turn is not None:
            self.knocked(turn)
        return turn is not None

    def knocked(self, turn: Float64) -> None:
        """The right camera was turned by about (3,) `turn`, pitch, yaw and roll, radians: learned anew from there."""
        # Nothing else changed. A second of frames says where to begin from, and not how sure that is.
        mean = self._filter.estimate.error.copy()
        mean[ROTATIONS] += turn
        self._field_size = max(self._field_size, self._filter.field_size)  # a turn mends no rectification
        self._filter = self._from(self._knocked_sigma, mean)
        self._scatter.restart()
        self._row_scatter.restart()
        self._rows.restart(turn)
        self._watch = KnockWatch()
        self.knocks += 1
        _log.warning(
            "the cameras no longer stand to each other as before: the right one is turned by about %+.2f, %+.2f and "
            "%+.2f deg about x, y and z against the calibration; learning it anew, recalibrate soon",
            *np.degrees(mean[ROTATIONS]),
        )
