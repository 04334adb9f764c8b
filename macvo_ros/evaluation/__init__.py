"""Accuracy and honesty of a trajectory, measured and shown."""
