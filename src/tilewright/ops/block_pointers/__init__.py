"""Block pointers: a base, a shape, strides, and the offsets of one block."""
