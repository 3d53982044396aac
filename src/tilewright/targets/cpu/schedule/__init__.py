"""How tiles of a kernel become nests and products: what is fused, what lies in memory, where."""
