"""Software pipelining: what a loop does ahead of itself; see docs/internals/pipelining.md."""
