"""`triton.language.standard`: the language again, under the module that some scripts name."""

from __future__ import annotations

from tilewright.language import *  # noqa: F403 - a namespace under another name
