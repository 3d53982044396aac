"""Functions: the kernel and what it returns."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)

from tilewright.ir.effects import Effect, Resource, update
from tilewright.ir.locations import span_of
from tilewright.ir.op import TileOp
from tilewright.ir.types import shape_of
from tilewright.support.errors import InternalError, MalformedText


@irdl_op_definition
class FuncOp(TileOp):
    """A function of tiles; a module holds one public `tt.func`, the kernel.

    `arg_attrs` carries per argument facts as `tt.divisibility` (bytes for a pointer, elements
    for an integer) and `tt.name`, the parameter's name in the source.
    """

    name = "tt.func"
    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    sym_visibility = opt_prop_def(StringAttr)
    arg_attrs = opt_prop_def()
    res_attrs = opt_prop_def()
    noinline = opt_prop_def()
    body = region_def()
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), RecursiveMemoryEffect())

    def argument_facts(self, index: int) -> dict[str, object]:
        """The attribute dictionary of argument `index` (empty when it has none)."""
        if self.arg_attrs is None:
            return {}
        assert isinstance(self.arg_attrs, ArrayAttr)
        entry = self.arg_attrs.data[index]
        assert isinstance(entry, DictionaryAttr)
        return dict(entry.data)


def functions_of(module: ModuleOp) -> tuple[FuncOp, ...]:
    """The functions of a module, in order."""
    return tuple(op for op in module.body.block.ops if isinstance(op, FuncOp))


def is_argument(value: SSAValue) -> bool:
    """Whether a value is an argument of a function."""
    return isinstance(value, BlockArgument) and isinstance(value.block.parent_op(), FuncOp)


def function_around(op: Operation) -> FuncOp:
    """The function that an op stands in."""
    around: Operation | None = op
    while not isinstance(around, FuncOp):
        assert around is not None, f"{op.name} stands in no function"
        around = around.parent_op()
    return around


def find_kernel(module: ModuleOp) -> FuncOp:
    """The one function of a module."""
    functions = functions_of(module)
    if not functions:
        raise InternalError("the module holds no kernel")
    return functions[0]


def require_launchable(kernel: FuncOp) -> None:
    """Refuse a function that no launch can call.

    A launch gives numbers and pointers, and takes nothing back; tiles are made inside. Passes
    that look at single ops work on functions of tiles as well, the way to a target does not.
    Raises: MalformedText.
    """
    given = ((f"argument {index}", v) for index, v in enumerate(kernel.body.block.args))
    end = kernel.body.block.last_op
    returned = () if end is None else ((f"result {i}", v) for i, v in enumerate(end.operands))
    for name, value in (*given, *returned):
        if name.startswith("argument") and not shape_of(value.type):
            continue
        raise MalformedText(
            f"tt.func: {name} of the kernel `{kernel.sym_name.data}` is {value.type}, "
            "which no launch can give or take",
            hint="take pointers and numbers, load and store tiles, and return nothing",
            span=span_of(kernel)[0],
        )


@irdl_op_definition
class ReturnOp(TileOp):
    """The end of a function."""

    name = "tt.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())


@irdl_op_definition
class CallOp(TileOp):
    """A call that was not inlined (TTIR written elsewhere has them; ours inlines)."""

    name = "tt.call"
    callee = prop_def()
    arguments = var_operand_def()
    outputs = var_result_def()

    def effects(self) -> tuple[Effect, ...]:
        return (update(Resource.ANY),)
