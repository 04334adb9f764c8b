"""Which device networks run on."""

from __future__ import annotations

import torch

from macvo_ros.errors import ConfigError


def choose_device(name: str) -> torch.device:
    """`auto` (CUDA when present), `cpu`, `cuda` or `cuda:N`; anything absent or unknown is refused."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device: expected auto, cpu, cuda or cuda:N, got {name!r}")
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            raise ConfigError(f"device: {name} was asked for, but torch sees {count} CUDA devices; use auto or cpu")
    return device
