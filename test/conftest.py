"""Fixtures shared by all tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

SHARED = ROOT.parent / "shared" / "data"


@pytest.fixture
def shared_data() -> Path:
    """Folder with real sequences, where the machine has it."""
    if not SHARED.is_dir():
        pytest.skip("no real sequences beside the repository (../shared/data)")
    return SHARED
