"""Layout assignment: which thread holds which element of every tile (T0 to T1)."""
