"""Tiles out of nothing: constants, ranges, splats."""
