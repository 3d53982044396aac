"""The text of wgmma: matrix descriptors, the instruction, and the wait that ties results.

Source: PTX ISA 8.8, 9.7.15 "Asynchronous Warpgroup Level Matrix Multiply-Accumulate"; which forms
ptxas does not serialize was measured (docs/internals, Hopper).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.support.dataclass import dataclass

# Source: PTX ISA 8.8, "Matrix descriptor": bits 62 and 63.
_SWIZZLE_CODES = {16: 0, 128: 1, 64: 2, 32: 3}
# Source: PTX ISA 8.8, "Matrix descriptor": bits 0 to 13 are those 4 to 17 of an address.
_ADDRESS_BITS = 0x3FFFF
# All threads of a warp group execute it together: LLVM must not move it behind other conditions.
_COLLECTIVE = "convergent nounwind"


@dataclass(frozen=True)
class SharedOperand:
    """How an operand lies in shared memory, as the instruction reads it.

    `fast_dim` is the dim that is contiguous, in rows of `swizzle_bytes`; as many such panels as
    the dim needs follow each other, `panel_bytes` apart. `k_dim` is the dim that is summed.
    """

    k_dim: int
    fast_dim: int
    swizzle_bytes: int
    panel_bytes: int
    element_bytes: int

    @property
    def is_transposed(self) -> bool:
        """Whether M or N is contiguous instead of K."""
        return self.fast_dim != self.k_dim

    def offset(self, outer: int, k: int) -> int:
        """The byte offset of the part that starts at row or column `outer` and at `k`."""
        fast, slow = (outer, k) if self.is_transposed else (k, outer)
        panel, column = divmod(fast * self.element_bytes, self.swizzle_bytes)
        return panel * self.panel_bytes + slow * self.swizzle_bytes + column

    def constant_bits(self) -> int:
        """The descriptor but for its address: strides and swizzle.

        *Semantics*: the stride leads from 8 rows to the next 8, the leading offset from panel
        to panel; where M or N is contiguous and nothing swizzled, the other way around.
        *Source*: PTX ISA 8.8, 9.7.15.5.1.2.1, "Strides".
        """
        stride = 8 * self.swizzle_bytes >> 4
        has_leading = self.is_transposed or self.swizzle_bytes == 16
        leading = self.panel_bytes >> 4 if has_leading else 1
        if self.is_transposed and self.swizzle_bytes == 16:
            leading, stride = stride, leading
        return leading << 16 | stride << 32 | _SWIZZLE_CODES[self.swizzle_bytes] << 62


def descriptor_base(fn: FunctionBuilder, address: str, operand: SharedOperand) -> str:
    """The descriptor (i64) of an operand that starts at the shared address `address` (i32)."""
    kept = fn.value(f"and i32 {address}, {_ADDRESS_BITS}")
    shifted = fn.value(f"lshr i32 {kept}, 4")
    wide = fn.value(f"zext i32 {shifted} to i64")
    return fn.value(f"or i64 {wide}, {_signed(operand.constant_bits())}")


def advanced(fn: FunctionBuilder, descriptor: str, offset_bytes: int) -> str:
    """The descriptor of what lies `offset_bytes` behind."""
    if offset_bytes == 0:
        return descriptor
    return fn.value(f"add i64 {descriptor}, {offset_bytes >> 4}")


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits


@dataclass(frozen=True)
class WgmmaShape:
    """One kind of instruction: its N and K, and the PTX names of its types."""

    columns: int
    depth: int
    accumulator: str
    a: str
    b: str

    @property
    def register_kind(self) -> str:
        """The LLVM type of one accumulator register."""
        return "float" if self.accumulator == "f32" else "i32"

    @property
    def constraint(self) -> str:
        """The constraint of one accumulator register in inline assembly."""
        return "f" if self.accumulator == "f32" else "r"

    @property
    def num_registers(self) -> int:
        """The accumulator registers of a thread."""
        return self.columns // (4 if self.accumulator == "f16" else 2)

    @property
    def opcode(self) -> str:
        """The mnemonic."""
        shape = f"m64n{self.columns}k{self.depth}"
        return f"wgmma.mma_async.sync.aligned.{shape}.{self.accumulator}.{self.a}.{self.b}"

    @property
    def takes_scales(self) -> bool:
        """Whether the instruction has signs for A and B: floating point ones do."""
        return self.accumulator != "s32"

    @property
    def takes_transposes(self) -> bool:
        """Whether shared operands of it may have M or N contiguous: 16-bit ones."""
        return self.a in ("f16", "bf16")


def emit_wgmma(
    fn: FunctionBuilder,
    shape: WgmmaShape,
    accumulators: Sequence[str],
    a: str | Sequence[str],
    b: str,
    accumulates: bool,
    transposes: tuple[bool, bool],
) -> list[str]:
    """Start one product: the accumulators' new names. `a` is a descriptor or four i32.

    Without `accumulates` what was in the accumulators does not enter, and they are only written.
    """
    count = len(accumulators)
    registers = ", ".join(f"${i}" for i in range(count))
    position = 2 * count if accumulates else count
    in_registers = not isinstance(a, str)
    a_values = list(a) if in_registers else [str(a)]
    names = [f"${position + i}" for i in range(len(a_values))]
    position += len(a_values)
    a_text = "{" + ", ".join(names) + "}" if in_registers else names[0]
    flags = ["p"]
    if shape.takes_scales:
        flags += ["1", "1"]
    if shape.takes_transposes:
        flags += [] if in_registers else [str(int(transposes[0]))]
        flags.append(str(int(transposes[1])))
    text = (
        f"{{ .reg .pred p; setp.ne.b32 p, ${position + 1}, 0; {shape.opcode} "
        f"{{{registers}}}, {a_text}, ${position}, {', '.join(flags)}; }}"
    )
    kind, constraint = shape.register_kind, shape.constraint
    constraints = [f"={constraint}"] * count
    arguments: list[str] = []
    if accumulates:
        constraints += [str(i) for i in range(count)]
        arguments = [f"{kind} {name}" for name in accumulators]
    constraints += ["r"] * len(a_values) if in_registers else ["l"]
    constraints += ["l", "r"]
    arguments += [f"{'i32' if in_registers else 'i64'} {value}" for value in a_values]
    arguments += [f"i64 {b}", f"i32 {int(accumulates)}"]
    return _call(fn, text, constraints, arguments, kind, count)


def emit_wait(fn: FunctionBuilder, pending: int, registers: Sequence[tuple[str, str]]) -> list[str]:
    """Wait until at most `pending` groups run; the registers, (type, name), named anew.

    Tied to the wait, no use of them can move above it.
    """
    return _tied(fn, f"wgmma.wait_group.sync.aligned {pending};", registers)


def emit_fence(fn: FunctionBuilder, registers: Sequence[tuple[str, str]]) -> list[str]:
    """Order the writes of registers before the products that read them; their names anew.

    Tied to the fence, nothing that makes them can move below it, where the assembler would
    answer with a fence of its own for each product.
    """
    return _tied(fn, "wgmma.fence.sync.aligned;", registers)


def _tied(fn: FunctionBuilder, text: str, registers: Sequence[tuple[str, str]]) -> list[str]:
    if not registers:
        fn.emit(f'call void asm sideeffect "{text}", ""() {_COLLECTIVE}')
        return []
    outputs = [f"={_constraint(kind)}" for kind, _ in registers]
    ties = [str(index) for index in range(len(registers))]
    kinds = [kind for kind, _ in registers]
    arguments = [f"{kind} {name}" for kind, name in registers]
    result = "{" + ", ".join(kinds) + "}"
    return _extract(fn, result, text, [*outputs, *ties], arguments, len(registers))


def _constraint(kind: str) -> str:
    return {"float": "f", "i32": "r", "i16": "h", "double": "d", "i64": "l"}[kind]


def _call(
    fn: FunctionBuilder,
    text: str,
    constraints: Sequence[str],
    arguments: Sequence[str],
    kind: str,
    count: int,
) -> list[str]:
    result = "{" + ", ".join([kind] * count) + "}"
    return _extract(fn, result, text, constraints, arguments, count)


def _extract(
    fn: FunctionBuilder,
    result: str,
    text: str,
    constraints: Sequence[str],
    arguments: Sequence[str],
    count: int,
) -> list[str]:
    if count == 1:
        kind = result.strip("{}")
        call = f'call {kind} asm sideeffect "{text}", "{",".join(constraints)}"'
        return [fn.value(f"{call}({', '.join(arguments)}) {_COLLECTIVE}")]
    call = f'call {result} asm sideeffect "{text}", "{",".join(constraints)}"'
    value = fn.value(f"{call}({', '.join(arguments)}) {_COLLECTIVE}")
    return [fn.value(f"extractvalue {result} {value}, {index}") for index in range(count)]


def emit_commit(fn: FunctionBuilder) -> None:
    """Close the group of the products started so far."""
    fn.emit("call void @llvm.nvvm.wgmma.commit_group.sync.aligned()")
