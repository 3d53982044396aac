"""Types, op base classes, effects and levels of the tile IR."""
