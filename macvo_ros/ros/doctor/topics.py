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

"""What is wrong with the topics of a camera: who publishes, how often, with which stamps, calibration and frame."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.bags.pairing import nearest_gap, pair_stamps
from macvo_ros.errors import CalibrationError
from macvo_ros.images.camera_info import StereoInput
from macvo_ros.ros.doctor.finding import Finding
from macvo_ros.ros.doctor.listening import Heard, Observation

Int64 = npt.NDArray[np.int64]

_MISSING = 0.05
"""Share of the images that may be missing before it is called wrong. Chosen: single gaps are bridged."""
_OLD, _EARLY = 1.0, 0.05
"""Seconds that stamps may be behind this machine's clock, and before it. Chosen: drivers take up to a tenth."""
_BASELINES = 0.005, 5.0
"""Metres: nearer and farther apart than any pair of cameras on a robot, so the unit is wrong. Chosen."""


def look_at_topics(observation: Observation, seconds: float) -> list[Finding]:
    """Publishers, types, rates and losses of each topic. seconds: for how long it was listened."""
    findings = []
    for role, heard in observation.topics.items():
        findings += _look_at_topic(role, heard, observation.elsewhere, seconds)
    for side in ("left", "right"):
        if f"{side} camera_info" not in observation.topics:
            cure = "publish it, name its topic (--topics LEFT RIGHT LEFT_INFO RIGHT_INFO), or set calibration_file"
            findings.append(Finding(f"no camera_info beside the {side} images", cure))
    return findings


def _look_at_topic(role: str, heard: Heard, elsewhere: list[str], seconds: float) -> list[Finding]:
    record = heard.record
    name = f"{role} {record.name}"
    if not heard.publishers:
        others = f" (image topics that are published: {', '.join(elsewhere[:6])})" if elsewhere else ""
        return [Finding(f"{name}: nobody publishes it", f"start the camera, or name its topics by --topics{others}")]
    findings = []
    types = sorted({kind for _, kind, _ in heard.publishers})
    if types != [record.type_name]:
        findings.append(Finding(f"{name} carries {', '.join(types)}", f"{record.type_name} is expected: name another"))
    if len(heard.publishers) > 1:
        nodes = ", ".join(sorted(node for node, _, _ in heard.publishers))
        findings.append(Finding(f"{name} has {len(heard.publishers)} publishers ({nodes})", "stop all but one of them"))
    offered = "reliable" if heard.reliable else "best effort"
    if heard.trouble:
        findings.append(Finding(f"{name}: {heard.trouble}", "check its publisher and the middleware"))
    if not record.received:
        cure = "the driver runs but sends nothing: check its log, cable and power"
        if record.incompatible:
            cure = f"the publisher offers another {record.incompatible} than a subscriber can take: change its QoS"
        elif record.lost:
            cure = "all were lost in transport: " + _TRANSPORT
        findings.append(Finding(f"{name}: no message in {seconds:.0f} s ({offered})", cure))
        return findings
    content = f", {record.content} ({record.size / 1e6:.1f} MB)" if record.content else ""
    findings.append(Finding(f"{name}: {_rate(heard)}, {offered}{content}"))
    missing = _missing(heard) if role.endswith("image") else 0.0
    if missing > _MISSING:
        findings.append(Finding(f"{name}: {missing:.0%} of the images are missing", _TRANSPORT))
    return findings


_TRANSPORT = (
    "start the driver with FASTRTPS_DEFAULT_PROFILES_FILE set to this package's config/fastdds.xml (the sender owns "
    "the shared memory), let it publish reliable, or smaller images"
)


def look_at_stamps(observation: Observation) -> list[Finding]:
    """Order, age and agreement of the stamps of the images."""
    images = [observation.topics[f"{side} image"] for side in ("left", "right")]
    if not all(heard.stamps for heard in images):
        return []
    findings = []
    for heard in images:
        stamps = np.array(heard.stamps)
        name = heard.record.name
        if not stamps.all():
            findings.append(Finding(f"{name} has stamps of zero", "let the driver stamp images when they are exposed"))
        elif (np.diff(stamps) <= 0).any():
            cure = "stamps must increase: two publishers, a bag that loops, or a clock that jumps"
            findings.append(Finding(f"stamps of {name} go back or repeat", cure))
    if findings:
        return findings
    left, right = (np.array(heard.stamps) for heard in images)
    findings.append(_agreement(left, right))
    if observation.simulated:
        findings.append(Finding("somebody publishes /clock: start the node with use_sim_time true"))
    else:
        findings.append(_age(images[0]))
    return findings


def _agreement(left: Int64, right: Int64) -> Finding:
    """Whether stamps pair, of the stretch in which both sides were heard."""
    first, last = max(left[0], right[0]), min(left[-1], right[-1])
    inside = [stamps[(stamps >= first) & (stamps <= last)] for stamps in (left, right)]
    equal = len(pair_stamps(*inside)[0])
    most = max(map(len, inside))
    if most and equal >= (1 - _MISSING) * most:
        return Finding(f"left and right stamps are equal ({equal} of {most} pairs)")
    gap = nearest_gap(left, right) * 1e-9
    interval = float(np.median(np.diff(left))) * 1e-9 if len(left) > 1 else 0.0
    if gap == 0:
        return Finding(f"{equal} of {most} images have a partner", "one side loses images: " + _TRANSPORT)
    seen = f"left and right stamps are {gap * 1e3:.3g} ms apart"
    if interval and gap > 0.25 * interval:
        return Finding(seen, f"at {1 / interval:.0f} Hz that is no pair: trigger both cameras together")
    return Finding(
        seen,
        f"trigger both cameras together; or set approximate_sync to true and sync_tolerance to {gap * 1.5:.2g}, at the "
        "price of what the robot moves in that time",
    )


