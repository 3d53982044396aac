"""What a compiled kernel is compiled for anew where an argument is not the constant that it has.

An integer that was 1 and an argument that was None are constants of a compiled kernel. Programs
keep the kernel of a `warmup` and launch it with other values: with the constants, the result would
be that of the first ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.frontend.program import FunctionSource, Parameter, Specialization
from tilewright.frontend.signature import specialize
from tilewright.support.dataclass import replace


def with_other_constants(
    function: FunctionSource, known: Specialization, arguments: Mapping[str, object]
) -> Specialization:
    """What a kernel is compiled for, with the arguments that are other than its 1 or None.

    Constants that the author declared stay; an argument that is None stands for the constant.
    Raises: ArgumentNotSupported, for an argument that no kernel takes.
    """
    found = known
    for p in function.parameters:
        if not p.is_constexpr and _is_of_call(p, known) and arguments[p.name] is not None:
            found = _with_argument(found, specialize(function.name, [p], arguments))
    return found


def _is_of_call(p: Parameter, known: Specialization) -> bool:
    """Whether a parameter is a constant because of what the call had, not because it is asked."""
    if dict(known.signature)[p.name] != "constexpr":
        return False
    constant = known.constants.get((p.name,))
    return constant is None or (type(constant) is int and constant == 1)


def _with_argument(known: Specialization, one: Specialization) -> Specialization:
    """`known` with one parameter as `one` has it."""
    ((name, type_),) = one.signature
    signature = tuple((n, type_ if n == name else t) for n, t in known.signature)
    others = {path: value for path, value in known.constants.items() if path[0] != name}
    return replace(
        known,
        signature=signature,
        constants={**others, **one.constants},
        divisibility={**known.divisibility, **one.divisibility},
    )
