"""Foreign code applied to each element."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr
from xdsl.irdl import (
    irdl_op_definition,
    prop_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.effects import Effect, Resource, update
from tilewright.ir.op import ByHalvesOp
from tilewright.ir.types import shape_of


@irdl_op_definition
class InlineAsmOp(ByHalvesOp):
    """Assembly of one GPU applied to `packed_element` neighbouring elements at a time.

    `constraints` are LLVM's, outputs first; elements under 32 bits share 32-bit operands.
    """

    name = "tt.elementwise_inline_asm"
    asm_string = prop_def(StringAttr)
    constraints = prop_def(StringAttr)
    pure = prop_def(BoolAttr)
    packed_element = prop_def(IntegerAttr)
    srcs = var_operand_def()
    outputs = var_result_def()

    def effects(self) -> tuple[Effect, ...]:
        return () if self.pure.value.data else (update(Resource.ANY),)

    def verify_(self) -> None:
        """All tiles have one shape."""
        shapes = {shape_of(value.type) for value in (*self.srcs, *self.outputs)}
        if len(shapes) != 1:
            raise VerifyException(f"tt.elementwise_inline_asm: tiles of shapes {shapes}")
