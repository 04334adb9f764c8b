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
