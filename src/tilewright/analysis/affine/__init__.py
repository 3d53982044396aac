"""What tiles of integers and pointers are as affine functions of their indices."""
