"""The surface that kernels import, free of any compiler dependency."""
