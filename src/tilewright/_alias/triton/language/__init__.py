"""`triton.language`: every name of `tilewright.language`."""

from __future__ import annotations

from tilewright.language import *  # noqa: F403 - a namespace under another name

from . import core as core
from . import extra as extra
from . import math as math
from . import standard as standard
