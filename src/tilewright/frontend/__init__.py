"""From a Python function to tile IR (T0)."""
