"""Helpers for users' tests and benchmarks."""
