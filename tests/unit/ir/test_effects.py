"""What ops declare that they do to memory, and what those who ask make of it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

import tilewright
from tests.ops.examples import ALL_OPS, EXAMPLES, module_text
from tests.unit.shared_programs import PLAIN, SWIZZLED, Program
from tilewright.interp.code import Preparation, Rules
from tilewright.interp.evaluate import run_kernel
from tilewright.interp.rules import TILE_RULES
from tilewright.ir.attributes import integer_array
from tilewright.ir.effects import (
    Access,
    Atomic,
    Extent,
    Order,
    Resource,
    Wait,
    declares_effects,
    effects_of,
    is_free,
    overtakes_reads,
    own_effects,
    stops_reads,
    touches_only_shared,
)
from tilewright.ir.op import TileOp
from tilewright.ir.text import parse_module
from tilewright.language.stubs import EXTENSIONS
from tilewright.ops.control_flow import CONTROL_FLOW_OPS
from tilewright.ops.dialects import TILE_OPS, make_dialects, tile_context
from tilewright.ops.extensions import add_extensions
from tilewright.support.errors import EffectsNotDeclared, InternalError
from tilewright.targets.cpu.ops import CPU_OPS
from tilewright.targets.nvidia.ops import NVIDIA_OPS

SOURCES = Path(tilewright.__file__).parent
EVERY_OP = dict.fromkeys((*TILE_OPS, *CONTROL_FLOW_OPS, *CPU_OPS, *NVIDIA_OPS))
LOC = 'loc("k.py":3:4)'


def parse(text: str, *ops: type[Operation]) -> ModuleOp:
    return parse_module(text, tile_context(tuple(make_dialects((*CPU_OPS, *ops), ()))))


def first(name: str) -> Operation:
    return next(op for op in parse(module_text(name)).walk() if op.name == name)


def accesses(op: Operation) -> list[Access]:
    return [effect for effect in own_effects(op) if isinstance(effect, Access)]


# --- the declarations -----------------------------------------------------------------------


@pytest.mark.parametrize("op", EVERY_OP, ids=lambda op: op.name)
def test_every_op_says_what_it_does(op: type[Operation]) -> None:
    assert declares_effects(op)


@pytest.mark.parametrize("op", ALL_OPS, ids=lambda op: op.name)
def test_what_an_example_does_can_be_listed(op: type[Operation]) -> None:
    name = EXAMPLES[op.name].wrap or op.name
    effects = own_effects(first(name))
    assert not (effects and op.has_trait(Pure))


def test_module_and_function_do_what_is_inside() -> None:
    module = parse(module_text("tt.store"))
    assert own_effects(module) == ()
    assert [effect.resource for effect in effects_of(module)] == [Resource.GLOBAL]


@pytest.mark.parametrize(
    ("name", "reads", "writes"),
    [
        ("tt.load", True, False),
        ("tt.store", False, True),
        ("tt.descriptor_load", True, False),
        ("tt.descriptor_gather", True, False),
        ("tt.descriptor_store", False, True),
        ("tt.descriptor_scatter", False, True),
        ("tt.descriptor_reduce", True, True),
        ("tt.atomic_rmw", True, True),
        ("tt.atomic_cas", True, True),
        ("tw.atomic_load", True, False),
        ("tw.atomic_store", False, True),
        ("cpu.load", True, False),
        ("cpu.scatter", False, True),
    ],
)
def test_an_access_is_of_what_its_first_operand_points_to(name, reads: bool, writes: bool) -> None:
    op = first(name)
    (access,) = accesses(op)
    assert (access.resource, access.reads, access.writes) == (Resource.GLOBAL, reads, writes)
    assert access.value is op.operands[0]
    assert access.extent is Extent.WHOLE


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("tt.print", Resource.CONSOLE),
        ("tt.assert", Resource.CONTROL),
        ("llvm.intr.assume", Resource.CONTROL),
        ("tw.clock", Resource.CLOCK),
        ("tt.call", Resource.ANY),
        ("tw.breakpoint", Resource.ANY),
    ],
)
def test_what_is_no_memory_has_a_resource_of_its_own(name: str, resource: Resource) -> None:
    assert [access.resource for access in accesses(first(name))] == [resource]


@pytest.mark.parametrize(
    ("name", "properties", "expected"),
    [
        ("tw.atomic_load", "sem = 4 : i32", Atomic("acquire", "gpu")),
        ("tw.atomic_load", "sem = 1 : i32", Atomic("relaxed", "gpu")),
        ("tw.atomic_store", "sem = 4 : i32, scope = 3 : i32", Atomic("release", "sys")),
        ("tt.atomic_cas", "", Atomic("acq_rel", "gpu")),
        ("tt.atomic_cas", "sem = 2 : i32, scope = 2 : i32", Atomic("acquire", "cta")),
    ],
)
def test_an_atomic_orders_what_it_can(name: str, properties: str, expected: Atomic) -> None:
    text = re.sub(r"<\{sem[^}]*\}>", f"<{{{properties}}}>" if properties else "", module_text(name))
    (op,) = [op for op in parse(text).walk() if op.name == name]
    (access,) = accesses(op)
    assert access.atomic == expected
    assert expected.releases == (expected.order in ("release", "acq_rel"))
    assert expected.acquires == (expected.order in ("acquire", "acq_rel"))


def test_assembly_that_is_declared_pure_does_nothing() -> None:
    text = module_text("tt.elementwise_inline_asm")
    assert is_free(first("tt.elementwise_inline_asm"))
    module = parse(text.replace("pure = true", "pure = false"))
    (op,) = [op for op in module.walk() if op.name == "tt.elementwise_inline_asm"]
    assert [access.resource for access in accesses(op)] == [Resource.ANY]


def test_shared_tiles_are_made_written_and_read() -> None:
    program = Program()
    tile = program.alloc(PLAIN)
    store, load = program.store(tile), program.load(tile).owner
    filled = program.alloc(PLAIN, filled=True).owner
    assert isinstance(load, Operation) and isinstance(filled, Operation)
    assert [(a.reads, a.writes, a.value) for a in accesses(store)] == [(False, True, tile)]
    assert [(a.reads, a.writes, a.value) for a in accesses(load)] == [(True, False, tile)]
    assert [(a.reads, a.writes) for a in accesses(filled)] == [(False, True)]
    assert all(touches_only_shared(op) for op in (store, load, filled))


def test_a_product_reads_shared_operands_by_its_unit() -> None:
    program = Program()
    a, b = program.alloc(SWIZZLED), program.alloc(SWIZZLED)
    dot = program.dot(a, b).owner
    assert isinstance(dot, Operation)
    found = [(x.value, x.is_async, x.extent) for x in accesses(dot)]
    assert found == [(a, True, Extent.WHOLE), (b, True, Extent.WHOLE)]
    assert not touches_only_shared(dot)


def test_waits_name_what_they_wait_for() -> None:
    # Who waits for another role or program waits for nothing that it has started itself.
    others = {"ttg.ring_wait", "ttg.turn_wait", "ttg.cluster_wait"}
    waits = [op for op in EVERY_OP if op.name.endswith("_wait") and op.name not in others]
    assert {op.name for op in waits} == {
        *("ttg.dot_wait", "ttg.async_wait", "ttng.tma_wait", "ttng.tma_store_wait")
    }
    for cls in waits:
        segments = {"operandSegmentSizes": integer_array((0, 0))}
        op = cls.create(properties=segments if cls.name == "ttng.tma_wait" else {})
        (wait,) = [effect for effect in own_effects(op) if isinstance(effect, Wait)]
        assert wait.through


# --- what follows -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "stops", "overtakes"),
    [
        ("tt.load", False, False),
        ("tt.store", True, True),
        ("tt.atomic_rmw", True, True),
        ("tw.atomic_load", True, True),
        ("tt.print", True, False),
        ("tt.assert", True, False),
        ("llvm.intr.assume", True, False),
        ("gpu.barrier", True, True),
        ("tw.clock", True, True),
        ("tt.call", True, True),
        ("tt.reduce", False, False),
        ("arith.addi", False, False),
    ],
)
def test_which_ops_a_read_may_pass(name: str, stops: bool, overtakes: bool) -> None:
    assert stops_reads(first(name)) == stops
    assert overtakes_reads(first(name)) == overtakes


def test_accesses_of_shared_tiles_let_reads_of_global_memory_pass() -> None:
    program = Program()
    tile = program.alloc(PLAIN)
    assert not stops_reads(program.store(tile))
    assert stops_reads(program.barrier()) and overtakes_reads(program.fence())
    assert own_effects(program.barrier()) == (Order.BARRIER,)


def test_a_loop_does_what_its_body_does() -> None:
    program = Program()
    tile = program.alloc(PLAIN)
    quiet = program.loop(lambda: None)
    loop = program.loop(lambda: program.store(tile))
    assert is_free(quiet) and not is_free(loop)
    assert own_effects(loop) == ()
    assert [effect.value for effect in effects_of(loop)] == [tile]
    assert touches_only_shared(loop) and not stops_reads(loop)
    nested = program.loop(lambda: program.loop(program.barrier))
    assert stops_reads(nested)


# --- what is refused ----------------------------------------------------------------------------


@irdl_op_definition
class SilentOp(TileOp):
    """An op of a plug-in that does not say what it does."""

    name = "mine.silent"
    ptr = operand_def()
    result = result_def()


@irdl_op_definition
class LyingOp(TileOp):
    """An op of a plug-in that reads memory and says that it does nothing."""

    name = "mine.lying"
    ptr = operand_def()
    result = result_def()
    traits = traits_def(Pure())


def plugged_in(cls: type[Operation]) -> ModuleOp:
    return parse(
        f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = (!tt.ptr<f32>) -> ()}}> ({{
  ^bb0(%p: !tt.ptr<f32>):
    %x = "{cls.name}"(%p) : (!tt.ptr<f32>) -> f32 {LOC}
    "tt.return"() : () -> () {LOC}
  }}) : () -> () {LOC}
}}) : () -> () {LOC}""",
        cls,
    )


