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


@dataclass(frozen=True)
class WgmmaStep:
    """What one instruction multiplies: A by its descriptor or as four i32, B by its descriptor."""

    a: str | tuple[str, ...]
    b: str


@dataclass(frozen=True)
class WgmmaChain:
    """Instructions that add up in the same accumulators, one after another."""

    accumulators: tuple[str, ...]
    steps: tuple[WgmmaStep, ...]


def emit_product(
    fn: FunctionBuilder,
    shape: WgmmaShape,
    chains: Sequence[WgmmaChain],
    *,
    accumulates: bool,
    transposes: tuple[bool, bool],
    waits: bool,
) -> list[str]:
    """Start a product as a group of its own; the accumulators' new names, chain by chain.

    Without `accumulates` what was in the accumulators does not enter, and they are only written.
    With `waits` the product has ended behind it.

    *Why* one statement of assembly for all: registers are fenced by it, so that nothing that makes
    them can move behind the fence, where the assembler would answer with a fence of its own for
    each instruction; and LLVM hands on accumulators once, not at each instruction.
    """
    accumulators = [name for chain in chains for name in chain.accumulators]
    operands = _Operands(shape, len(accumulators) * (2 if accumulates else 1))
    texts = ["wgmma.fence.sync.aligned"]
    first = 0
    for chain in chains:
        registers = ", ".join(f"${first + i}" for i in range(len(chain.accumulators)))
        for number, step in enumerate(chain.steps):
            adds = "adds" if accumulates or number else "sets"
            flags = ", ".join((adds, *_flags(shape, step, transposes)))
            a, b = operands.place(step.a), operands.place(step.b)
            texts.append(f"{shape.opcode} {{{registers}}}, {a}, {b}, {flags}")
        first += len(chain.accumulators)
    texts.append("wgmma.commit_group.sync.aligned")
    if waits:
        texts.append("wgmma.wait_group.sync.aligned 0")
    predicates = ".reg .pred sets, adds; setp.ne.b32 sets, 0, 0; setp.ne.b32 adds, 1, 0"
    text = f"{{ {predicates}; {'; '.join(texts)}; }}"
    # Results are written while later instructions still read their operands.
    kinds = [shape.register_kind] * len(accumulators)
    constraints = [f"=&{_constraint(kind)}" for kind in kinds]
    arguments: list[str] = []
    if accumulates:
        constraints += [str(index) for index in range(len(accumulators))]
        arguments += [f"{shape.register_kind} {name}" for name in accumulators]
    constraints += operands.constraints
    return _call(fn, text, constraints, [*arguments, *operands.arguments], kinds)


class _Operands:
    """Operands of a statement of assembly, each one named once, from number `first` on."""

    def __init__(self, shape: WgmmaShape, first: int) -> None:
        self.shape, self.first = shape, first
        self.places: dict[str, str] = {}
        self.constraints: list[str] = []
        self.arguments: list[str] = []

    def place(self, operand: str | tuple[str, ...]) -> str:
        """What an instruction writes for a descriptor, or for words in registers."""
        if isinstance(operand, str):
            return self._one("i64", operand)
        return "{" + ", ".join(self._one("i32", word) for word in operand) + "}"

    def _one(self, kind: str, name: str) -> str:
        if name not in self.places:
            self.places[name] = f"${self.first + len(self.places)}"
            self.constraints.append(_constraint(kind))
            self.arguments.append(f"{kind} {name}")
        return self.places[name]


def _flags(shape: WgmmaShape, step: WgmmaStep, transposes: tuple[bool, bool]) -> list[str]:
    """The immediates of an instruction: signs of A and B, and which of them are transposed."""
    signs = ["1", "1"] if shape.takes_scales else []
    if not shape.takes_transposes:
        return signs
    shared = transposes if isinstance(step.a, str) else transposes[1:]
    return [*signs, *(str(int(is_transposed)) for is_transposed in shared)]


def emit_wait(fn: FunctionBuilder, pending: int, registers: Sequence[tuple[str, str]]) -> list[str]:
    """Wait until at most `pending` groups run; the registers, (type, name), named anew.

    Tied to the wait, no use of them can move above it.
    """
    text = f"wgmma.wait_group.sync.aligned {pending};"
    if not registers:
        fn.emit(f'call void asm sideeffect "{text}", ""() {_COLLECTIVE}')
        return []
    kinds = [kind for kind, _ in registers]
    constraints = [f"={_constraint(kind)}" for kind in kinds]
    constraints += [str(index) for index in range(len(registers))]
    return _call(fn, text, constraints, [f"{kind} {name}" for kind, name in registers], kinds)


def _constraint(kind: str) -> str:
    return {"float": "f", "i32": "r", "i16": "h", "double": "d", "i64": "l"}[kind]


def _call(
    fn: FunctionBuilder,
    text: str,
    constraints: Sequence[str],
    arguments: Sequence[str],
    kinds: Sequence[str],
) -> list[str]:
    """A statement of assembly; the names of its results."""
    result = kinds[0] if len(kinds) == 1 else "{" + ", ".join(kinds) + "}"
    call = f'call {result} asm sideeffect "{text}", "{",".join(constraints)}"'
    value = fn.value(f"{call}({', '.join(arguments)}) {_COLLECTIVE}")
    if len(kinds) == 1:
        return [value]
    return [fn.value(f"extractvalue {result} {value}, {index}") for index in range(len(kinds))]
