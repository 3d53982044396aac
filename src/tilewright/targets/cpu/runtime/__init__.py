"""What runs a compiled grid: the thread pool, launches, interrupts and the status of a kernel."""
