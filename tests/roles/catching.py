"""What catches a mutant: the checks of T2, the run of the protocol, the interpreter with data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tests.roles.attention import Attention
from tests.roles.gemm import Gemm
from tests.roles.mutants import mutants_of
from tests.roles.running import interpret
from tilewright.machine.gpus import SM_90A
from tilewright.ops.function import find_kernel
from tilewright.schedule.protocol.check import check_protocol
from tilewright.schedule.protocol.run import run_protocol
from tilewright.schedule.protocol.scalars import Launch
from tilewright.support.errors import KernelFault, ProtocolBroken

BF16 = ml_dtypes.bfloat16


@dataclass(frozen=True)
class Subject:
    """A program with the launches that a run of its protocol tries, and one with data."""

    program: Gemm | Attention
    launches: tuple[Launch, ...]
    arguments: Callable[[], list[object]]
    expected: np.ndarray
    output: int
    tolerance: float


def gemm(program: Gemm) -> Subject:
    """Steps around the number of slots, one to three tiles; data of four tiles."""
    n, rows, columns = program.slots, program.rows, program.columns
    launches = tuple(
        Launch({3: rows * tiles, 4: columns, 5: program.depth * steps})
        for tiles in (1, 2, 3)
        for steps in sorted({0, 1, n - 1, n, n + 1, 2 * n + 1})
    )
    m, width, k = 2 * rows, 2 * columns, program.depth * (n + 1)
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, shape).astype(BF16) for shape in ((m, k), (k, width)))
    expected = (a.astype(np.float32) @ b.astype(np.float32)).astype(BF16)

    def arguments() -> list[object]:
        return [a, b, np.full((m, width), np.nan, BF16), m, width, k]

    return Subject(program, launches, arguments, expected, 2, 0.0)


def attention(program: Attention) -> Subject:
    """Steps around the number of slots; data of two programs."""
    keys, n, depth = program.keys, program.slots, program.depth
    launches = tuple(
        Launch({4: keys * steps, 5: keys * steps, 6: depth})
        for steps in sorted({1, max(1, n - 1), n, n + 1, 2 * n + 1})
    )
    length = 2 * program.rows
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((length, depth)).astype(BF16) for _ in range(3))
    scores = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(depth)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = (weights / weights.sum(-1, keepdims=True)) @ v.astype(np.float64)

    def arguments() -> list[object]:
        return [q, k, v, np.full((length, depth), np.nan, BF16), length, length, depth]

    return Subject(program, launches, arguments, expected, 3, 4e-3)


@dataclass(frozen=True)
class Caught:
    """Who noticed, and what was said."""

    stage: str
    message: str


def catch(subject: Subject, module: ModuleOp) -> Caught | None:
    """Who notices that something is wrong with a module; None where nobody does."""
    kernel = find_kernel(module)
    try:
        check_protocol(kernel, SM_90A)
    except ProtocolBroken as error:
        return Caught("checks", str(error))
    try:
        _run_all(module, subject.launches)
    except ProtocolBroken as error:
        return Caught("run", str(error))
    return _with_data(subject, module)


def require_all_caught(subject: Subject, module: ModuleOp, fewest: int) -> None:
    """Somebody notices each of at least `fewest` mutants, and seldom by wrong elements alone."""
    stages: Counter[str] = Counter()
    unnoticed: list[str] = []
    for mutant in mutants_of(module):
        changed = module.clone()
        mutant.apply(changed)
        caught = catch(subject, changed)
        if caught is None:
            unnoticed.append(mutant.name)
        else:
            stages[caught.stage] += 1
    assert not unnoticed
    assert stages.total() >= fewest
    assert stages["data"] < stages.total() / 3


def _run_all(module: ModuleOp, launches: Sequence[Launch]) -> None:
    for launch in launches:
        run_protocol(find_kernel(module), launch)


def _with_data(subject: Subject, module: ModuleOp) -> Caught | None:
    arguments = subject.arguments()
    programs = 1 if isinstance(subject.program, Gemm) else 2
    try:
        interpret(module, arguments, programs)
    except KernelFault as error:
        return Caught("data", str(error))
    found = np.asarray(arguments[subject.output]).astype(np.float64)
    wanted = subject.expected.astype(np.float64)
    error = np.linalg.norm(found - wanted) / max(1e-9, float(np.linalg.norm(wanted)))
    return None if error <= subject.tolerance else Caught("data", f"wrong elements: {error}")
