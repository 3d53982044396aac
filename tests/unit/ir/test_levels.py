"""The contracts of the IR levels: each invariant has a module that breaks it."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.ops.examples import EXAMPLES, module_text
from tilewright.ir.encoding import LayoutAttr, SharedType, TokenType
from tilewright.ir.levels import C2, LEVELS, T0, T1, T2
from tilewright.ir.op import plans_of
from tilewright.ir.text import parse_module
from tilewright.ir.verify_level import verify_level
from tilewright.ops.dialects import TILE_OPS, make_dialects, tile_context
from tilewright.schedule.exchanges import CHOICES
from tilewright.support.errors import InternalError
from tilewright.targets.cpu.ops import CPU_OPS, AllocOp, NestOp
from tilewright.targets.nvidia.interpret import EXCHANGE_MODULES
from tilewright.targets.nvidia.ops import NVIDIA_OPS

NVIDIA_ATTRIBUTES = (LayoutAttr, SharedType, TokenType)
LOC = 'loc("k.py":3:4)'


def parse(text: str) -> ModuleOp:
    return parse_module(text, tile_context(tuple(make_dialects(CPU_OPS, ()))))


def kernel(body: str, arguments: str = "", location: str = LOC) -> ModuleOp:
    """A kernel of located ops, with one argument list such as `%x: i32`."""
    types = ", ".join(part.split(":", 1)[1] for part in arguments.split(";") if part)
    lines = "\n".join(f"{line} {location}" for line in body.strip().splitlines())
    return parse(f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = ({types}) -> ()}}> ({{
  ^bb0({arguments.replace(";", ",")}):
    {lines}
    "tt.return"() : () -> () {LOC}
  }}) : () -> () {LOC}
}}) : () -> () {LOC}""")


def refusal(module: ModuleOp, level) -> str:
    with pytest.raises(InternalError) as caught:
        verify_level(module, level)
    return caught.value.summary


def test_small_kernel_is_legal_at_both_levels() -> None:
    module = kernel('%y = "arith.addi"(%x, %x) : (i32, i32) -> i32', "%x: i32")
    verify_level(module, T0)
    verify_level(module, C2)


def test_refusal_names_op_line_and_level() -> None:
    module = kernel('%y = "cpu.iota"() : () -> vector<8xi32>')
    assert refusal(module, T0) == "invalid T0: cpu.iota at k.py:3 is no op of this level"


def test_span_of_a_refusal_is_the_op() -> None:
    module = kernel('%y = "cpu.iota"() : () -> vector<8xi32>')
    with pytest.raises(InternalError) as caught:
        verify_level(module, T0)
    assert caught.value.span is not None
    assert (caught.value.span.file, caught.value.span.line) == ("k.py", 3)


@pytest.mark.parametrize("location", ["", "loc(unknown)"])
def test_every_op_has_a_known_location(location: str) -> None:
    module = kernel('%y = "arith.addi"(%x, %x) : (i32, i32) -> i32', "%x: i32", location)
    assert "arith.addi at an unknown place has no source location" in refusal(module, T0)


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        ("tensor<2097152xf32>", "2097152 elements are more than 1048576"),
        ("tensor<?xf32>", "is not static"),
        ('tensor<8xf32, "layout">', "a tile has no layout"),
        ("si32", "integers are signless"),
        ("i7", "no integers of 7 bits"),
        ("vector<8xf32>", "is no type of this level"),
        ("!tt.ptr<f32, 3>", "into global memory"),
        ("!tt.tensordesc<tensor<8xf32, 3>>", "a tile has no layout"),
        ("!tt.ptr<tensor<8xi5>>", "no integers of 5 bits"),
        ("tensor<8x!tt.ptr<f32, 2>>", "into global memory"),
    ],
)
def test_types_that_t0_refuses(type_: str, reason: str) -> None:
    assert reason in refusal(kernel("", f"%x: {type_}"), T0)


@pytest.mark.parametrize(
    "type_",
    [
        "i1", "i64", "bf16", "f8E5M2", "index", "!tt.ptr<i1>", "!tt.ptr<!tt.ptr<f32>>",
        "tensor<1048576xi8>", "tensor<3x5xf32>", "tensor<8x!tt.ptr<f32>>",
        "!tt.ptr<tensor<8x8xf32>>", "!tt.tensordesc<tensor<8x8xf32>>",
    ],
)  # fmt: skip
def test_types_that_t0_allows(type_: str) -> None:
    verify_level(kernel("", f"%x: {type_}"), T0)


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        ("tensor<8xf32>", "is no type of this level"),
        ("!tt.tensordesc<tensor<8x8xf32>>", "is no type of this level"),
        ("vector<8x8xf32>", "a vector has one dimension"),
        ("!tt.ptr<tensor<8x8xf32>>", "is no type of this level"),
    ],
)
def test_types_that_c2_refuses(type_: str, reason: str) -> None:
    assert reason in refusal(kernel("", f"%x: {type_}"), C2)


