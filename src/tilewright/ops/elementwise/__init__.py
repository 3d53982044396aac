"""Elementwise arithmetic, comparison, choice, conversion and math."""
