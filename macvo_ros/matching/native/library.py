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

"""The compiled kernels, where they were built: C in this folder, called through ctypes, without the interpreter lock.

Every kernel has a twin in numpy or PyTorch, named in its comment, that says what it computes and runs where the library
is missing (no C compiler when the package was installed) or MACVO_NATIVE=0 is set; both agree to float32 rounding
(`test/test_native.py`). `pip install`, `colcon build` and `python setup.py build_ext --inplace` build it.
"""

from __future__ import annotations

import ctypes
import logging
import os
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

VERSION = 4
"""KERNELS_VERSION of the sources beside this file (kernels.h)."""

_ARRAYS = {
    letter: np.dtype(kind)
    for letter, kind in zip("fFsdDlhbB", ("f4", "f4", "f4", "f8", "f8", "i8", "i2", "u1", "u1"), strict=True)
}
"""Kinds of arrays by their letter in a signature. F, D, B: may be None; s: may have strides, which C is told."""
_NUMBERS: dict[str, Any] = {"I": ctypes.c_int64, "i": ctypes.c_int, "x": ctypes.c_float, "y": ctypes.c_double}
SIGNATURES = {
    "macvo_linearise": "f II l I II i ff ffff",
    "macvo_find_patches": "f II II ii xx fff l ff ff FF xx ff ffff",
    "macvo_fit_planes": "s II l i d I ii ff ff d",
    "macvo_lite_network": "f III f l xx f",
    "macvo_semi_global": "bb II i I iii h",
    "macvo_fill_rows": "h II i f b",
    "macvo_sub_pixel": "bb II ii xx f",
    "macvo_texture": "b I b ff II ff",
    "macvo_evidence": "fff FF x B i II f",
    "macvo_rigid_flow": "f II fff f",
    "macvo_whiten": "dddd I dd y ddd",
    "macvo_pose_system": "ddddd I d y dd",
    "macvo_minimise": "ddddd I DD yyy i dd l",
    "macvo_fit_motion": "ddd I i yyyy d",
    "macvo_window_system": "d II l dddddd d yy ddd y dd",
    "macvo_expected_views": "dddd I ldd d I l yy d",
    "macvo_window_minimise": "d II l dddddd d yy I dddd yyi ddd dd l",
    "macvo_calibration_shift": "ddd i d I d",
    "macvo_appearance": "fff ff B II xx i b ff",
}
"""Arguments of each kernel, in order."""

_LENT = 1 << 23
"""Bytes that each thread keeps for its kernels to work in: enough for the work size; chosen."""

_lent_to: dict[int, threading.local] = {}
"""That memory, of each thread, by the library's handle: whoever loads a library twice has but one, which stays lent."""

_log = logging.getLogger(__name__)


class Kernels:
    """The functions of a loaded library; the kinds of their arguments are checked before C sees them."""

    def __init__(self, path: Path) -> None:
        """OSError or AttributeError where the file is no library, or not one of this version."""
        library = ctypes.CDLL(str(path))
        if library.macvo_kernels_version() != VERSION or not all(hasattr(library, name) for name in SIGNATURES):
            raise OSError(f"{path.name} was built from other sources; install the package anew (docs/install.md)")
        self._lend = library.macvo_lend
        self._lent = _lent_to.setdefault(library._handle, threading.local())
        self._lend.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        self._functions = {}
        for name, signature in SIGNATURES.items():
            function, letters = getattr(library, name), signature.replace(" ", "")
            function.argtypes = [_NUMBERS.get(letter, ctypes.c_void_p) for letter in letters]
            function.restype = ctypes.c_int
            self._functions[name] = function, letters

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call a kernel with contiguous arrays and numbers; TypeError where they are others than it takes."""
        function, letters = self._functions[name]
        if len(arguments) != len(letters):
            raise TypeError(f"{name} takes {len(letters)} arguments, got {len(arguments)}")
        if not hasattr(self._lent, "memory"):
            self._lent.memory = np.empty(_LENT, np.uint8)
            self._lend(self._lent.memory.ctypes.data, _LENT)
        values = [_passed(name, letter, argument) for letter, argument in zip(letters, arguments, strict=True)]
        if function(*values):
            raise MemoryError(f"no memory for {name}")


def _passed(name: str, letter: str, argument: Any) -> Any:
    """A number as it is, an array as its address."""
    kind = _ARRAYS.get(letter)
    if kind is None or (argument is None and letter in "FDB"):
        return argument
    if (argument.dtype is not kind and argument.dtype != kind) or not (argument.flags.c_contiguous or letter == "s"):
        raise TypeError(f"{name} takes contiguous arrays of {kind}, got {argument.dtype}")
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(argument))  # half the time of the other way
    except (TypeError, ValueError):  # read-only, or empty
        return argument.__array_interface__["data"][0]


@lru_cache(maxsize=1)
def kernels() -> Kernels | None:
    """The compiled kernels; None, with one line in the log, where there are none."""
    why = why_missing()
    if why:
        _log.warning("matching runs without its compiled kernels, at about two thirds of the speed: %s", why)
        return None
    return _loaded()


def why_missing() -> str:
    """Why there are no compiled kernels; empty where there are."""
    if os.environ.get("MACVO_NATIVE") == "0":
        return "MACVO_NATIVE=0 is set"
    try:
        _loaded()
    except (OSError, AttributeError) as error:
        return str(error)
    return ""


@lru_cache(maxsize=1)
def _loaded() -> Kernels:
    folder = Path(__file__).parent
    files = sorted(folder.glob("_kernels*.so"), key=lambda file: file.stat().st_mtime, reverse=True)
    if not files:
        raise OSError("they were not built; install the package with a C compiler at hand (docs/install.md)")
    return Kernels(files[0])
