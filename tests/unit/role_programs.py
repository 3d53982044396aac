"""T2 text of programs with roles: a producer, consumers, and a ring between them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr

from tilewright.interp.evaluate import run_kernel
from tilewright.ir.encoding import LayoutAttr, SharedType, TokenType, laid_out, shared_tile
from tilewright.ir.levels import T2
from tilewright.ir.text import parse_module
from tilewright.ir.types import i32
from tilewright.ir.verify_level import verify_level
from tilewright.layout.build import blocked, shared_linear
from tilewright.ops.dialects import make_dialects, tile_context
from tilewright.ops.rings import RingType
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.nvidia.ops import NVIDIA_OPS

WIDTH = 32
_LAYOUT = blocked((WIDTH,), (1,), (32,), (1,), (0,))
_SLOT = str(shared_tile(i32, shared_linear((WIDTH,), (0,))))
_TILE = str(laid_out(i32, _LAYOUT))
_PLACES = _TILE.replace("xi32", "x!tt.ptr<i32>")


@dataclass(frozen=True)
class Pipeline:
    """A correct program by default: n tiles through a ring, doubled by each consumer.

    The other fields are what one side does before and behind the access of its slot.
    """

    slots: int = 2
    replicas: int = 1
    consumers: int | None = None
    acquires: bool = True
    commits: bool = True
    waits: bool = True
    releases: str = "behind"
    first_fill: int = 0
    fill_step: int = 1
    has_positions: bool = True


def text(program: Pipeline) -> str:
    """The module of a program; its arguments are x, out and the number of tiles."""
    if not program.has_positions:
        given = text(replace(program, has_positions=True))
        given = given.replace("(%ring, %s, %fill) : (!ttg.ring, i32, i32)", "(%ring) : (!ttg.ring)")
        given = given.replace("(%ring, %s) : (!ttg.ring, i32)", "(%ring) : (!ttg.ring)")
        return given.replace(
            "(%ring, %s) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!ttg.ring, i32)",
            "(%ring) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!ttg.ring)",
        )
    ring_tiles = str(shared_tile(i32, shared_linear((WIDTH,), (0,)), program.slots))
    consumers = program.replicas if program.consumers is None else program.consumers
    release = (
        '"ttg.ring_release"(%ring, %s) <{operandSegmentSizes = array<i32: 1, 1, 0>}> '
        ": (!ttg.ring, i32) -> ()"
    )
    read = f'%v = "ttg.local_load"(%slot) : ({_SLOT}) -> {_TILE}'
    reading = {
        "behind": f"{read}\n{release}",
        "before": f"{release}\n{read}",
        "never": read,
    }[program.releases]
    taken = f"(%ring, %s, %fill) : (!ttg.ring, i32, i32) -> {_SLOT}"
    unwaited = f'"ttg.memdesc_index"(%tiles, %s) : ({ring_tiles}, i32) -> {_SLOT}'
    acquire = f'"ttg.ring_acquire"{taken}' if program.acquires else unwaited
    wait = f'"ttg.ring_wait"{taken}' if program.waits else unwaited
    commit = '"ttg.ring_commit"(%ring, %s) : (!ttg.ring, i32) -> ()' if program.commits else ""
    return f"""