def test_arena_buffers_have_their_place_at_c2() -> None:
    unplaced = kernel('%a = "cpu.alloc"() <{num_elems = 8 : i64}> : () -> !tt.ptr<f32>')
    assert "cpu.alloc at k.py:3 has no `offset_bytes` yet" in refusal(unplaced, C2)


@pytest.mark.parametrize("name", ["tt.load", "tt.dot", "tt.reduce", "tt.make_range", "tw.sort"])
def test_tile_ops_are_refused_at_c2(name: str) -> None:
    assert not C2.allows(name)
    assert refusal(parse(module_text(name)), C2).startswith("invalid C2: ")


@pytest.mark.parametrize("name", [op.name for op in CPU_OPS if not EXAMPLES[op.name].wrap])
def test_target_ops_are_refused_at_t0(name: str) -> None:
    assert "invalid T0" in refusal(parse(module_text(name)), T0)


def test_module_holds_functions_only() -> None:
    text = f"""
"builtin.module"() ({{
  %x = "arith.constant"() <{{value = 1 : i32}}> : () -> i32 {LOC}
}}) : () -> () {LOC}"""
    assert "stands outside of every function" in refusal(parse(text), T0)


@pytest.mark.parametrize(("visibility", "count"), [("private", 0), ("public", 2)])
def test_one_function_is_public(visibility: str, count: int) -> None:
    function = f"""
  "tt.func"() <{{sym_name = "NAME", sym_visibility = "{visibility}", function_type = () -> ()}}>
    ({{ "tt.return"() : () -> () {LOC} }}) : () -> () {LOC}"""
    both = function.replace("NAME", "a") + function.replace("NAME", "b")
    text = f'"builtin.module"() ({{{both}\n}}) : () -> () {LOC}'
    assert f"has {count} public functions" in refusal(parse(text), T0)


def test_control_flow_is_structured() -> None:
    text = f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = () -> ()}}> ({{
    "tt.return"() : () -> () {LOC}
  ^other:
    "tt.return"() : () -> () {LOC}
  }}) : () -> () {LOC}
}}) : () -> () {LOC}"""
    assert "has a region of several blocks" in refusal(parse(text), T0)


def test_function_ends_with_a_terminator() -> None:
    module = kernel("")
    (function,) = module.ops
    block = function.body.block
    block.erase_op(block.last_op)
    assert "expects at least a terminator" in refusal(module, T0)


def test_ops_that_do_not_verify_are_reported_with_the_level() -> None:
    module = kernel('%y = "arith.addi"(%x, %x) : (i32, i32) -> i32', "%x: i32")
    (function,) = module.ops
    function.properties.pop("sym_name")
    assert refusal(module, T0).startswith("invalid T0: ")


def test_tiles_have_layouts_from_t1_on() -> None:
    bare, laid_out = kernel("", "%x: tensor<8xf32>"), kernel("", '%x: tensor<8xf32, "layout">')
    assert "a tile has a layout" in refusal(bare, T1)
    verify_level(laid_out, T1)
    verify_level(laid_out, T2)


def test_target_extends_a_level_with_its_ops() -> None:
    module = parse(module_text("cpu.alloc"))
    assert "is no op of this level" in refusal(module, T0)
    verify_level(module, T0.extended(AllocOp, NestOp))
    assert not T0.allows("cpu.alloc")


def test_levels_are_named() -> None:
    assert list(LEVELS) == ["T0", "T0r", "T1", "T2", "C1", "C2"]
    assert all(level.summary for level in LEVELS.values())


def test_a_shared_tile_without_a_place_is_not_scheduled() -> None:
    context = tile_context(tuple(make_dialects(NVIDIA_OPS, NVIDIA_ATTRIBUTES)))
    module = parse_module(
        f"""
