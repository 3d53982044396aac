"""What the simulator knows of LLVM's and NVVM's intrinsics, one module per family."""
