"""Functions beyond the common language."""
