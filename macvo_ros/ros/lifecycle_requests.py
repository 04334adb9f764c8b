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

"""Lifecycle requests that cannot be granted are refused with a sentence, where rclpy leaves them unanswered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.lifecycle import LifecycleNode


def refuse_impossible_requests(node: LifecycleNode) -> None:
    """Answer a transition that does not begin in the node's state with success=false, and log why.

    Up to Jazzy rclpy raises inside the service for such a request, and the client waits for an answer for ever.
    """
    service = node._service_change_state
    grant: Callable[[Any, Any], Any] = service.callback

    def answer(request: Any, response: Any) -> Any:
        machine = node._state_machine
        possible = {number: label for number, label, *_ in machine.available_transitions}
        wanted = request.transition.label or request.transition.id  # as in rclpy: the label goes before the number
        if wanted in possible.values() or wanted in possible:
            return grant(request, response)
        state = machine.current_state[1]
        node.get_logger().warning(f"lifecycle request refused: {why_refused(wanted, state, list(possible.values()))}")
        response.success = False
        return response

    service.callback = answer


def why_refused(wanted: str | int, state: str, possible: list[str]) -> str:
    """One sentence on a transition (label or number) that does not begin in `state`, and what to do instead."""
    name = repr(wanted) if isinstance(wanted, str) else _NAMES.get(wanted, f"number {wanted}")
    text = f"{name} is not possible while the node is {state} (possible: {', '.join(possible) or 'nothing'})"
    if state == "active" and name in _STARTS:
        text += "; it started itself, set autostart to false where a lifecycle manager does that"
    return text


_NAMES = {1: "'configure'", 2: "'cleanup'", 3: "'activate'", 4: "'deactivate'"} | dict.fromkeys((5, 6, 7), "'shutdown'")
"""Transitions of lifecycle_msgs/Transition that a client asks for."""

_STARTS = ("'configure'", "'activate'")
