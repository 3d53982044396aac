"""From a scheduled module to the LLVM text of one thread: for targets with lanes and warps."""
