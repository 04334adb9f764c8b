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

"""A motion with its covariance, and the convention of errors that every covariance here follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RelativeMotion:
    """Motion from an earlier frame to the current one.

    motion: (4, 4) pose of the current frame in the earlier one, metres.
    covariance: (6, 6) of the error [dt, dtheta] in the axes of the earlier frame, t_true = t + dt and
    R_true = Exp(dtheta) R, metres and radians.
    """

    motion: Float64
    covariance: Float64
