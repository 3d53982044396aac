"""One multiply-add of vectors: the instructions that a product is made of."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.support.errors import InternalError
from tilewright.targets.cpu.dot.panels import Instruction, Multiply
from tilewright.targets.cpu.dot.vectors import shuffle

# By definition: the instructions for products of bytes, by the types of A and B.
_NEON_DOTS = {
    ("i8", "i8"): "sdot",
    ("u8", "u8"): "udot",
    ("u8", "i8"): "usdot",
    ("i8", "u8"): "usdot",
}
_NEON_2X2 = {
    ("i8", "i8"): "smmla",
    ("u8", "u8"): "ummla",
    ("u8", "i8"): "usmmla",
    ("i8", "u8"): "usmmla",
}


def emit_multiply_add(
    fn: FunctionBuilder, multiply: Multiply, lanes: int, acc: str, a: str, b: str
) -> str:
    """`acc + a·b` with the instruction of `multiply`, over one k-group of each of `lanes` columns.

    `a` is a row's k-group in every lane, or those of two rows for a 2x2 product.
    """
    type_ = f"<{lanes} x {multiply.accumulator_type}>"
    match multiply.instruction:
        case Instruction.FMA:
            name = f"llvm.fma.v{lanes}{multiply.accumulator}"
            callee = fn.module.declare(name, type_, f"{type_}, {type_}, {type_}")
            return fn.value(f"call {type_} {callee}({type_} {a}, {type_} {b}, {type_} {acc})")
        case Instruction.MULTIPLY_ADD:
            product = fn.value(f"fmul {type_} {a}, {b}")
            return fn.value(f"fadd {type_} {acc}, {product}")
        case Instruction.I32:
            product = fn.value(f"mul {type_} {a}, {b}")
            return fn.value(f"add {type_} {acc}, {product}")
        case Instruction.I16_PAIRS:
            return fn.value(f"add {type_} {acc}, {_i16_pair_sums(fn, lanes, a, b)}")
        case Instruction.BF16_DOT:
            base = "llvm.x86.avx512bf16.dpbf16ps"
            return _group_dot(fn, f"{base}.{32 * lanes}", lanes, "2 bfloat", acc, a, b)
        case Instruction.I8_DOT:
            first, second = (a, b) if _is_a_unsigned(multiply) else (b, a)
            return _byte_dot(fn, lanes, acc, first, second)
        case Instruction.BF16_DOT_NEON:
            name = f"llvm.aarch64.neon.bfdot.v{lanes}f32.v{2 * lanes}bf16"
            return _group_dot(fn, name, lanes, "2 bfloat", acc, a, b)
        case Instruction.I8_DOT_NEON:
            kind = _NEON_DOTS[multiply.a_element, multiply.b_element]
            name = f"llvm.aarch64.neon.{kind}.v{lanes}i32.v{4 * lanes}i8"
            # `usdot` takes the unsigned operand first.
            first, second = (b, a) if multiply.a_element == "i8" and kind == "usdot" else (a, b)
            return _group_dot(fn, name, lanes, "4 i8", acc, first, second)
        case Instruction.BF16_2X2_NEON:
            types = ("<4 x float>", "<8 x bfloat>")
            return _product_2x2(fn, "llvm.aarch64.neon.bfmmla", types, acc, a, b)
        case Instruction.I8_2X2_NEON:
            kind = _NEON_2X2[multiply.a_element, multiply.b_element]
            first, second = (b, a) if multiply.has_columns_first else (a, b)
            name, types = f"llvm.aarch64.neon.{kind}.v4i32.v16i8", ("<4 x i32>", "<16 x i8>")
            return _product_2x2(fn, name, types, acc, first, second)
        case Instruction.AMX:
            raise InternalError("AMX multiplies tiles, not vectors")


def row_of_2x2(fn: FunctionBuilder, multiply: Multiply, sums: Sequence[str], row: int) -> str:
    """One of the two rows of an accumulator and of the one beside it, if there is one."""
    lanes = (row, row + 2) if multiply.has_columns_first else (2 * row, 2 * row + 1)
    chosen = [4 * side + lane for side in range(len(sums)) for lane in lanes]
    return shuffle(fn, 4, multiply.accumulator_type, sums[0], sums[-1], chosen)


def _is_a_unsigned(multiply: Multiply) -> bool:
    """Whether A is the unsigned operand of `vpdpbusd`; a bias turns its sign around."""
    return (multiply.a_element == "u8") != multiply.bias_a


def add_column_sums(fn: FunctionBuilder, multiply: Multiply, lanes: int, acc: str, b: str) -> str:
    """`acc + Σ b` over one k-group: what each unit of A's bias adds to a column."""
    ones = f"splat (i32 {0x01010101})"
    is_b_unsigned = not _is_a_unsigned(multiply)
    first, second = (b, ones) if is_b_unsigned else (ones, b)
    return _byte_dot(fn, lanes, acc, first, second)


