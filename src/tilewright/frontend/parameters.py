"""The parameters of a kernel's function, with their flags."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import cast

from tilewright.frontend.capture import Reference, constant_of
from tilewright.frontend.constants import FunctionRef
from tilewright.frontend.program import Parameter
from tilewright.frontend.scope import Scope, annotation_text
from tilewright.support.errors import InvalidOption

_KINDS = {
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "varargs",
    inspect.Parameter.VAR_KEYWORD: "varkeywords",
}


def require_runtime(kernel: str, parameters: Sequence[Parameter]) -> None:
    """Refuse flags on constants: each of their values is compiled for, or they are none."""
    for p in parameters:
        if p.is_constexpr and not (p.specialize and p.specialize_alignment):
            option = "do_not_specialize" if not p.specialize else "do_not_specialize_on_alignment"
            raise InvalidOption(
                f"{kernel}(): `{option}` names `{p.name}`, which is a tl.constexpr",
                argument=p.name,
                hint=f"drop `{p.name}` from `{option}`, or its annotation tl.constexpr",
            )


def listed_parameters(option: str, given: object) -> tuple[str | int, ...]:
    """The names and numbers of parameters that an option of `jit` lists.

    Raises: InvalidOption for anything else. A text of several letters is no list: it would be read
    as a list of one-letter names.
    """
    if given is None:
        return ()
    is_list = isinstance(given, Iterable) and not (isinstance(given, str) and len(given) > 1)
    items = tuple(cast("Iterable[object]", given)) if is_list else (None,)
    listed = tuple(item for item in items if isinstance(item, str | int))
    if len(listed) < len(items):
        raise InvalidOption(
            f"jit(): `{option}` is {given!r}",
            argument=option,
            hint='pass a list of names or numbers of parameters, such as ["n"]',
        )
    return listed


def parameters_of(
    function: FunctionType,
    do_not_specialize: Sequence[str | int] = (),
    do_not_specialize_on_alignment: Sequence[str | int] = (),
) -> tuple[Parameter, ...]:
    """The parameters of a kernel's function, without a look at what its body names."""
    scope = Scope(function)
    parameters = inspect.signature(function).parameters.values()
    plain = [parameter_of(p, scope, _named_only) for p in parameters]
    return with_flags(plain, do_not_specialize, do_not_specialize_on_alignment)


def _named_only(function: object) -> FunctionRef:
    return FunctionRef(str(getattr(function, "__qualname__", "")))


def with_flags(
    parameters: Sequence[Parameter],
    unspecialized: Sequence[str | int],
    unaligned: Sequence[str | int],
) -> tuple[Parameter, ...]:
    """Parameters with what a decorator says of some, by name or number."""
    return tuple(
        Parameter(
            p.name,
            p.kind,
            p.annotation,
            p.has_default,
            p.default,
            specialize=index not in unspecialized and p.name not in unspecialized,
            specialize_alignment=index not in unaligned and p.name not in unaligned,
        )
        for index, p in enumerate(parameters)
    )


def parameter_of(parameter: inspect.Parameter, scope: Scope, reference: Reference) -> Parameter:
    """A parameter as a snapshot keeps it."""
    has_default = parameter.default is not inspect.Parameter.empty
    return Parameter(
        name=parameter.name,
        kind=_KINDS.get(parameter.kind, "positional"),
        annotation=annotation_text(parameter.annotation, scope),
        has_default=has_default,
        default=constant_of(parameter.default, reference) if has_default else None,
    )
