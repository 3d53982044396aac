"""What each LLVM instruction computes, one module per family."""
