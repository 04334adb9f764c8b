"""Training of the matching networks."""
