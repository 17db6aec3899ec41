"""Tries to break a pipeline: runs its kernels under crashes, pauses and lost answers, and judges the result."""
