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

"""Typed settings that know their own description, bounds and choices.

Errors, ROS parameter descriptors and docs/parameters.md all come from these declarations.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from macvo_ros.errors import ConfigError
from macvo_ros.settings.plain_yaml import load_plain_yaml

T = TypeVar("T")


def setting(
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
    live: bool = False,
) -> Any:
    """Declare one setting: its default, one sentence about it, what it may be, whether it may change live."""
    return field(default=default, metadata={"doc": doc, "low": low, "high": high, "choices": choices, "live": live})


def section(cls: type) -> Any:
    """Declare a group of settings."""
    return field(default_factory=cls)


@dataclass(frozen=True)
class Setting:
    """One leaf of the tree, as documentation and ROS parameter descriptors need it."""

    key: str
    type: type
    default: Any
    doc: str
    low: float | None
    high: float | None
    choices: tuple[str, ...] | None
    live: bool

    def check(self, value: Any) -> Any:
        """Return `value` as this setting's type, or raise a ConfigError that names key, value and what is allowed."""
        wrong = ConfigError(f"{self.key}: expected {self.allowed()}, got {_shown(value)}")
        if self.type is bool:
            if not isinstance(value, bool):
                raise wrong
            return value
        if isinstance(value, bool):
            raise wrong
        if self.type is float and isinstance(value, (int, float)):
            value = float(value)
        elif self.type is int and isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, self.type):
            raise wrong
        if self.choices is not None and value not in self.choices:
            raise wrong
        if isinstance(value, (int, float)) and not (
            (self.low is None or value >= self.low) and (self.high is None or value <= self.high) and abs(value) < 1e300
        ):
            raise wrong
        return value

    def allowed(self) -> str:
        """What this setting may be, in words."""
        if self.choices is not None:
            return "one of " + ", ".join(self.choices)
        name = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}[self.type]
        low, high = (
            None if bound is None else str(int(bound)) if self.type is int else f"{bound:g}"
            for bound in (self.low, self.high)
        )
        if low is not None and high is not None:
            return f"{name} from {low} to {high}"
        if low is not None:
            return f"{name} of at least {low}"
        return name if high is None else f"{name} of at most {high}"


def _shown(value: Any) -> str:
    """A value for an error; whole numbers of thousands of digits have no text."""
    try:
        return " ".join(repr(value).split())[:120]
    except ValueError:
        return f"a {type(value).__name__}"


def settings(cls: type, prefix: str = "") -> Iterator[Setting]:
    """Every leaf of a configuration dataclass, with dotted keys, in the order of declaration."""
    hints = get_type_hints(cls)
    for item in fields(cls):
        key = prefix + item.name
        if is_dataclass(hints[item.name]):
            yield from settings(hints[item.name], key + ".")
        else:
            yield Setting(key=key, type=hints[item.name], default=item.default, **item.metadata)


def build(cls: type[T], values: Mapping[str, Any]) -> T:
    """Build a configuration dataclass from dotted keys; whatever is not named keeps its default."""
    known = {leaf.key: leaf for leaf in settings(cls)}
    for key in values:
        if key not in known:
            near = similar(key, known)
            hint = f"; did you mean {near}?" if near else f"; known keys: {', '.join(known)}"
            raise ConfigError(f"unknown configuration key {key!r}{hint}")
    return _build(cls, {key: known[key].check(value) for key, value in values.items()}, "")


def similar(key: str, known: Iterable[str]) -> str:
    """The known key that an unknown one may be a slip of; empty when none is near."""
    return next(iter(difflib.get_close_matches(key, known, n=1)), "")


def _build(cls: type[T], values: Mapping[str, Any], prefix: str) -> T:
    hints = get_type_hints(cls)
    arguments: dict[str, Any] = {}
    for item in fields(cls):  # type: ignore[arg-type]
        key = prefix + item.name
        if is_dataclass(hints[item.name]):
            arguments[item.name] = _build(hints[item.name], values, key + ".")
        elif key in values:
            arguments[item.name] = values[key]
    return cls(**arguments)


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mapping to dotted keys: {"keypoints": {"count": 9}} to {"keypoints.count": 9}."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def to_flat(config: Any) -> dict[str, Any]:
    """A configuration object as dotted keys, the inverse of `build`."""
    return flatten(dataclasses.asdict(config))


def parse_assignments(assignments: list[str]) -> dict[str, Any]:
    """Read the command line's `key=value` words; values are YAML scalars."""
    flat: dict[str, Any] = {}
    for word in assignments:
        key, separator, text = word.partition("=")
        if not separator or not key:
            raise ConfigError(f"expected key=value, got {word!r} (for example keypoints.count=300)")
        try:
            flat[key.strip()] = load_plain_yaml(text)
        except ValueError:
            flat[key.strip()] = text
    return flat


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a configuration file into dotted keys."""
    try:
        tree = load_plain_yaml(path.read_text())
    except OSError as error:
        raise ConfigError(f"cannot read configuration file {path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if tree is None:
        return {}
    if not isinstance(tree, Mapping):
        raise ConfigError(f"{path}: expected keys and values at the top, got a {type(tree).__name__}")
    return flatten(tree)
