"""One folder per target."""
