"""Measurements of Tilewright beside its peers."""
