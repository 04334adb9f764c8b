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

"""The same bag twice, in processes of their own and with other numbers of threads: the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from macvo_ros.bags.convert import convert_sequence
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import ZED_X

ROOT = Path(__file__).resolve().parents[1]
TRACK = """
import sys
from pathlib import Path
import cv2, numpy as np, torch
from macvo_ros.settings.config import Config
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.sequences.bag import BagSequence
from macvo_ros.sequences.tum import write_tum
threads = int(sys.argv[3])
cv2.setNumThreads(threads); torch.set_num_threads(threads)
odometry, sequence = StereoOdometry(Config()), BagSequence(sys.argv[1])
found = [odometry.track(sequence[i]) for i in range(len(sequence))]
covariance = np.array([e.covariance for e in found])
write_tum(Path(sys.argv[2]), sequence.stamps, np.array([e.pose for e in found]), covariance)
"""


def test_same_bag_same_bytes(tmp_path):
    bag = tmp_path / "bag"
    camera = ZED_X.resized(320, 200)
    convert_sequence(RenderedSequence("room", 8, seed=7, camera=camera, texels=256), bag, progress=False)
    written = []
    for number, threads in enumerate((1, 2)):
        path = tmp_path / f"{number}.txt"
        words = [sys.executable, "-c", TRACK, str(bag), str(path), str(threads)]
        subprocess.run(words, check=True, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": str(number)})
        written.append(path.read_bytes())
    assert written[0] == written[1]
    assert written[0].count(b"\n") == 9
