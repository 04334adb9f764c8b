"""The `lite` matcher: DIS flow and a compact network that knows where it is wrong, in real time on a CPU."""
