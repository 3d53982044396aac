"""Tensor descriptors by the copy engine (TMA): from T0 to the ops that a thread issues."""
