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

"""The covariance of a motion that may not be the camera's: a mixture of what was measured and what else it may be.

    S = (1 - P) S_measured + P (S_alternative + d d^T)

is the second moment, about the measured motion, of a motion that is measured with probability 1 - P and the alternative
otherwise; d is the difference of the two.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import difference
from macvo_ros.uncertainty.relative_motion import RelativeMotion

Float64 = npt.NDArray[np.float64]


def mixed(measured: RelativeMotion, alternative: RelativeMotion, fault: float) -> RelativeMotion:
    """The measured motion with the covariance of the mixture; fault: probability that it is the alternative."""
    d = difference(measured.motion, alternative.motion)
    other = alternative.covariance + np.outer(d, d)
    return RelativeMotion(measured.motion, (1 - fault) * measured.covariance + fault * other)
