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

"""Fixtures of the tests with real processes."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


def pytest_collection_modifyitems(items: list[Any]) -> None:
    missing = [name for name in ("rclpy", "macvo_ros.msg") if importlib.util.find_spec(name) is None]
    if missing:
        skip = pytest.mark.skip(reason=f"{' and '.join(missing)} not installed; run `make build`")
        for item in items:
            if Path(item.fspath).parent == Path(__file__).resolve().parent:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def frames() -> list[Any]:
    """Twelve small frames of a rendered room, stamped with a time of today to the nanosecond."""
    from macvo_ros.geometry.camera import StereoCamera
    from macvo_ros.rendering.sequence import RenderedSequence

    camera = StereoCamera(220.0, 220.0, 159.5, 119.5, 0.12, 320, 240)
    sequence = RenderedSequence("shapes", 12, seed=3, camera=camera)
    start = 1_790_000_000_123_456_789
    return [dataclasses.replace(sequence[i], stamp=start + int(sequence.stamps[i])) for i in range(12)]


@pytest.fixture(scope="session")
def ros(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A ROS context on loopback in a domain of its own."""
    import rclpy
    from harness import ros_environment

    environment = ros_environment(tmp_path_factory.mktemp("ros_log"))
    before = {key: os.environ.get(key) for key in environment}
    os.environ.update(environment)
    rclpy.init()
    yield
    rclpy.try_shutdown()
    for key, value in before.items():
        if value is None:
            del os.environ[key]
        else:
            os.environ[key] = value


@pytest.fixture(scope="session")
def start_node(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Start nodes in processes of their own; they are stopped at the end of the session."""
    from harness import NodeProcess

    running: list[NodeProcess] = []

    def start(name: str, remap: dict[str, str] | None = None, **parameters: Any) -> NodeProcess:
        parameters.setdefault("matcher", "classic")  # the quickest to start, and the same whatever the default
        # Sent once, an image must arrive: best effort loses some on a busy machine, and auto begins with that until it
        # has seen the publishers. Tests of these ask for them.
        parameters.setdefault("reliability", "reliable")
        node = NodeProcess(name, tmp_path_factory.mktemp(name) / "output.txt", remap, **parameters)
        running.append(node)
        return node

    yield start
    for node in running:
        node.stop()


@pytest.fixture
def make_peer(ros: None) -> Iterator[Callable[[str], Any]]:
    """Peers in the namespace of a node; closed after the test."""
    from harness import Peer

    peers: list[Peer] = []

    def make(name: str) -> Peer:
        peers.append(Peer(name))
        return peers[-1]

    yield make
    for peer in peers:
        peer.close()
