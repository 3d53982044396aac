"""Tensor descriptors: a tensor in memory, read and written block by block."""
