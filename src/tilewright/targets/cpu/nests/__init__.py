"""Nests: loops over the elements of tiles, vector by vector."""
