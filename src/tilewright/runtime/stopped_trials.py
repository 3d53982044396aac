"""Trials of a tuner that stopped the GPU: named in the error, and left out by later processes.

A kernel that hangs or faults takes the context of its process with it, so nothing more can be
timed there. What its author wrote is reported each time. A schedule that the tuner added is
noted on disk, under the kernel, the compiler and the machine.
"""

from __future__ import annotations

from tilewright.runtime.cache import JsonValue, open_default
from tilewright.runtime.config import Config
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.fingerprint import compiler_fingerprint, digest
from tilewright.support.errors import KernelFault

_FORMAT = "tilewright-stopped-1"
TRIAL_SECONDS = 10
"""How long a program of an added schedule waits for a slot before it counts as hanging. Chosen,
not measured: a thousand times longer than any wait of a kernel that is worth tuning."""


def stopped_before(kernel: str | None) -> frozenset[str]:
    """The texts of the configurations that stopped a GPU with a kernel of these sources."""
    found = None if kernel is None else open_default().get_json(_key(kernel))
    return frozenset(map(str, found)) if isinstance(found, list) else frozenset()


def config_text(config: Config) -> str:
    """What tells a configuration from others of its kernel."""
    return f"{config} {sorted(config.options())}"


def note_stopped(kernel: str | None, config: Config) -> None:
    """Have later processes leave a configuration out."""
    if kernel is not None:
        known: list[JsonValue] = [*sorted(stopped_before(kernel) | {config_text(config)})]
        open_default().put_json(_key(kernel), known)


def fault_behind(error: Exception) -> KernelFault | None:
    """The fault that an error of a launch or of a library stands for; None where it is none."""
    if isinstance(error, KernelFault):
        return error
    return load_driver("nvidia").pending_fault()


def _key(kernel: str) -> str:
    features = sorted(load_driver("nvidia").machine().to_features().items())
    return digest(_FORMAT, compiler_fingerprint(), kernel, repr(features))
