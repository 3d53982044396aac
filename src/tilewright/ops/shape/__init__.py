"""Moving elements without computing."""
