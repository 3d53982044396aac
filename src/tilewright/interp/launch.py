"""The grid: which program runs when, and what happens when all of them wait.

Programs run one after another, x fastest. One that waits for another is parked and tried again
when memory has changed. With a seed, several programs are alive at once and the next step of a
random one is taken at each atomic.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from tilewright.interp.code import Pause, Running
from tilewright.interp.program import Machine, Program
from tilewright.ir.locations import describe, span_of
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import Deadlock

_PATIENCE = 10
"""How often a waiting program is tried again although memory has not changed.

A loop that counts its attempts may give up by itself.
"""
_MAX_ALIVE = 16


@dataclass
class _Live:
    """A program that has started: its generator, and memory's version when it was parked."""

    program: Program
    running: Running
    parked_at: int | None = None
    attempts: int = 0


def run_in_order(machine: Machine, programs: Iterator[tuple[Program, Running]]) -> None:
    """Run each program as far as it goes before the next one starts."""
    parked: list[_Live] = []
    while True:
        live = _ready(machine, parked) or _start(programs) or _try_again(machine, parked)
        if live is None:
            return
        if not _advance(machine, live):
            parked.append(live)


def _start(programs: Iterator[tuple[Program, Running]]) -> _Live | None:
    started = next(programs, None)
    return None if started is None else _Live(*started)


def _ready(machine: Machine, parked: list[_Live]) -> _Live | None:
    """The first parked program that has something new to see."""
    for position, live in enumerate(parked):
        if live.parked_at != machine.memory.version:
            live.attempts = 0
            return parked.pop(position)
    return None


def _try_again(machine: Machine, parked: list[_Live]) -> _Live | None:
    """A parked program, although nothing has changed; a deadlock when it was tried enough."""
    if not parked:
        return None
    live = min(parked, key=lambda live: live.attempts)
    if live.attempts >= _PATIENCE:
        raise _deadlock(parked)
    live.attempts += 1
    parked.remove(live)
    return live


def _advance(machine: Machine, live: _Live) -> bool:
    """Run a program to its end (True) or until it waits (False)."""
    for pause in live.running:
        if pause is Pause.SPIN:
            live.parked_at = machine.memory.version
            return False
    return True


def _deadlock(parked: list[_Live]) -> Deadlock:
    lines: dict[str, list[tuple[int, int, int]]] = {}
    for live in parked:
        operation = live.program.last_read or live.program.operation
        assert operation is not None
        lines.setdefault(describe(operation), []).append(live.program.coordinates)
    waits = "; ".join(f"{_some(programs)} at {line}" for line, programs in lines.items())
    first = parked[0].program
    operation = first.last_read or first.operation
    assert operation is not None
    span, chain = span_of(operation)
    return Deadlock(f"every program that is left waits: {waits}", span=span, chain=chain)


def _some(programs: list[tuple[int, int, int]]) -> str:
    if len(programs) == 1:
        return f"program {programs[0]}"
    shown = ", ".join(map(str, programs[:3]))
    return f"programs {shown}{' and others' if len(programs) > 3 else ''}"


def run_interleaved(
    machine: Machine, programs: Iterator[tuple[Program, Running]], seed: int
) -> None:
    """Run programs in a random order that changes at each atomic."""
    chooser = random.Random(seed)
    alive: list[_Live] = []
    while True:
        while len(alive) < _MAX_ALIVE and (started := _start(programs)) is not None:
            alive.append(started)
        if not alive:
            return
        able = [live for live in alive if live.parked_at != machine.memory.version]
        live = chooser.choice(able) if able else _try_stuck(alive, programs)
        pause = next(live.running, None)
        if pause is None:
            alive.remove(live)
        elif pause is Pause.SPIN:
            live.attempts = live.attempts + 1 if live.parked_at == machine.memory.version else 0
            live.parked_at = machine.memory.version
        elif live.parked_at != machine.memory.version:
            live.parked_at = None


def _try_stuck(alive: list[_Live], programs: Iterator[tuple[Program, Running]]) -> _Live:
    """Which program to run when all that are alive wait: one that has not started, or any."""
    started = _start(programs)
    if started is not None:
        alive.append(started)
        return started
    live = min(alive, key=lambda live: live.attempts)
    if live.attempts >= _PATIENCE:
        raise _deadlock(alive)
    return live
