"""The NVIDIA target: from T0 to machine code for Hopper, and its driver."""
