"""Atomic reads and writes of memory."""
