"""What stands in the way of roles: each refusal names the line, and leaves the kernel alone."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, Values, blank
from tests.corpus.forming import formed, run_formed, run_tiles
from tests.corpus.run import tile_module
from tests.corpus.threads import gpu_request
from tilewright.ir.schedule_attributes import COMMON, annotate_schedule
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ir.text import print_module
from tilewright.jit import JITFunction
from tilewright.machine.gpus import SM_90A
from tilewright.ops.function import find_kernel
from tilewright.ops.memory.ir import LoadOp
from tilewright.support.dataclass import replace
from tilewright.targets.nvidia.partition.form import FormRoles, partition_remarks

AB = "ring ab tiles load#0 load#1 slots 2"


@tilewright.jit
def counted(a, b, c, n, M: tl.constexpr, K: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, M], [M, 1], [K, M])
    acc = tl.zeros((M, M), tl.float32)
    for k in range(0, n, K):
        acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)
        tl.atomic_add(c, 1.0)  # here
    tl.store(c + tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :], acc)


@tilewright.jit
def overwritten(a, b, c, n, M: tl.constexpr, K: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, M], [M, 1], [K, M])
    acc = tl.zeros((M, M), tl.float32)
    for k in range(0, n, K):
        acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)  # here
        tl.store(b + k + tl.arange(0, M), tl.sum(acc, 1).to(tl.float16))
    tl.store(c + tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :], acc)


@tilewright.jit
def looked_up(a, b, c, n, M: tl.constexpr, K: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, M], [M, 1], [K, M])
    acc = tl.zeros((M, M), tl.float32)
    for k in range(0, n, K):
        at = tl.load(c + k).to(tl.int32)  # here
        acc = tl.dot(x.load([0, at * 64]), y.load([k, 0]), acc)
    tl.store(b + tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :], acc.to(tl.float16))


@tilewright.jit
def until_small(a, b, c, n, M: tl.constexpr, K: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, M], [M, 1], [K, M])
    acc = tl.zeros((M, M), tl.float32)
    k, size = 0, 0.0
    while k < n and size < 100.0:
        acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)  # here
        size = tl.max(acc)
        k += K
    tl.store(c + tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :], acc)


@tilewright.jit
def column_sums(a, b, c, n, M: tl.constexpr, K: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, M], [M, 1], [K, M])
    acc = tl.zeros((M, M), tl.float32)
    for k in range(0, n, K):
        acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)
    tl.store(c + tl.arange(0, M), tl.sum(acc, 0))  # here


@tilewright.jit
def written_twice(a, b, c, n, M: tl.constexpr, K: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, M], [M, 1], [K, M])
    acc = tl.zeros((M, M), tl.float32)
    at = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    for k in range(0, n, K):
        acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)
    tl.store(c + at, acc)
    tl.store(c + at + 1, acc)  # here


@tilewright.jit
def read_back(a, b, c, n, M: tl.constexpr, K: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, M], [M, 1], [K, M])
    acc = tl.zeros((M, M), tl.float32)
    at = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    for k in range(0, n, K):
        acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)
    tl.store(c + at, acc + tl.load(c + at.T))  # here


@tilewright.jit
def stored_in_loop(a, b, c, n, M: tl.constexpr, K: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, M], [M, 1], [K, M])
    acc = tl.zeros((M, M), tl.float32)
    at = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    for k in range(0, n, K):
        acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)
        tl.store(c + at + k, acc)  # here


@tilewright.jit
def read_rows(a, b, c, n, M: tl.constexpr, K: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, M], [M, 1], [K, M])
    acc = tl.zeros((M, M), tl.float32)
    at = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    for k in range(0, n, K):
        acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)
    acc += tl.load(a + at)
    tl.store(c + at, acc)


@tilewright.jit
def no_product(a, b, c, n, M: tl.constexpr, K: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, M], [M, 1], [K, M])
    total = tl.zeros((M, M), tl.float16)
    for k in range(0, n, K):
        total += x.load([0, k]) + y.load([k, 0])
    tl.store(c + tl.arange(0, M), tl.sum(total, 1).to(tl.float32))


@tilewright.jit
def carried(a, b, c, n, M: tl.constexpr, K: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, M], [M, 1], [K, M])
    acc = tl.zeros((M, M), tl.float32)
    before = tl.zeros((M, M), tl.float16)
    for k in range(0, n, K):  # here
        acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)
        acc = tl.dot(before, before, acc)
        before = acc.to(tl.float16)
    tl.store(c + tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :], acc)


@tilewright.jit
def read_late(a, b, c, n, M: tl.constexpr, K: tl.constexpr, WAY: tl.constexpr):
    places = c.to(tl.pointer_type(tl.int32))
    if WAY == "in a branch":
        length = n
        if n > 64:
            length = tl.load(places + 64 // n)
    elif WAY == "":
        length = n
        if n > 64:
            length = tl.load(places)
    elif WAY == "behind a loop":
        first = 0
        for i in range(n):
            first += i * first + 1
        length = tl.load(places + first)
    elif WAY == "in a loop":
        length = n
        for i in range(n):
            length = tl.minimum(length, tl.load(places + i))
    else:
        tl.store(c + n, 1.0)
        length = tl.load(places)
    x = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, M], [M, 1], [K, M])
    acc = tl.zeros((M, M), tl.float32)
    for k in range(0, length, K):
        acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)
    tl.store(c + tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :], acc)


@tilewright.jit
def read_behind_return(a, b, c, n, M: tl.constexpr, K: tl.constexpr):
    if n < 3:
        return
    length = tl.load(c.to(tl.pointer_type(tl.int32)) + 64 // n)
    x = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, M], [M, 1], [K, M])
    acc = tl.zeros((M, M), tl.float32)
    for k in range(0, length, K):
        acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)
    tl.store(c + tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :], acc)


def case_of(kernel: JITFunction, m: int = 128) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        halves = {name: blank((m, m), np.float16) for name in "ab"}
        return {**halves, "c": blank((m, m)), "n": 128, "M": m, "K": 64 if m < 200 else 16}

    def reference(v: SimpleNamespace) -> None:
        raise AssertionError("what is refused is not run")

    return Case(kernel.__name__, kernel, (1,), inputs, reference)


def line_of(kernel: JITFunction) -> int:
    """The line that is marked in a kernel."""
    lines = Path(__file__).read_text().splitlines()
    first = lines.index(next(line for line in lines if line.startswith(f"def {kernel.__name__}(")))
    return next(number for number in range(first, len(lines)) if "# here" in lines[number]) + 1


ONE = "roles load | math; " + AB
TWO = "roles load | math x2 split m; " + AB


@pytest.mark.parametrize(
    ("kernel", "schedule", "reason"),
    [
        (counted, ONE, "no role does tt.atomic_rmw in the order of the program"),
        (overwritten, ONE, "tt.store may write what is loaded ahead of it"),
        (looked_up, ONE, "where a role loads follows from a loaded value, which one role knows"),
        (until_small, ONE, "where a role loads follows from a tile that it loads"),
        (column_sums, TWO, "tt.reduce needs all of a tile that replicas share"),
        (carried, TWO, "scf.for gives a tile in parts that a product needs whole"),
        (written_twice, TWO, "tt.store and tt.store of two replicas may meet"),
        (read_back, TWO, "tt.load and tt.store of two replicas may meet"),
        (stored_in_loop, TWO, "tt.store in a loop: two replicas may write one element"),
    ],
)
def test_a_refusal_names_line_and_reason(kernel: JITFunction, schedule: str, reason: str) -> None:
    case = case_of(kernel)
    module, remarks = formed(case, schedule)
    (remark,) = remarks
    assert remark.endswith(f"the kernel is not split into roles: {reason}")
    assert f"test_form_roles.py:{line_of(kernel)}:" in remark
    assert body_of(print_module(module)) == body_of(print_module(tile_module(gpu_request(case))))


def body_of(text: str) -> str:
    """The text of a module without the attributes of its kernel."""
    return text.rpartition("\n  }) ")[0]


@pytest.mark.parametrize(
    ("kernel", "schedule", "reason"),
    [
        (no_product, TWO, "no product whose tiles replicas could share"),
        (column_sums, "roles load | math; ", "no load goes through a ring"),
        (column_sums, "roles load | math | more math; " + AB, "one that loads and one that"),
        (column_sums, "roles load | math x2 split tiles; " + AB, "tt.reduce needs all of a tile"),
        (column_sums, "roles load | math x3 split m; " + AB, "128 of (128, 128) are not shared by"),
        (read_rows, "roles load | math x4 split m; " + AB, "32 rows of a product are no multiple"),
        (read_rows, "roles load | math; ring c tiles load#2 slots 1", "does not make a load"),
        (read_rows, ONE + "; turns lock dot#0 pass issued", "is passed when its product is done"),
    ],
)
def test_what_a_schedule_may_not_ask_for(kernel: JITFunction, schedule: str, reason: str) -> None:
    case = case_of(kernel, 64 if kernel is no_product else 128)
    module, remarks = formed(case, schedule)
    assert reason in remarks[0]
    assert "tw.roles" not in print_module(module)
    assert body_of(print_module(module)) == body_of(print_module(tile_module(gpu_request(case))))


def test_one_slot_has_to_fit() -> None:
    module = tile_module(gpu_request(case_of(read_rows)))
    kernel = find_kernel(module)
    annotate_schedule(kernel, parse_schedule(ONE))
    FormRoles(replace(SM_90A, max_shared_bytes=16 << 10)).apply(module)
    (remark,) = partition_remarks(kernel)
    assert "the kernel is not split into roles: one slot of " in remark and "of 16384" in remark


def test_one_role_may_do_what_replicas_may_not() -> None:
    for kernel in (column_sums, written_twice, read_back, stored_in_loop):
        _, remarks = formed(case_of(kernel), ONE)
        assert not remarks


WAYS = ("in a branch", "behind a loop", "in a loop", "behind a store")


@pytest.mark.parametrize("way", WAYS)
def test_a_number_that_is_read_too_late_says_behind_what(way: str) -> None:
    case = case_of(read_late)
    given = case.inputs

    def inputs(rng: np.random.Generator) -> Values:
        return {**given(rng), "WAY": way}

    require_said(replace(case, inputs=inputs), way)


def test_a_number_of_a_branch_is_read_in_front_of_it() -> None:
    case = case_of(read_late)
    given = case.inputs

    def inputs(rng: np.random.Generator) -> Values:
        places = np.full((128, 128), 64, np.int32).view(np.float32)  # one step of the two
        halves = {of: rng.standard_normal((128, 128)).astype(np.float16) for of in "ab"}
        return {**given(rng), **halves, "c": places, "WAY": ""}

    case = replace(case, inputs=inputs)
    module, remarks = formed(case, ONE)
    assert remarks == ()
    (read,) = (op for op in find_kernel(module).body.block.ops if isinstance(op, LoadOp))
    assert read.mask is not None and COMMON in read.attributes
    np.testing.assert_array_equal(run_formed(case, ONE)["c"], run_tiles(case)["c"])


def test_a_number_that_is_read_behind_an_early_return_says_so() -> None:
    require_said(case_of(read_behind_return), "behind an early return")


def require_said(case: Case, way: str) -> None:
    """Hold the remark of a case to where a number is read, and behind or in which line."""
    _, (remark,) = formed(case, ONE)
    assert "from a loaded value, which one role knows; " in remark
    pattern = rf"; it is read {way} at .*test_form_roles.py:\d+: read it in front of all loops"
    assert re.search(pattern, remark), remark
    lines = [int(line) for line in re.findall(r"test_form_roles.py:(\d+):", remark)]
    assert lines[1] < lines[0] < lines[1] + 5