def _age(heard: Heard) -> Finding:
    age = float(np.median(np.array(heard.arrivals) - np.array(heard.stamps))) * 1e-9
    if abs(age) > 3.15e7:
        seen = f"image stamps are years {'behind' if age > 0 else 'before'} this machine's clock"
    else:
        seen = f"image stamps are {abs(age):.3g} s {'behind' if age > 0 else 'before'} this machine's clock"
    if -_EARLY < age < _OLD:
        return Finding(seen)
    return Finding(
        seen,
        "let the driver stamp with the system clock, synchronise the machines (chrony), or, for a bag, play it with "
        "--clock and start the node with use_sim_time true",
    )


def look_at_calibration(observation: Observation, rectify: bool) -> tuple[list[Finding], StereoInput | None]:
    """camera_info, and what makes frames with it; rectify: whether the images are raw."""
    heard = [observation.topics.get(f"{side} camera_info") for side in ("left", "right")]
    infos = [each.info if each is not None else None for each in heard]
    left, right = infos
    if left is None or right is None:
        return [], None
    try:
        stereo = StereoInput.from_camera_info(left, right, rectify=rectify)
    except CalibrationError as error:
        seen, _, cure = str(error).rpartition("; ")
        return [Finding(seen or cure, cure if seen else "calibrate the pair, or set calibration_file")], None
    camera = stereo.camera
    seen = f"{camera.width}x{camera.height}, fx {camera.fx:.1f}, baseline {camera.baseline:.4f} m"
    findings = []
    if not _BASELINES[0] < camera.baseline < _BASELINES[1]:
        cure = "P[3] of the right camera_info is -fx * baseline in metres: was the chessboard given in another unit?"
        findings.append(Finding(seen, cure))
    else:
        far = camera.fx * camera.baseline
        findings.append(Finding(f"{seen}: a disparity of one pixel is {far:.0f} m away"))
    for side, info in zip(("left", "right"), infos, strict=True):
        image = observation.topics[f"{side} image"]
        if image.kept and hasattr(image.kept[-1], "width") and info is not None:
            size = image.kept[-1].width, image.kept[-1].height
            if size != (info.width, info.height):
                seen = f"{side} images are {size[0]}x{size[1]}, their camera_info says {info.width}x{info.height}"
                findings.append(Finding(seen, "use the camera_info of these images: one of the two was resized"))
                return findings, None
    return findings, stereo


def look_at_transform(observation: Observation, base_frame: str) -> list[Finding]:
    """Whether TF knows where the camera is, and whether its frame is an optical one."""
    frame = observation.topics["left image"].frame_id
    if not observation.topics["left image"].record.received:
        return []
    if not frame:
        return [Finding("left images name no frame", "set frame_id in the driver, or camera_at_base in the node")]
    if observation.transform is None:
        why = f" ({observation.no_transform})" if observation.no_transform else ""
        return [
            Finding(
                f"TF does not connect {frame!r} to {base_frame!r}{why}",
                "publish it (static_transform_publisher, the URDF), name another --base-frame, or set camera_at_base",
            )
        ]
    pose = observation.transform
    x, y, z = pose[:3, 3]
    forward = pose[:3, 2]
    words = f"{frame!r} is at {x:.2f}, {y:.2f}, {z:.2f} m in {base_frame!r} and looks along "
    words += ", ".join(f"{axis:.2f}" for axis in forward)
    if forward[2] > 0.9:
        return [
            Finding(
                words + " (straight up)",
                "a frame whose z points up is the camera's body, not its optical frame (z forward): let the driver "
                "name the optical one in the images; ignore this if the camera looks at the ceiling",
            )
        ]
    return [Finding(words)]


def _rate(heard: Heard) -> str:
    stamps, arrivals = np.array(heard.stamps), np.array(heard.arrivals)
    if len(arrivals) < 3:
        return f"{len(arrivals)} messages"
    by_arrival = (len(arrivals) - 1) / max((arrivals[-1] - arrivals[0]) * 1e-9, 1e-9)
    interval = float(np.median(np.diff(stamps))) * 1e-9
    stamped = f", every {interval * 1e3:.1f} ms by its stamps" if interval > 0 else ""
    return f"{by_arrival:.1f} Hz{stamped}"


def _missing(heard: Heard) -> float:
    """The part of the images that the stamps' own rhythm says were taken and that did not come."""
    steps = np.diff(np.array(heard.stamps))
    steps = steps[steps > 0]
    if len(steps) < 5:
        return 0.0
    usual = float(np.quantile(steps, 0.25))  # where half are lost, the median is twice the rhythm
    taken = float(np.rint(steps / usual).sum())
    return 1.0 - len(steps) / taken
