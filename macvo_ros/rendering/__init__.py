"""Synthetic worlds with exact truth."""
