"""Printing, assertions, assumptions, hints and barriers."""
