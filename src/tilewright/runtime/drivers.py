"""Drivers by target name, one each per process, loaded on the first launch."""

from __future__ import annotations

import functools
import importlib

from tilewright.runtime.driver import Driver


@functools.cache
def load_driver(target: str) -> Driver:
    """The driver of a target."""
    return importlib.import_module(f"tilewright.targets.{target}.driver").make_driver()
