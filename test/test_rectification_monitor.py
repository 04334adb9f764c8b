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

"""What the calibration is off by is learned from sound frames, and never less than what rows cannot show."""

from __future__ import annotations

import pytest

from macvo_ros.uncertainty.rectification_monitor import RectificationMonitor


def test_the_usual_epipolar_error_is_the_mean_of_those_seen():
    monitor = RectificationMonitor()
    assert monitor.epipolar_variance == 0.0
    for error in (0.1, 0.3, 0.0, 0.2):  # 0: not known
        monitor.learn(error**2)
    assert monitor.epipolar_variance == pytest.approx((0.01 + 0.09 + 0.04) / 3)


def test_residuals_that_are_alike_raise_what_rows_do_not_show():
    monitor = RectificationMonitor()
    plain = monitor.calibration_variance
    assert plain == pytest.approx(0.02**2)
    for _ in range(60):
        monitor.learn_pattern(4.0)
    assert monitor.calibration_variance == pytest.approx(4 * plain)