"builtin.module"() ({{
"tt.func"() <{{sym_name = "k", sym_visibility = "public",
  function_type = (!tt.ptr<i32>, !tt.ptr<i32>, i32) -> ()}}> ({{
^bb0(%x: !tt.ptr<i32>, %out: !tt.ptr<i32>, %n: i32):
  %zero = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
  %one = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
  %first = "arith.constant"() <{{value = {program.first_fill} : i32}}> : () -> i32
  %step = "arith.constant"() <{{value = {program.fill_step} : i32}}> : () -> i32
  %slots = "arith.constant"() <{{value = {program.slots} : i32}}> : () -> i32
  %width = "arith.constant"() <{{value = {WIDTH} : i32}}> : () -> i32
  %tiles = "ttg.local_alloc"() <{{offset_bytes = 0 : i32}}> : () -> {ring_tiles}
  %ring = "ttg.ring"(%tiles) <{{ring_name = "ab", producers = 1 : i32,
    consumers = {consumers} : i32}}> : ({ring_tiles}) -> !ttg.ring
  "tw.roles"() <{{roles = ["load", "math"], warps = array<i32: 1, 1>,
    replicas = array<i32: 1, {program.replicas}>, registers = array<i32: 24, 240>}}> ({{
  ^bb0(%r: i32):
    %range = "tt.make_range"() <{{start = 0 : i32, end = {WIDTH} : i32}}> : () -> {_TILE}
    %q:2 = "scf.for"(%zero, %n, %one, %zero, %zero) ({{
    ^bb0(%k: i32, %s: i32, %fill: i32):
      %slot = {acquire}
      {_access("%x", "%k")}
      %v = "tt.load"(%places) <{{cache = 1 : i32, evict = 1 : i32, isVolatile = false,
        operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>}}>
        {{tw.access = #tw.access<"vector 1, order 0">}}
        : ({_PLACES}) -> {_TILE}
      "ttg.local_store"(%v, %slot) : ({_TILE}, {_SLOT}) -> ()
      {commit}
      {_next()}
    }}) : (i32, i32, i32, i32, i32) -> (i32, i32)
    "scf.yield"() : () -> ()
  }}, {{
  ^bb0(%r: i32):
    %range = "tt.make_range"() <{{start = 0 : i32, end = {WIDTH} : i32}}> : () -> {_TILE}
    %base = "arith.muli"(%r, %n) : (i32, i32) -> i32
    %q:2 = "scf.for"(%zero, %n, %one, %zero, %first) ({{
    ^bb0(%k: i32, %s: i32, %fill: i32):
      %slot = {wait}
      {reading}
      %w = "arith.addi"(%v, %v) : ({_TILE}, {_TILE}) -> {_TILE}
      %row = "arith.addi"(%base, %k) : (i32, i32) -> i32
      {_access("%out", "%row")}
      "tt.store"(%places, %w) <{{cache = 1 : i32, evict = 1 : i32,
        boundaryCheck = array<i32>}}>
        {{tw.access = #tw.access<"vector 1, order 0">}} : ({_PLACES}, {_TILE}) -> ()
      {_next()}
    }}) : (i32, i32, i32, i32, i32) -> (i32, i32)
    "scf.yield"() : () -> ()
  }}) : () -> ()
  "tt.return"() : () -> ()
}}) : () -> ()
}}) : () -> ()
"""


def _access(base: str, row: str) -> str:
    return f"""%start = "arith.muli"({row}, %width) : (i32, i32) -> i32
      %origin = "tt.addptr"({base}, %start) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
      %all = "tt.splat"(%origin) : (!tt.ptr<i32>) -> {_PLACES}
      %places = "tt.addptr"(%all, %range) : ({_PLACES}, {_TILE}) -> {_PLACES}"""


def _next() -> str:
    """The slot behind, and the next fill when that is the first one."""
    return """%s1 = "arith.addi"(%s, %one) : (i32, i32) -> i32
      %wraps = "arith.cmpi"(%s1, %slots) <{predicate = 0 : i64}> : (i32, i32) -> i1
      %s2 = "arith.select"(%wraps, %zero, %s1) : (i1, i32, i32) -> i32
      %more = "arith.addi"(%fill, %step) : (i32, i32) -> i32
      %fill2 = "arith.select"(%wraps, %more, %fill) : (i1, i32, i32) -> i32
      "scf.yield"(%s2, %fill2) : (i32, i32) -> ()"""


def context() -> Context:
    """A context that knows T2 with roles."""
    attributes = (LayoutAttr, SharedType, TokenType, RingType)
    return tile_context(tuple(make_dialects(NVIDIA_OPS, attributes)))


def parsed(source: str) -> ModuleOp:
    """The verified module of a text."""
    module = parse_module(source, context())
    module.verify()
    return module


def located(module: ModuleOp) -> ModuleOp:
    """A module whose ops have lines, one each."""
    for line, op in enumerate(module.walk(), 1):
        op.location = FileLineColLoc(StringAttr("roles.py"), IntAttr(line), IntAttr(1))
    return module


def run(program: Pipeline, count: int) -> tuple[np.ndarray, np.ndarray]:
    """What the program makes of `count` tiles, and the tiles."""
    module = located(parsed(text(program)))
    verify_level(module, T2)
    x = np.random.default_rng(1).integers(-1000, 1000, max(1, count) * WIDTH, np.int32)
    out = np.zeros((program.replicas, max(1, count) * WIDTH), np.int32)
    run_kernel(module, [x, out.reshape(-1), count], (1,), rules=NVIDIA_INTERPRETATION)
    return out, x
