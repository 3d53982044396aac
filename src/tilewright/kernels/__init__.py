"""The library of tuned kernels."""
