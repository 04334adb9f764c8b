"""Matching: from images to disparity, flow and how far to trust them."""
