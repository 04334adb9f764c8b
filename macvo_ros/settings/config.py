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

"""The tree of settings of the odometry core, the same for YAML files, ROS parameters and the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from macvo_ros.settings.declaration import build, parse_assignments, read_yaml, section, setting


@dataclass(frozen=True)
class StereoConfig:
    """Search along the rows from the left to the right image (`classic`, `lite`)."""

    min_depth: float = setting(
        0.0,
        "Nothing is nearer than this, metres; 0: disparities up to 40 % of the image's width are searched.",
        low=0.0,
        high=100.0,
    )


@dataclass(frozen=True)
class MatchingConfig:
    """At which size images are searched (`classic`, `lite`)."""

    work_pixels: int = setting(
        320000,
        "Larger images are reduced to about this many pixels for the dense search and the checks; keypoints are "
        "matched in the full images. 0: never reduced.",
        low=0,
        high=100_000_000,
    )


@dataclass(frozen=True)
class ClassicConfig:
    """Settings of the `classic` matcher (OpenCV DIS flow)."""

    preset: str = setting("medium", "DIS preset: accuracy against speed.", choices=("ultrafast", "fast", "medium"))
    seeded: bool = setting(True, "Start the flow from the rigid flow of the predicted motion.")
    refine: bool = setting(True, "Refine the matches at the keypoints with a sub-pixel Lucas-Kanade step.")


@dataclass(frozen=True)
class LiteConfig:
    """Settings of the `lite` matcher."""

    weights: str = setting("", "Network of your own, from macvo train lite (.safetensors); empty: the package's.")


@dataclass(frozen=True)
class FlowFormerConfig:
    """Settings of the `flowformer` matcher, the paper's network."""

    weights: str = setting("", "Checkpoint (.pth, .safetensors) or exported network (.onnx); see docs/flowformer.md.")
    mode: str = setting(
        "accurate",
        "accurate: float32, 12 iterations; fast: bfloat16, 4 iterations (the paper's fast mode).",
        choices=("accurate", "fast"),
    )
    iterations: int = setting(0, "Iterations of the decoder, 1 to 12; 0: those of the mode.", low=0, high=12)
    height: int = setting(0, "Rows of the images the network sees; 0: as they are, or after width.", low=0, high=8192)
    width: int = setting(
        0, "Columns of the images the network sees; 0: as they are, or after height.", low=0, high=8192
    )
    memory_mb: int = setting(64, "Working memory of the cost encoder, megabytes.", low=1, high=65536)
    compile: bool = setting(False, "Compile the network with torch.compile: slow first frame, faster ones after it.")
    provider: str = setting(
        "auto",
        "What runs an .onnx file; auto: CUDA when present, else CPU.",
        choices=("auto", "cpu", "cuda", "tensorrt"),
    )


@dataclass(frozen=True)
class KeypointConfig:
    """Keypoint selection (paper III-B)."""

    selector: str = setting(
        "uncertainty",
        "uncertainty: the paper's three filters; random: for the ablation.",
        choices=("uncertainty", "random"),
    )
    count: int = setting(200, "Keypoints a frame.", low=8, high=5000, live=True)
    nms: int = setting(7, "Side of the non-minimum-suppression window, pixels, odd.", low=1, high=63)
    border: int = setting(16, "Margin of the image without keypoints, pixels.", low=0, high=512)
    min_disparity: float = setting(
        0.0, "Keypoints with a smaller disparity are left out, pixels; 0: none, however far.", low=0.0, high=64.0
    )
    max_uncertainty: float = setting(
        3.0, "Largest disparity and flow uncertainty (sigma), in medians of the frame.", low=0.1, high=100.0, live=True
    )


@dataclass(frozen=True)
class MaskConfig:
    """What of the rectified left image shows the robot itself: never keypoints, never evidence."""

    image: str = setting("", "Picture of the size of the images (png, jpg), black where pixels are to be ignored.")
    polygons: str = setting("", "Polygons to ignore, pixels: x,y x,y x,y; x,y ... with ; between them.")


@dataclass(frozen=True)
class CovarianceConfig:
    """Metric 3D covariance of a keypoint (paper III-C)."""

    model: str = setting(
        "full",
        "full: the paper's; diagonal, identity, scale_agnostic: its ablations.",
        choices=("full", "diagonal", "identity", "scale_agnostic"),
    )
    patch: int = setting(32, "Side of the depth patch at the matched point, pixels (paper: 32).", low=3, high=64)


@dataclass(frozen=True)
class PoseConfig:
    """Two-frame pose optimization (paper III-D)."""

    initial_motion: str = setting(
        "constant_velocity", "Where the optimization starts.", choices=("constant_velocity", "static")
    )
    kernel: float = setting(2.5, "Huber threshold on the Mahalanobis residual; 0 switches it off.", low=0.0, high=100.0)
    max_iterations: int = setting(20, "Levenberg-Marquardt steps at most.", low=1, high=200)
    min_points: int = setting(8, "Below this many inliers nothing was measured: LOST.", low=6, high=5000)


@dataclass(frozen=True)
class WindowConfig:
    """Poses and points of several frames found together."""

    frames: int = setting(6, "Frames of the window, the newest included; 2: the paper's two frames.", low=2, high=64)
    points: float = setting(
        1.0, "Points that are followed, of keypoints.count; half take a fifth less time and drift a little more.",
        low=0.1, high=1.0,
    )  # fmt: skip
    keyframe_flow: float = setting(
        5.0, "A frame stays in the window when the view has moved by this since the last that does, pixels.",
        low=0.0, high=500.0,
    )  # fmt: skip


