"""`triton._C`: what clients find in Triton's library of C++."""

from __future__ import annotations

from . import libtriton as libtriton
