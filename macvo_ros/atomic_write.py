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

"""Write a file whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from macvo_ros.errors import MacvoError


def atomic_write(path: str | Path, content: str | bytes) -> None:
    """Write `content` to a temporary file beside `path`, then rename: readers see the old file or the new one."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(temporary, path)
    except OSError as error:
        raise MacvoError(f"{path}: cannot write the file ({error.strerror or error})") from None
    finally:
        temporary.unlink(missing_ok=True)
