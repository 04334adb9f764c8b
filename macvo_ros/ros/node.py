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

"""The lifecycle node: parameters and transitions, nothing else."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn

from macvo_ros.errors import CalibrationError, MacvoError
from macvo_ros.geometry.calibration import load_calibration
from macvo_ros.images.camera_info import StereoInput
from macvo_ros.odometry.pipelined_odometry import make_odometry
from macvo_ros.ros import parameters
from macvo_ros.ros.configured_node import ConfiguredNode
from macvo_ros.ros.lifecycle_requests import refuse_impossible_requests
from macvo_ros.ros.parameter_addresses import shared_parameters
from macvo_ros.ros.parameters import NodeConfig
from macvo_ros.ros.tracking import Odometry


class MacvoNode(LifecycleNode):  # type: ignore[misc]
    """Stereo visual odometry. configure loads, activate subscribes, deactivate stops, cleanup frees."""

    def __init__(
        self,
        make_odometry: Callable[[NodeConfig], Odometry] = make_odometry,
        command_line: Sequence[str] = (),
        **arguments: Any,
    ) -> None:
        """make_odometry: another core, for tests. arguments: as for rclpy's Node. Raises ConfigError.

        command_line: that of the process, which tells parameters for this node from those for all nodes.
        """
        super().__init__("macvo", automatically_declare_parameters_from_overrides=True, **arguments)
        self.config = parameters.declare(self, shared_parameters(command_line, self.get_fully_qualified_name()))
        self.configured: ConfiguredNode | None = None
        self._make_odometry = make_odometry
        refuse_impossible_requests(self)
        self.add_on_set_parameters_callback(self._on_set_parameters)

    # rclpy swallows what a transition raises, so each reports its own errors.

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        """Read the parameters, load the matcher, announce topics and services."""
        try:
            self.config = parameters.read(self)
            calibration = calibration_from_file(self.config)
            started = time.monotonic()
            odometry = self._make_odometry(self.config)
            self.get_logger().info(f"matcher {self.config.matcher} ready after {time.monotonic() - started:.1f} s")
            self.configured = ConfiguredNode(self, self.config, odometry, calibration)
        except Exception as error:
            kind = "" if isinstance(error, MacvoError) else f"{type(error).__name__}: "
            self.get_logger().error(f"cannot configure: {kind}{error}")
            return TransitionCallbackReturn.FAILURE
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Subscribe and begin to track."""
        try:
            assert self.configured is not None
            self.configured.start()
        except Exception as error:
            self.get_logger().error(f"cannot activate: {type(error).__name__}: {error}")
            return TransitionCallbackReturn.ERROR
        return super().on_activate(state)

    def on_deactivate(self, state: Any) -> TransitionCallbackReturn:
        """Unsubscribe and let the worker finish."""
        assert self.configured is not None
        self.configured.stop()
        return super().on_deactivate(state)

    def on_cleanup(self, state: Any) -> TransitionCallbackReturn:
        """Free the network and everything announced."""
        self.release()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: Any) -> TransitionCallbackReturn:
        """Stop whatever runs."""
        self.release()
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: Any) -> TransitionCallbackReturn:
        """Back to unconfigured, so that the node can be configured again."""
        self.release()
        return TransitionCallbackReturn.SUCCESS

    def release(self) -> None:
        """Stop, and give back what the network held, on the GPU too."""
        if self.configured is None:
            return
        self.configured.close()
        self.configured = None
        gc.collect()
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _on_set_parameters(self, changes: list[Any]) -> SetParametersResult:
        ours = {change.name: change.value for change in changes if change.name in parameters.LEAVES}
        for name, value in ours.items():
            reason = parameters.why_not(name, value, configured=self.configured is not None)
            if reason:
                return SetParametersResult(successful=False, reason=reason)
        if self.configured is not None and ours:
            self.config = parameters.changed(self.config, ours)
            self.configured.change(self.config)
        return SetParametersResult(successful=True)


def calibration_from_file(config: NodeConfig) -> StereoInput | None:
    """The calibration of `calibration_file`, checked against `rectify`; None without a file."""
    if not config.calibration_file:
        return None
    stereo = StereoInput.from_calibration(load_calibration(config.calibration_file))
    if config.rectify != (stereo.rectifier is not None):
        kind = "raw" if stereo.rectifier is not None else "rectified"
        raise CalibrationError(
            f"{config.calibration_file} describes {kind} cameras, but rectify is {str(config.rectify).lower()}; "
            "make them agree"
        )
    return stereo
