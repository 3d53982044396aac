"""Foreign code and scalar functions applied to each element."""
