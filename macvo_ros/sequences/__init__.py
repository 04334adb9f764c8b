"""Readers of stereo sequences on disk."""
