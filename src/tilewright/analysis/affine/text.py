"""Expressions and accesses in the words of the kernel: names of its variables, where it has any."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, SSAValue

from tilewright.analysis.affine.access import AccessDim, TileAccess
from tilewright.analysis.affine.expression import Expression
from tilewright.ops.program.ir import GetProgramIdOp


def name_of(value: SSAValue) -> str:
    """What a scalar is called: its name in the source, or what makes it."""
    if value.name_hint is not None:
        return value.name_hint
    if isinstance(value, BlockArgument):
        return f"argument {value.index}"
    owner = value.owner
    axis = owner.properties.get("axis") if type(owner) is GetProgramIdOp else None
    if isinstance(axis, IntegerAttr):
        return f"program_id({axis.value.data})"
    return f"a result of {owner.name}"  # pyright: ignore[reportAttributeAccessIssue]


def text_of(expression: Expression) -> str:
    """`128*pid_m + K - 1`."""
    text = ""
    for coefficient, factors in expression.terms:
        names = [name_of(factor) for factor in factors]
        if abs(coefficient) != 1 or not names:
            names.insert(0, str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+"
        text += f" {sign} {'*'.join(names)}" if text else f"{'-' * (sign == '-')}{'*'.join(names)}"
    return text or "0"


def describe_access(access: TileAccess) -> str:
    """An access in one line, dimension by dimension."""
    parts = [f"{name_of(access.base)} + {text_of(access.offset)}"]
    parts += [_describe_dim(dim) for dim in access.dims]
    mask = access.mask
    parts += [f"where {text_of(number)} > 0" for number in mask.positive]
    parts += [f"where {name_of(condition)}" for condition in mask.conditions]
    parts += ["where a mask says so"] * bool(mask.opaque)
    return "; ".join(parts)


def _describe_dim(dim: AccessDim) -> str:
    """`128 of stride K from 128*pid_m to M`: what stands behind `to` is no longer accessed."""
    text = f"{dim.extent} of stride {text_of(dim.stride)} from {text_of(dim.start)}"
    if dim.indices is not None:
        text += f" + {name_of(dim.indices)}[i]"
    if dim.modulus is not None:
        text += f" mod {text_of(dim.modulus)}"
    text += "".join(f" not below {text_of(dim.start.plus(low))}" for low in dim.lower)
    return text + "".join(f" to {text_of(dim.start.plus(high))}" for high in dim.upper)
