"""`triton.language.extra.libdevice`: functions under the names of NVIDIA's library."""

from __future__ import annotations

from tilewright.language.extra.libdevice import *  # noqa: F403 - a namespace under another name
