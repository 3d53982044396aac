"""What hooks are told about the compilation of a kernel."""

from __future__ import annotations

from typing import cast

from tilewright.frontend.bound_call import compiled_for
from tilewright.frontend.program import Specialization, TupleType, TypeTree
from tilewright.jit import Call
from tilewright.support.options import option_names

from ..compiler.source import ASTSource, KernelFunction


def source_of(function: KernelFunction, specialization: Specialization) -> ASTSource:
    """The `ASTSource` that stands for a specialisation."""
    names = [name for name, _ in specialization.signature]
    constants: dict[str | tuple[int, ...], object] = {
        (names.index(str(path[0])), *cast("tuple[int, ...]", path[1:])): value
        for path, value in specialization.constants.items()
    }
    attributes = {
        (names.index(str(path[0])), *cast("tuple[int, ...]", path[1:])): [
            ["tt.divisibility", divisor]
        ]
        for path, divisor in specialization.divisibility.items()
    }
    signature = {name: _type_words(type_) for name, type_ in specialization.signature}
    return ASTSource(function, signature, constants, attributes)


def _type_words(type_: TypeTree) -> object:
    return tuple(_type_words(t) for t in type_.items) if isinstance(type_, TupleType) else type_


class JitFunctionInfo:
    """What compile hooks are told about the function."""

    def __init__(self, module: str, name: str, jit_function: KernelFunction) -> None:
        self.module = module
        self.name = name
        self.jit_function = jit_function


def hook_info(function: KernelFunction, call: Call, is_warmup: bool) -> dict[str, object]:
    """What hooks are told about a call that is compiled for; `is_warmup` where it is not run."""
    source = source_of(function, compiled_for(call))
    options = {name: getattr(call.options, name) for name in ("num_warps", "num_stages")}
    types = ", ".join(f"{name}: {type_}" for name, type_ in source.signature.items())
    key = source.hash()
    specialization = {
        "name": function.__name__,
        "key": key,
        "signature": source.signature,
        "constants": source.constants,
        "attrs": source.attrs,
        "options": options,
    }
    from .preload import serialize  # loads JSON, which few programs need

    compile_info = {
        **{name: getattr(call.options, name) for name in option_names()},
        **{"key": key, "signature": source.signature, "device": 0},
        **{"constants": source.constants, "configs": [source.attrs], "extern_libs": None},
        **{"specialization_data": serialize(specialization), "is_warmup": is_warmup},
    }
    return {
        "key": key,
        "repr": f"{function.__name__}[num_warps={call.options.num_warps}]({types})",
        "fn": JitFunctionInfo(function.module, function.__name__, function),
        "compile": compile_info,
        "is_manual_warmup": is_warmup,
        "already_compiled": False,
    }
