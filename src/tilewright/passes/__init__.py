"""T0 to T0 passes, one file one pass."""
