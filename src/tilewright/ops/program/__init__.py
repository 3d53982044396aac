"""Where a program runs: its place in the grid, and its target."""