#shared = #ttg.linear<"offset(1 2 4) atom(8)">
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = () -> ()}}> ({{
    %0 = "ttg.local_alloc"() : () -> !ttg.memdesc<[8], f32, #shared, 1> {LOC}
    "tt.return"() : () -> () {LOC}
  }}) : () -> () {LOC}
}}) : () -> () {LOC}""",
        context,
    )
    verify_level(module, T1.extended(*NVIDIA_OPS))
    message = refusal(module, T2.extended(*NVIDIA_OPS))
    assert message == "invalid T2: ttg.local_alloc at k.py:3 has no `offset_bytes` yet"


UNDECIDED = """
#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
!f = tensor<1024xf32, #l>
!i = tensor<1024xi32, #l>
!p = tensor<1024x!tt.ptr<f32, 1>, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!f, !i, !p) -> ()}> ({
  ^bb0(%f: !f, %i: !i, %p: !p):
    OP LOC
    "tt.return"() : () -> () LOC
  }) : () -> () LOC
}) : () -> () LOC"""
SUM = """({
    ^bb0(%a: f32, %b: f32):
      %s = "arith.addf"(%a, %b) : (f32, f32) -> f32 LOC
      "tt.KIND.return"(%s) : (f32) -> () LOC
    })"""
ACCESS = 'tw.access = #tw.access<"vector 1, order 0">'
EXCHANGE = 'tw.exchange = #tw.exchange<"registers">'
LEFT_OPEN = {
    '"tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {PLANS} : (!p) -> !f': [ACCESS],
    '"tt.store"(%p, %f) {PLANS} : (!p, !f) -> ()': [ACCESS],
    '"tw.atomic_store"(%p, %f) <{sem = 1 : i32, scope = 1 : i32}> {PLANS} : (!p, !f) -> ()': [
        ACCESS
    ],
    '"ttg.convert_layout"(%f) {PLANS} : (!f) -> !f': [EXCHANGE],
    f'"tt.reduce"(%f) <{{axis = 0 : i32}}> {SUM} {{PLANS}} : (!f) -> f32': [EXCHANGE],
    f'"tt.scan"(%f) <{{axis = 0 : i32}}> {SUM} {{PLANS}} : (!f) -> !f': [EXCHANGE],
    '"tw.sort"(%f) {PLANS} : (!f) -> (!f, !i)': [EXCHANGE],
    '"tw.flip"(%f) <{axis = 0 : i32}> {PLANS} : (!f) -> !f': [EXCHANGE],
    '"tt.gather"(%f, %i) <{axis = 0 : i32}> {PLANS} : (!f, !i) -> !f': [EXCHANGE],
    '"tt.histogram"(%i) {PLANS} : (!i) -> !i': [EXCHANGE],
}


@pytest.mark.parametrize("op", LEFT_OPEN)
def test_nothing_is_left_to_decide_at_t2(op: str) -> None:
    context = tile_context(tuple(make_dialects(NVIDIA_OPS, NVIDIA_ATTRIBUTES)))
    name, plans = op.split('"')[1], LEFT_OPEN[op]
    text = UNDECIDED.replace("OP", op.replace("KIND", name.rpartition(".")[2])).replace("LOC", LOC)

    def module(given: list[str]) -> ModuleOp:
        return parse_module(text.replace("PLANS", ", ".join(given)), context)

    verify_level(module([]), T1.extended(*NVIDIA_OPS))
    verify_level(module(plans), T2.extended(*NVIDIA_OPS))
    for missing in plans:
        left = [plan for plan in plans if plan != missing]
        message = refusal(module(left), T2.extended(*NVIDIA_OPS))
        attribute = missing.split()[0]
        assert message == (
            f"invalid T2: {name} at k.py:3 has no `{attribute}` yet: that is not decided"
        )


def test_t2_asks_for_a_plan_of_every_family_that_exchanges() -> None:
    assert EXCHANGE_MODULES, "the families register themselves when they are loaded"
    families = {cls.name for cls in CHOICES.classes() if cls.__module__.startswith("tilewright.")}
    assert families == {op.name for op in (*TILE_OPS, *NVIDIA_OPS) if "tw.exchange" in plans_of(op)}


def test_a_tile_without_a_layout_is_not_laid_out() -> None:
    module = kernel(
        '%y = "tt.make_range"() <{start = 0 : i32, end = 8 : i32}> : () -> tensor<8xi32>'
    )
    assert refusal(module, T1).endswith("has a value of type tensor<8xi32>: a tile has a layout")


def test_an_op_that_a_rewrite_left_behind_is_found_by_its_use() -> None:
    module = kernel('%y = "arith.addi"(%x, %x) : (i32, i32) -> i32', "%x: i32")
    (add,) = [op for op in module.walk() if op.name == "arith.addi"]
    left = add.clone()
    expected = "invalid T0: tt.func at k.py:3 is used by arith.addi, which stands nowhere"
    assert refusal(module, T0) == expected
    left.erase()
    verify_level(module, T0)