@dataclass(frozen=True)
class ReferenceConfig:
    """Which earlier frame the current one is tracked against."""

    min_flow: float = setting(
        0.5,
        "Keep the reference while the median flow is below this, pixels; 0: always the previous frame (paper).",
        low=0.0,
        high=50.0,
    )
    max_gap: float = setting(
        5.0,
        "Start again instead of bridging when nothing was tracked for longer than this, seconds.",
        low=0.0,
        high=600.0,
    )


@dataclass(frozen=True)
class MotionPriorConfig:
    """What the robot may have done while nothing was measured; sets the covariance of a lost stretch."""

    acceleration: float = setting(5.0, "One-sigma unknown acceleration, m/s^2.", low=1e-3, high=1000.0)
    angular_acceleration: float = setting(10.0, "The same in rotation, rad/s^2.", low=1e-3, high=1000.0)
    speed: float = setting(
        5.0, "One-sigma unknown speed, m/s; bounds the growth while nothing is seen.", low=1e-3, high=1000.0
    )
    angular_speed: float = setting(3.0, "The same in rotation, rad/s.", low=1e-3, high=1000.0)


@dataclass(frozen=True)
class DoubtConfig:
    """When a measured motion is doubted: see docs/reliability.md."""

    false_alarm_rate: float = setting(
        0.01, "Share of sound frames that may be called DEGRADED because a check is unusual.", low=1e-6, high=0.5
    )
    prior: float = setting(
        1e-3, "Probability that something is wrong with a frame, before it is looked at; 0: never doubt.",
        low=0.0, high=0.5,
    )  # fmt: skip


@dataclass(frozen=True)
class CalibrationPriorConfig:
    """How far off a calibration may be, one sigma; defaults for a camera that was calibrated with care."""

    yaw: float = setting(0.03, "Of the right camera about its vertical axis, degrees.", low=1e-6, high=5.0)
    pitch: float = setting(0.03, "Of the right camera about its horizontal axis, degrees.", low=1e-6, high=5.0)
    roll: float = setting(0.03, "Of the right camera about its optical axis, degrees.", low=1e-6, high=5.0)
    focal: float = setting(0.003, "Of both focal lengths, as a share.", low=1e-7, high=0.2)
    focal_right: float = setting(0.001, "Of the right focal length against the left, as a share.", low=1e-7, high=0.2)
    k1: float = setting(0.005, "Of the radial distortion k1.", low=1e-7, high=1.0)
    centre: float = setting(1.0, "Of the principal point, pixels of an image 1000 pixels wide.", low=1e-6, high=100.0)
    ahead: float = setting(
        0.002, "Of how far the right camera stands ahead of the left, as a share of the baseline.", low=1e-7, high=0.2
    )
    field: float = setting(
        0.4,
        "Of what else bends an image 1000 pixels wide, pixels at its left and right edge.",
        low=1e-6,
        high=20.0,
    )
    baseline: float = setting(0.002, "Of the baseline, as a share: no image shows it.", low=0.0, high=0.2)


@dataclass(frozen=True)
class CalibrationConfig:
    """Errors of the calibration, learned while driving: see docs/your_camera.md."""

    online: bool = setting(
        True, "Correct keypoints by what is learned of the calibration; false: only count it in covariances."
    )
    prior: CalibrationPriorConfig = section(CalibrationPriorConfig)


@dataclass(frozen=True)
class Config:
    """Everything the odometry core can be told."""

    matcher: str = setting(
        "auto",
        "Who matches images; auto: flowformer with a CUDA device and a checkpoint, else lite.",
        choices=("auto", "classic", "lite", "flowformer"),
    )
    device: str = setting("auto", "Where networks run: auto (CUDA when present), cpu, cuda or cuda:N.")
    solver: str = setting(
        "lm", "lm: our Levenberg-Marquardt; pypose: PyPose's, as in the paper.", choices=("lm", "pypose")
    )
    pipelined: bool = setting(
        False, "Match the next frame while this one is optimized: faster, one frame late (flowformer, onnx)."
    )
    seed: int = setting(0, "Seed of everything random (the random selector).", low=0, high=2**31 - 1)
    stereo: StereoConfig = section(StereoConfig)
    matching: MatchingConfig = section(MatchingConfig)
    classic: ClassicConfig = section(ClassicConfig)
    lite: LiteConfig = section(LiteConfig)
    flowformer: FlowFormerConfig = section(FlowFormerConfig)
    mask: MaskConfig = section(MaskConfig)
    keypoints: KeypointConfig = section(KeypointConfig)
    covariance: CovarianceConfig = section(CovarianceConfig)
    pose: PoseConfig = section(PoseConfig)
    window: WindowConfig = section(WindowConfig)
    reference: ReferenceConfig = section(ReferenceConfig)
    motion_prior: MotionPriorConfig = section(MotionPriorConfig)
    doubt: DoubtConfig = section(DoubtConfig)
    calibration: CalibrationConfig = section(CalibrationConfig)


def load_config(path: Path | None = None, assignments: list[str] | None = None) -> Config:
    """The configuration of a file (if any), overridden by `key=value` words (if any)."""
    flat = read_yaml(path) if path is not None else {}
    flat.update(parse_assignments(assignments or []))
    return build(Config, flat)
