"""A call of a kernel with its arguments bound and specialised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tilewright.frontend.devices import DevicePlacement
from tilewright.frontend.program import Specialization
from tilewright.frontend.source import KernelSource
from tilewright.support.dataclass import dataclass
from tilewright.support.options import CompileOptions


@dataclass(frozen=True)
class Call:
    """A call bound and specialised: arguments by name, what the kernel is compiled for, where.

    `extras` are the keywords that are no parameters: compile options, and the stream.
    """

    arguments: Mapping[str, object]
    specialization: Specialization
    options: CompileOptions
    source: KernelSource
    placement: DevicePlacement = DevicePlacement()
    extras: Mapping[str, object] = field(default_factory=dict)
