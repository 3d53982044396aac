"""One instance of every op as generic text: its operand types, properties and results.

The matrix tests need an instance of each registered op; a new op needs a row here.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from tilewright.ops.dialects import TILE_OPS
from tilewright.ops.elementwise import ir as elementwise
from tilewright.targets.cpu.ops import CPU_OPS

ALL_OPS: tuple[type[Operation], ...] = (*TILE_OPS, *CPU_OPS)


@dataclass(frozen=True)
class Example:
    """The parts of one op's text; `wrap` puts it into another op's region as its terminator."""

    operands: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    properties: str = ""
    regions: str = ""
    wrap: str = ""


P = "!tt.ptr<f32>"
TILE, MASK, INT = "tensor<8xf32>", "tensor<8xi1>", "tensor<8xi32>"
POINTERS = f"tensor<8x{P}>"
BLOCK = "!tt.ptr<tensor<8x8xf32>>"
DESC = "!tt.tensordesc<tensor<8x8xf32>>"
SQUARE = "tensor<8x8xf32>"
VECTOR, VMASK = "vector<8xf32>", "vector<8xi1>"
VPOINTERS = f"vector<8x{P}>"


def segments(*sizes: int) -> str:
    """The property that says how many operands each optional or variadic one has."""
    return f"operandSegmentSizes = array<i32: {', '.join(map(str, sizes))}>"


def combine_region(terminator: str) -> str:
    """A combine region that adds two f32."""
    return f"""({{
  ^bb0(%x: f32, %y: f32):
    %z = "arith.addf"(%x, %y) : (f32, f32) -> f32 loc("k.py":5:1)
    "{terminator}"(%z) : (f32) -> () loc("k.py":6:1)
  }})"""


REDUCE = combine_region("tt.reduce.return")
SCAN = combine_region("tt.scan.return")
LANES = combine_region("cpu.yield")
NEST = '({ "cpu.yield"() : () -> () loc("k.py":7:1) })'
RMW = "atomic_rmw_op = 5 : i32, sem = 4 : i32, scope = 1 : i32"
ZERO = "axis = 0 : i32"

EXAMPLES: dict[str, Example] = {
    "tt.func": Example(),
    "tt.return": Example(),
    "tt.call": Example(("i32",), ("i32",), "callee = @other"),
    "tt.get_program_id": Example((), ("i32",), ZERO),
    "tt.get_num_programs": Example((), ("i32",), ZERO),
    "tw.get_grid_extent": Example((), ("i32",), ZERO),
    "arith.constant": Example((), (TILE,), "value = dense<1.5> : tensor<8xf32>"),
    "tt.make_range": Example((), (INT,), "start = 0 : i32, end = 8 : i32"),
    "tt.splat": Example(("f32",), (TILE,)),
    "tt.unsplat": Example(("tensor<1xf32>",), ("f32",)),
    "tt.expand_dims": Example((TILE,), ("tensor<1x8xf32>",), ZERO),
    "tt.broadcast": Example(("tensor<1x8xf32>",), (SQUARE,)),
    "tt.reshape": Example((SQUARE,), ("tensor<64xf32>",), "allow_reorder"),
    "tt.trans": Example((SQUARE,), (SQUARE,), "order = array<i32: 1, 0>"),
    "tt.join": Example((TILE, TILE), ("tensor<8x2xf32>",)),
    "tt.split": Example(("tensor<8x2xf32>",), (TILE, TILE)),
    "tt.cat": Example((TILE, TILE), ("tensor<16xf32>",)),
    "tw.flip": Example((TILE,), (TILE,), ZERO),
    "arith.cmpi": Example((INT, INT), (MASK,), "predicate = 2 : i64"),
    "arith.cmpf": Example((TILE, TILE), (MASK,), "predicate = 4 : i64"),
    "arith.select": Example((MASK, TILE, TILE), (TILE,)),
    "math.fma": Example((TILE,) * 3, (TILE,), "fastmath = #arith.fastmath<none>"),
    "tt.extern_elementwise": Example(
        (TILE,), (TILE,), 'libname = "", libpath = "", symbol = "__nv_erfcf", pure = true'
    ),
    "tt.clampf": Example((TILE,) * 3, (TILE,), "propagateNan = 0 : i32"),
    "arith.sitofp": Example((INT,), (TILE,)),
    "arith.uitofp": Example((INT,), (TILE,)),
    "arith.fptosi": Example((TILE,), (INT,)),
    "arith.fptoui": Example((TILE,), (INT,)),
    "arith.extsi": Example((INT,), ("tensor<8xi64>",)),
    "arith.extui": Example((INT,), ("tensor<8xi64>",)),
    "arith.trunci": Example((INT,), ("tensor<8xi8>",)),
    "arith.extf": Example((TILE,), ("tensor<8xf64>",)),
    "arith.truncf": Example((TILE,), ("tensor<8xbf16>",)),
    "arith.bitcast": Example((TILE,), (INT,)),
    "tt.bitcast": Example((POINTERS,), ("tensor<8x!tt.ptr<i32>>",)),
    "arith.index_cast": Example(("index",), ("i32",)),
    "tt.int_to_ptr": Example(("i64",), (P,)),
    "tt.ptr_to_int": Example((P,), ("i64",)),
    "tt.fp_to_fp": Example((TILE,), ("tensor<8xf8E5M2>",), 'rounding = "rtz"'),
    "tt.addptr": Example((POINTERS, INT), (POINTERS,)),
    "tt.load": Example(
        (POINTERS, MASK, TILE), (TILE,), f"cache = 1 : i32, evict = 1 : i32, {segments(1, 1, 1)}"
    ),
    "tt.store": Example((POINTERS, TILE, MASK), (), "cache = 1 : i32, evict = 2 : i32"),
    "tt.make_tensor_ptr": Example(
        (P, "i64", "i64", "i64", "i64", "i32", "i32"),
        (BLOCK,),
        f"order = array<i32: 1, 0>, {segments(1, 2, 2, 2)}",
    ),
    "tt.advance": Example((BLOCK, "i32", "i32"), (BLOCK,)),
    "tt.make_tensor_descriptor": Example(
        (P, "i32", "i32", "i64", "i64"), (DESC,), f"padding = 1 : i32, {segments(1, 2, 2)}"
    ),
    "tt.descriptor_load": Example((DESC, "i32", "i32"), (SQUARE,)),
    "tt.descriptor_store": Example((DESC, SQUARE, "i32", "i32"), ()),
    "tt.descriptor_reduce": Example((DESC, SQUARE, "i32", "i32"), (), "kind = 5 : i32"),
    "tt.descriptor_gather": Example((DESC, INT, "i32"), (SQUARE,)),
    "tt.descriptor_scatter": Example((DESC, INT, "i32", SQUARE), ()),
    "tt.dot": Example((SQUARE,) * 3, (SQUARE,), "inputPrecision = 2 : i32"),
    "tt.reduce": Example((TILE,), ("f32",), ZERO, REDUCE),
    "tt.reduce.return": Example(wrap="tt.reduce"),
    "tt.scan": Example((TILE,), (TILE,), f"{ZERO}, reverse = false", SCAN),
    "tt.scan.return": Example(wrap="tt.scan"),
    "tt.gather": Example((TILE, INT), (TILE,), ZERO),
    "tt.histogram": Example((INT, MASK), ("tensor<4xi32>",)),
    "tw.sort": Example((TILE,), (TILE, INT), "descending"),
    "tt.atomic_rmw": Example((POINTERS, TILE, MASK), (TILE,), RMW),
    "tt.atomic_cas": Example((P, "f32", "f32"), ("f32",), "sem = 2 : i32, scope = 3 : i32"),
    "tw.atomic_load": Example((P,), ("f32",), "sem = 2 : i32"),
    "tw.atomic_store": Example((P, "f32"), (), "sem = 3 : i32"),
    "tt.print": Example(
        (TILE, "i32"), (), 'prefix = " x: ", hex = false, isSigned = array<i32: 1, 1>'
    ),
    "tt.assert": Example((MASK,), (), 'message = "m"'),
    "llvm.intr.assume": Example(("i1",)),
    "gpu.barrier": Example(),
    "tw.hint": Example((INT,), (INT,), "divisibility = array<i32: 8>"),
    "tw.clock": Example((), ("i64",)),
    "tt.elementwise_inline_asm": Example(
        (TILE,),
        (TILE,),
        'asm_string = "neg.f32 $0, $1;", constraints = "=f,f", pure = true, '
        "packed_element = 1 : i32",
    ),
    "tw.breakpoint": Example((TILE,), (), 'names = ["x"]'),
    "cpu.nest": Example((), (), "bounds = array<i64: 8>, vector = 8 : i32", NEST),
    "cpu.yield": Example(wrap="cpu.nest"),
    "cpu.alloc": Example((), (P,), 'num_elems = 64 : i64, offset_bytes = 0 : i64, label = "a"'),
    "cpu.iota": Example((), ("vector<8xi32>",)),
    "cpu.load": Example(
        (P, VMASK, VECTOR), (VECTOR,), f"align_bytes = 4 : i64, {segments(1, 1, 1)}"
    ),
    "cpu.store": Example((P, VECTOR, VMASK), (), "nontemporal"),
    "cpu.prefetch": Example((P,), (), "num_lines = 2 : i64, is_write, is_far"),
    "cpu.gather": Example((P, "vector<8xi64>"), (VECTOR,), segments(1, 1, 0, 0)),
    "cpu.scatter": Example((P, "vector<8xi64>", VECTOR)),
    "cpu.load_pointers": Example((VPOINTERS,), (VECTOR,), segments(1, 0, 0)),
    "cpu.store_pointers": Example((VPOINTERS, VECTOR)),
    "cpu.extract": Example((VECTOR, "i32"), ("f32",)),
    "cpu.shuffle": Example((VECTOR, VECTOR), ("vector<2xf32>",), "pattern = array<i32: 0, 9>"),
    "cpu.reduce_lanes": Example((VECTOR,), ("f32",), "", LANES),
    "cpu.dot": Example(
        (P, P, P, "i64", P, P, "i64", P, "i64", "i64", "i64", "i64", P, "i64", "i1", "i1"),
        (),
        f"m = 8 : i64, n = 8 : i64, k = 8 : i64, zero_init, {segments(*(1,) * 16)}",
    ),
    "cpu.pack": Example(
        (P, "i64", P, "i64", "i64", "i64", "i64"),
        (),
        f'rows = 8 : i64, columns = 8 : i64, role = "b", transposed, {segments(*(1,) * 7)}',
    ),
    "cpu.forget": Example((P,), (), "num_elems = 8 : i64"),
    "cpu.is_alone": Example(results=("i1",)),
    "cpu.poll": Example(),
    "cpu.start_count": Example((), ("i64",)),
    "cpu.end_count": Example(("i64",), (), "part = 3 : i64, beside"),
    "cpu.print": Example(
        ("f32", "i32"), (), f'prefix = " x: ", hex = false, shape = array<i64: 8>, {segments(1, 1)}'
    ),
    "cpu.assert": Example(("i1", "i32"), (), 'message = "m"'),
}
EXAMPLES.update(
    {op.name: Example((INT, INT), (INT,)) for op in elementwise.INTEGER_BINARY_OPS}
    | {op.name: Example((TILE, TILE), (TILE,)) for op in elementwise.FLOAT_BINARY_OPS}
    | {op.name: Example((TILE,), (TILE,)) for op in elementwise.UNARY_OPS}
    | {
        name: Example((INT,), (INT,))
        for name in ("math.absi", "math.ctpop", "math.ctlz", "math.cttz")
    }
)


def module_text(name: str) -> str:
    """A module whose kernel holds one instance of the op."""
    example = EXAMPLES[name]
    if example.wrap:
        return module_text(example.wrap)
    arguments = ", ".join(f'%a{i}: {t} loc("k.py":2:{i})' for i, t in enumerate(example.operands))
    types = f"({', '.join(example.operands)})"
    return f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = {types} -> (), sym_visibility = "public"}}> ({{
  ^bb0({arguments}):
    {_line(name, example)}
    "tt.return"() : () -> () loc("k.py":9:1)
  }}) : () -> () loc("k.py":1:1)
}}) : () -> () loc("k.py":1:1)
"""


def _line(name: str, example: Example) -> str:
    if name in ("tt.func", "tt.return"):
        return ""
    operands = ", ".join(f"%a{i}" for i in range(len(example.operands)))
    results = ", ".join(f"%r{i}" for i in range(len(example.results)))
    properties = f" <{{{example.properties}}}>" if example.properties else ""
    regions = f" {example.regions}" if example.regions else ""
    left = f"{results} = " if results else ""
    right = example.results[0] if len(example.results) == 1 else f"({', '.join(example.results)})"
    types = f"({', '.join(example.operands)}) -> {right}"
    where = 'loc(callsite("f.py":3:4 at "k.py":8:2))'
    return f'{left}"{name}"({operands}){properties}{regions} : {types} {where}'