def take_off_bias(
    fn: FunctionBuilder, multiply: Multiply, lanes: int, value: str, sums: str
) -> str:
    """A signed A was raised by 128 to become unsigned, an unsigned one lowered to be signed."""
    type_ = f"<{lanes} x {multiply.accumulator_type}>"
    excess = fn.value(f"shl {type_} {sums}, splat (i32 7)")
    sign = "sub" if multiply.a_element == "i8" else "add"
    return fn.value(f"{sign} {type_} {value}, {excess}")


def _byte_dot(fn: FunctionBuilder, lanes: int, acc: str, unsigned: str, signed: str) -> str:
    name = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"
    return _group_dot(fn, name, lanes, "4 i8", acc, unsigned, signed)


def _group_dot(
    fn: FunctionBuilder, name: str, lanes: int, group: str, acc: str, a: str, b: str
) -> str:
    """A call of an intrinsic that adds the products of a group (`4 i8`) to each lane."""
    count, element = group.split()
    parts = f"<{lanes * int(count)} x {element}>"
    acc_type = f"<{lanes} x {'float' if element == 'bfloat' else 'i32'}>"
    callee = fn.module.declare(name, acc_type, f"{acc_type}, {parts}, {parts}")
    first, second = (_parts(fn, lanes, value, parts) for value in (a, b))
    operands = f"{acc_type} {acc}, {parts} {first}, {parts} {second}"
    return fn.value(f"call {acc_type} {callee}({operands})")


def _product_2x2(
    fn: FunctionBuilder, name: str, types: tuple[str, str], acc: str, a: str, b: str
) -> str:
    """A call of an intrinsic that multiplies two rows by two columns, a k-group of each a half of
    `a` and `b`; `types`: of the four sums, and of the elements in `a` and `b`."""
    sums, parts = types
    callee = fn.module.declare(name, sums, f"{sums}, {parts}, {parts}")
    first, second = (fn.value(f"bitcast <2 x i64> {value} to {parts}") for value in (a, b))
    return fn.value(f"call {sums} {callee}({sums} {acc}, {parts} {first}, {parts} {second})")


def _parts(fn: FunctionBuilder, lanes: int, value: str, type_: str) -> str:
    return fn.value(f"bitcast <{lanes} x i32> {value} to {type_}")


def _i16_pair_sums(fn: FunctionBuilder, lanes: int, a: str, b: str) -> str:
    names = {
        16: "llvm.x86.avx512.pmaddw.d.512",
        8: "llvm.x86.avx2.pmadd.wd",
        4: "llvm.x86.sse2.pmadd.wd",
    }
    parts, sums = f"<{2 * lanes} x i16>", f"<{lanes} x i32>"
    callee = fn.module.declare(names[lanes], sums, f"{parts}, {parts}")
    first, second = (_parts(fn, lanes, value, parts) for value in (a, b))
    return fn.value(f"call {sums} {callee}({parts} {first}, {parts} {second})")
