"""The target that writes kernels in MLIR's core dialects, for other compilers and as a check.

`emit` is the way from T0 to text, `rules` what each op becomes, `tools` stock MLIR, `driver` what
runs its output on the CPU's pool of threads.
"""
