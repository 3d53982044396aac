"""`triton.language.math`: elementwise mathematics."""

from __future__ import annotations

from tilewright.language.math import *  # noqa: F403 - a namespace under another name
