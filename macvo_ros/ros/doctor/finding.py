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

"""One sentence of the doctor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What was seen; cure: what to do about it, empty where nothing is wrong."""

    seen: str
    cure: str = ""

    @property
    def wrong(self) -> bool:
        """Whether something has to be done."""
        return bool(self.cure)


def as_text(title: str, findings: Iterable[Finding]) -> str:
    """A section for the terminal: each finding on a line, its cure below it."""
    lines = [title]
    for finding in findings:
        lines.append(f"  {'WRONG' if finding.wrong else 'ok   '}  {finding.seen}")
        if finding.wrong:
            lines.append(f"         -> {finding.cure}")
    return "\n".join(lines)
