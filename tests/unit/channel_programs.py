"""T0r text of programs with roles that pass values through channels."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr

from tilewright.ir.text import parse_module
from tilewright.ops.channels import CHANNEL_OPS, ChannelType
from tilewright.ops.dialects import tile_context
from tilewright.ops.roles import RolesOp

_HEAD = """
"builtin.module"() ({
"tt.func"() <{sym_name = "k", sym_visibility = "public",
  function_type = (!tt.ptr<i32>, !tt.ptr<i32>, i32, i32) -> ()}> ({
^bb0(%x: !tt.ptr<i32>, %out: !tt.ptr<i32>, %n: i32, %m: i32):
  %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
  %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
"""
_TAIL = """
  "tt.return"() : () -> ()
}) : () -> ()
}) : () -> ()
"""
PUT = '"tw.put"(%c, %v) : (!tw.channel, i32) -> ()'
GET = '%v = "tw.get"(%c) : (!tw.channel) -> i32'
STORE = """%place = "tt.addptr"(%out, %at) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
      "tt.store"(%place, %v) <{cache = 1 : i32, evict = 1 : i32, boundaryCheck = array<i32>}>
        : (!tt.ptr<i32>, i32) -> ()"""


def roles(replicas: int, *bodies: str) -> str:
    """Roles `load`, `math`, … of which `math` has replicas, with a region each."""
    names = ["load", "math", "more"][: len(bodies)]
    counts = [replicas if name == "math" else 1 for name in names]
    regions = ", ".join(
        f'{{\n  ^bb0(%r: i32):\n{body}\n    "scf.yield"() : () -> ()\n  }}' for body in bodies
    )
    quoted = ", ".join(f'"{name}"' for name in names)
    ones, many = ", ".join("4" for _ in names), ", ".join(map(str, counts))
    return f"""
  "tw.roles"() <{{roles = [{quoted}], warps = array<i32: {ones}>,
    replicas = array<i32: {many}>, registers = array<i32: {ones}>}}> ({regions}) : () -> ()"""


def loop(count: str, body: str) -> str:
    """A loop of `count` iterations over %k."""
    return f"""    "scf.for"(%zero, {count}, %one) ({{
    ^bb0(%k: i32):
      {body}
      "scf.yield"() : () -> ()
    }}) : (i32, i32, i32) -> ()"""


def channel(name: str = "c", slots: int = 2, type_: str = "i32") -> str:
    """A channel of one value."""
    return f"""  %{name} = "tw.channel"() <{{channel_name = "{name}", tiles = [{type_}],
    slots = {slots} : i32}}> : () -> !tw.channel"""


LOAD = """%p = "tt.addptr"(%x, %k) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
      %v = "tt.load"(%p) <{cache = 1 : i32, evict = 1 : i32, isVolatile = false,
        operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>}>
        : (!tt.ptr<i32>) -> i32"""
ROW = """%row = "arith.muli"(%r, %n) : (i32, i32) -> i32
      %at = "arith.addi"(%row, %k) : (i32, i32) -> i32"""


def context() -> Context:
    """A context that knows T0r."""
    made = tile_context()
    for op in (*CHANNEL_OPS, RolesOp):
        made.load_op(op)
    made.load_attr_or_type(ChannelType)
    return made


def program(*parts: str) -> ModuleOp:
    """The verified module of channels and roles; each op has a line."""
    module = parse_module(_HEAD + "\n".join(parts) + _TAIL, context())
    module.verify()
    for line, op in enumerate(module.walk(), 1):
        op.location = FileLineColLoc(StringAttr("roles.py"), IntAttr(line), IntAttr(1))
    return module
