"""A simulator of emitted GPU programs: LLVM text of one thread, run for all threads of a cta."""
