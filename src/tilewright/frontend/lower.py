"""From a compile request to the tile IR (T0): one module with one public function."""

from __future__ import annotations

import sys

from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp, StringAttr
from xdsl.ir import Block, Region

from tilewright.frontend import expressions, loops, places, statements
from tilewright.frontend.calls import call_function
from tilewright.frontend.cleanup import remove_unused
from tilewright.frontend.debugging import has_breakpoints, mark_line
from tilewright.frontend.frame import Frame, Lowering
from tilewright.frontend.inlining import run_body
from tilewright.frontend.kernel_arguments import KernelArguments
from tilewright.frontend.lowering_state import FunctionCode, KernelBuilder
from tilewright.frontend.program import LoweringRequest
from tilewright.frontend.promises import keep_promises
from tilewright.machine.model import ABSTRACT
from tilewright.ops.extensions import add_extensions
from tilewright.ops.function import FuncOp, ReturnOp
from tilewright.support.errors import TilewrightError

# The modules whose import registers the rules of the language.
RULE_MODULES = (expressions, loops, places, statements)


def lower_kernel(request: LoweringRequest) -> ModuleOp:
    """The T0 module of a kernel: `builtin.module` with one public `tt.func`.

    Raises: CompileError for programs that the language does not have, with position and remedy.
    """
    add_extensions(request.extensions)
    body = Block()
    builder = KernelBuilder(body, request.options, lambda f, a: call_function(lowering, f, a))
    builder.target = str(getattr(request, "target", "interpreter"))
    builder.machine = getattr(request, "machine", ABSTRACT)
    lowering = Lowering(request, builder)
    if request.options.get("interpret") and has_breakpoints(request.functions):
        lowering.before_statement = mark_line
    code = lowering.code(request.kernel)
    frame = Frame(lowering, code)
    lowering.frames.append(frame)
    try:
        arguments = KernelArguments(frame, body)
        arguments.bind(request.specialization)
        run_body(frame)
    except TilewrightError as error:
        frame.place(error, code.node)
        raise
    frame.at(code.node).emit(ReturnOp)
    keep_promises(body)
    remove_unused(body)
    sys.stdout.write("".join(lowering.messages))
    return _module(frame, code, body, arguments)


def _module(frame: Frame, code: FunctionCode, body: Block, arguments: KernelArguments) -> ModuleOp:
    location = frame.location(code.node)
    function = FuncOp.create(
        properties={
            "sym_name": StringAttr(code.source.name),
            "function_type": FunctionType.from_lists([a.type for a in body.args], []),
            "sym_visibility": StringAttr("public"),
            "arg_attrs": ArrayAttr(arguments.attributes),
        },
        regions=[Region(body)],
        location=location,
    )
    module = ModuleOp([function])
    module.location = location
    return module
