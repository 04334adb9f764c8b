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

"""YAML without its surprises: values only, no aliases, no depth without end, one kind of error."""

from __future__ import annotations

from typing import Any

import yaml

_MAX_DEPTH = 20
_MAX_LENGTH = 1 << 20


def load_plain_yaml(text: str) -> Any:
    """The content of a YAML text; raises ValueError with one line about why it is none.

    A few lines of aliases stand for gigabytes once somebody walks through them, so aliases are refused, as is nesting
    that no file for people has. No tag makes an object: the constructor is PyYAML's safe one.
    """
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"{len(text)} characters, which is more than {_MAX_LENGTH}")
    try:
        return yaml.load(text, Loader=_PlainLoader)
    except Exception as error:  # PyYAML lets ValueError, RecursionError, TypeError and more escape on odd texts
        raise ValueError((" ".join(str(error).split()) or type(error).__name__)[:200]) from None


class _PlainLoader(yaml.SafeLoader):
    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not allowed here; write the value out")
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise yaml.YAMLError(f"nested deeper than {_MAX_DEPTH} levels")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node