def test_an_op_that_says_nothing_is_refused_at_its_line(golden) -> None:
    (op,) = [op for op in plugged_in(SilentOp).walk() if isinstance(op, SilentOp)]
    assert not declares_effects(SilentOp)
    with pytest.raises(EffectsNotDeclared) as caught:
        is_free(op)
    golden("effects_not_declared", str(caught.value))


def test_the_interpreter_holds_ops_to_what_they_declare() -> None:
    rules = Rules("lying", TILE_RULES)
    load = TILE_RULES.plain.find(next(op for op in TILE_OPS if op.name == "tt.load"))
    assert load is not None

    @rules.plain.register(LyingOp)
    def _read(operation: Operation, preparation: Preparation):
        (real,) = [op for op in parse(_LOAD).walk() if op.name == "tt.load"]
        return load(real, preparation)

    with pytest.raises(InternalError, match="lying reads global memory and does not declare it"):
        run_kernel(plugged_in(LyingOp), [np.zeros(1, np.float32)], (1,), rules=rules)


_LOAD = f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = (!tt.ptr<f32>) -> ()}}> ({{
  ^bb0(%p: !tt.ptr<f32>):
    %x = "tt.load"(%p) <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : (!tt.ptr<f32>) -> f32 {LOC}
    "tt.return"() : () -> () {LOC}
  }}) : () -> () {LOC}
}}) : () -> () {LOC}"""


def test_no_other_place_classifies_ops_by_the_name_of_their_dialect() -> None:
    pattern = re.compile(r"""\.name\.startswith\(\s*\(?\s*["'](tt|ttg|ttng|tw|cpu|gpu)[."']""")
    found = [
        f"{path.relative_to(SOURCES)}:{number}"
        for path in sorted(SOURCES.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_no_other_place_asks_the_traits_of_memory() -> None:
    traits = re.compile(r"\b(MemoryReadEffect|MemoryWriteEffect|is_side_effect_free|get_effects)\b")
    found = [
        str(path.relative_to(SOURCES))
        for path in sorted(SOURCES.rglob("*.py"))
        if traits.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_an_extension_with_an_op_that_says_nothing_is_refused(
    golden, tmp_path, monkeypatch
) -> None:
    package = tmp_path / "silent_tiles"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import tilewright\n\nextras = tilewright.extension('silent_tiles', ops='.ops')\n"
    )
    (package / "ops.py").write_text(_SILENT_OPS)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        with pytest.raises(EffectsNotDeclared) as caught:
            add_extensions(("silent_tiles",))
    finally:
        EXTENSIONS.pop("silent_tiles", None)
    golden("extension_effects_not_declared", str(caught.value).replace(str(tmp_path), "…"))


_SILENT_OPS = """from xdsl.irdl import irdl_op_definition, operand_def, result_def

from tilewright.ir.op import TileOp


@irdl_op_definition
class SilentOp(TileOp):
    name = "silent_tiles.silent"
    src = operand_def()
    result = result_def()
"""
