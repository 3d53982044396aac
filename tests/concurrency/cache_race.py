"""Processes that share one cache directory and are killed; run as a program, prints JSON.

    python -m tests.concurrency.cache_race race DIRECTORY SECONDS SEED
    python -m tests.concurrency.cache_race crash DIRECTORY

It is a program of its own since it forks, which a test process with threads should not.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import struct
import sys
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

from tests.concurrency.faulty_os import FaultyOs
from tilewright.runtime import directory as directory_module
from tilewright.runtime.cache import DiskCache
from tilewright.runtime.fingerprint import digest

NUM_WORKERS = 16
# So many are killed at least, however slow the machine is.
LEAST_STARTED = 30
KEYS = [digest(f"key {i}") for i in range(20)]
# The keys hold 60 KB on average: every sweep has something to remove.
LIMIT_BYTES = 25_000
# Key number, writer, number of the put, bytes of data.
STAMP = struct.Struct("<IIII")
PUT, READ = b"P", b"R"


@dataclass(frozen=True)
class History:
    """What all workers did, appended to one file in records that are written whole."""

    path: Path

    def add(self, kind: bytes, stamp: bytes) -> None:
        """Append one record; a put is recorded before it starts."""
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, kind + stamp)
        os.close(file)

    def stamps(self, kind: bytes) -> list[bytes]:
        """The stamps of one kind of record."""
        data = self.path.read_bytes()
        size = 1 + STAMP.size
        records = [data[at : at + size] for at in range(0, len(data), size)]
        return [record[1:] for record in records if record[:1] == kind]


def sections_of(stamp: bytes) -> dict[str, bytes]:
    """The one value that a writer puts for `stamp`."""
    size_bytes = STAMP.unpack(stamp)[3]
    return {"stamp": stamp, "data": hashlib.shake_128(stamp).digest(size_bytes)}


class Worker:
    """Random operations on one cache, each read checked against what its writer put."""

    def __init__(self, root: Path, writer: int, seed: int) -> None:
        self.cache = DiskCache(root / "cache", LIMIT_BYTES)
        self.history = History(root / "history")
        self.root = root
        self.writer = writer
        self.random = random.Random(f"{seed} {writer}")
        self.num_puts = 0

    def step(self) -> None:
        """One random operation."""
        number = self.random.randrange(len(KEYS))
        choice = self.random.random()
        if choice < 0.55:
            self.read(number)
        elif choice < 0.95:
            self.put(number)
        elif choice < 0.98:
            self.age(number)
        elif choice < 0.998:
            assert self.cache.verify() == []
            assert all(entry.sections for entry in self.cache.entries())
        else:
            self.cache.clear()

    def put(self, number: int) -> None:
        """Put a value that nobody else puts."""
        self.num_puts += 1
        size_bytes = self.random.randrange(6000)
        stamp = STAMP.pack(number, self.writer, self.num_puts, size_bytes)
        self.history.add(PUT, stamp)
        self.cache.put(KEYS[number], sections_of(stamp))

    def read(self, number: int) -> None:
        """Read a key: a miss, or all of what one put wrote."""
        sections = self.cache.get(KEYS[number])
        if sections is None:
            return
        stamp = sections["stamp"]
        assert STAMP.unpack(stamp)[0] == number, "the value of another key"
        assert sections == sections_of(stamp), "a mixed or cut value"
        self.history.add(READ, stamp)

    def age(self, number: int) -> None:
        """Make an entry look unused for two hours, so that a sweep may take it."""
        then = time.time_ns() - 7200 * 10**9
        try:
            os.utime(self.root / "cache" / f"{KEYS[number]}.tile", ns=(then, then))
        except FileNotFoundError:
            return


def start_worker(root: Path, writer: int, seed: int) -> int:
    """Fork a worker that runs until it is killed or finds a violation."""
    child = os.fork()
    if child:
        return child
    try:
        worker = Worker(root, writer, seed)
        while True:
            worker.step()
    except BaseException:
        with open(root / "violations", "a") as file:
            file.write(traceback.format_exc())
    os._exit(1)


def race(root: Path, seconds: float, seed: int) -> dict[str, object]:
    """Run, kill and replace workers, so long and so often; returns counts and every violation."""
    chooser = random.Random(seed)
    deadline = time.monotonic() + seconds
    children = [start_worker(root, writer, seed) for writer in range(NUM_WORKERS)]
    num_started = NUM_WORKERS
    here = Worker(root, 1_000_000, seed)
    try:
        while time.monotonic() < deadline or num_started <= LEAST_STARTED:
            for _ in range(chooser.randrange(12)):  # its own work is the pause between kills
                here.step()
            victim = chooser.randrange(NUM_WORKERS)
            kill(children[victim])
            children[victim] = start_worker(root, num_started, seed)
            num_started += 1
    finally:
        for child in children:
            kill(child)
    return report(root, here.history, num_started)


def report(root: Path, history: History, num_started: int) -> dict[str, object]:
    """Counts of the finished race, and the violations that workers or the history show."""
    violations = root / "violations"
    found = [violations.read_text()] if violations.exists() else []
    puts, reads = history.stamps(PUT), history.stamps(READ)
    found += [f"read what nobody put: {stamp!r}" for stamp in sorted(set(reads) - set(puts))]
    after = Worker(root, 1_000_001, 0)
    found += [f"damaged at the end: {key}" for key in after.cache.verify()]
    for number in range(len(KEYS)):
        after.read(number)
    return {
        "violations": found,
        "puts": len(puts),
        "hits": len(reads),
        "killed": num_started,
        "size_bytes": sum(entry.size_bytes for entry in after.cache.entries()),
    }


def kill(child: int) -> None:
    """Kill a worker and take its status."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def crash(root: Path) -> dict[str, object]:
    """Kill a put before and after each of its system calls; check what is left."""
    num_points = 0
    for name in ("before", "after"):
        for half_writes in (False, True):
            step = 0
            while crash_at(root / f"{name}{half_writes}{step}", name, half_writes, step):
                step += 1
            num_points += step
    return {"violations": [], "points": num_points}


def crash_at(root: Path, name: str, half_writes: bool, step: int) -> bool:
    """Whether a put died at this step; raises where what it left is not whole."""

    def die(_: str, count: int) -> None:
        if count == step:
            os.kill(os.getpid(), signal.SIGKILL)

    old, new = {"data": b"old" * 100}, {"data": b"new" * 200}
    DiskCache(root).put(KEYS[0], old)
    child = os.fork()
    if not child:
        faulty = FaultyOs(**{name: die}, half_writes=half_writes)
        setattr(directory_module, "os", faulty)  # noqa: B010  # a module, not its own import
        DiskCache(root).put(KEYS[0], new)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    has_died = os.WIFSIGNALED(status)
    assert has_died or os.WEXITSTATUS(status) == 0
    found = DiskCache(root).get(KEYS[0])
    assert found == new if not has_died else found in (old, new), (name, step, found)
    assert DiskCache(root).verify() == []
    DiskCache(root).put(KEYS[0], new)
    assert DiskCache(root).get(KEYS[0]) == new
    return has_died


def main(arguments: list[str]) -> None:
    """Run one of the two programs and print its findings."""
    warnings.simplefilter("error")
    root = Path(arguments[1])
    if arguments[0] == "crash":
        findings = crash(root)
    else:
        findings = race(root, float(arguments[2]), int(arguments[3]))
    print(json.dumps(findings))


if __name__ == "__main__":
    main(sys.argv[1:])
