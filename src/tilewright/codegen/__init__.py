"""From scheduled IR to LLVM text and on to an object."""
