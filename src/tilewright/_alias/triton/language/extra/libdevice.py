"""`triton.language.extra.libdevice`: functions under the names of NVIDIA's library."""

from __future__ import annotations

import tilewright.language.extra.libdevice as _libdevice

from ..._names import public_names, refuse

globals().update(public_names(_libdevice, __name__, _libdevice.__all__))

__getattr__ = refuse(__name__, {})
