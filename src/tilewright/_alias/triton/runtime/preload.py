"""Kernels compiled ahead of their first launch, from what a compile hook was told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from tilewright.frontend.type_text import parse_scalar
from tilewright.language import dtype
from tilewright.support.errors import InvalidOption

from ..compiler.compiler import CompiledKernel, compile
from ..compiler.source import ASTSource, KernelFunction

_Json = Mapping[str, object]
# The key of a constant that is a type.
_TYPE = "dtype"


def serialize(specialization: _Json) -> str:
    """What a compile hook is told about a specialisation, as JSON that `preload` takes."""
    rows = {
        "name": specialization["name"],
        "key": specialization["key"],
        "signature": specialization["signature"],
        "constants": _rows(cast("Mapping[tuple[int, ...], object]", specialization["constants"])),
        "attrs": _rows(cast("Mapping[tuple[int, ...], object]", specialization["attrs"])),
        "options": specialization["options"],
    }
    return json.dumps(rows, default=_as_json)


def _as_json(value: object) -> object:
    """A constant that JSON has no word for: types by their name, others by their text."""
    return {_TYPE: value.short_name()} if isinstance(value, dtype) else repr(value)


def _constant(value: object) -> object:
    """A constant again, from what `_as_json` made."""
    return parse_scalar(str(value[_TYPE])) if isinstance(value, dict) else value


def _rows(values: Mapping[tuple[int, ...], object]) -> list[list[object]]:
    return [[list(path), value] for path, value in values.items()]


def preload(function: KernelFunction, data: str | bytes) -> CompiledKernel:
    """Compile `function` for a specialisation that `serialize` wrote.

    Raises: `InvalidOption` when it was written for another function.
    """
    record = cast("dict[str, object]", json.loads(data))
    if record["name"] != function.__name__:
        raise InvalidOption(
            f"{function.__name__}.preload() got the specialisation of {record['name']}",
            hint="each kernel takes its own",
        )
    constants = cast("list[tuple[list[int], object]]", record["constants"])
    facts = cast("list[tuple[list[int], list[list[object]]]]", record["attrs"])
    source = ASTSource(
        function,
        cast("Mapping[str, object]", record["signature"]),
        {tuple(path): _constant(value) for path, value in constants},
        {tuple(path): value for path, value in facts},
    )
    return compile(source, None, cast("Mapping[str, object]", record["options"]))
