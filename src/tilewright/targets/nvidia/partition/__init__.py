"""Roles on an NVIDIA GPU: their tensor maps, and the rings that channels become."""
