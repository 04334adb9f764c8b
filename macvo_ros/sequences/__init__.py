"""Readers of stereo sequences on disk."""

from macvo_ros.sequences.recognise import LAYOUTS, open_sequence, recognise
from macvo_ros.sequences.sequence import Sequence

__all__ = ["LAYOUTS", "Sequence", "open_sequence", "recognise"]
