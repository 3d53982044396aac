"""The compile request: everything that decides what a kernel compiles to, as one frozen value.

Cache key, reproducer, message to a worker process and input of ahead-of-time compilation are
this one object; it round-trips through canonical JSON, without pickle.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from typing import TypeVar, cast

from tilewright.frontend.constants import AggregateRef, Json, NamedTupleClass, decode, encode
from tilewright.frontend.program import (
    ArgumentPath,
    FunctionSource,
    Parameter,
    Specialization,
    TupleType,
    TypeTree,
)
from tilewright.machine.model import ABSTRACT, MachineModel
from tilewright.runtime.fingerprint import extension_fingerprint
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.support.options import CompileOptions, option_names

FORMAT = "tilewright-request-3"
Value = TypeVar("Value")
OptionValue = int | float | str | bool | None


@dataclass(frozen=True)
class CompileRequest:
    """A kernel with its callees, what it is specialised for, options, target and machine.

    `options` holds those that the target has; the frontend's own are beside them. `extensions`
    are the packages whose ops and rules take part.
    """

    functions: Mapping[str, FunctionSource]
    kernel: str
    specialization: Specialization
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    target: str = "cpu"
    machine: MachineModel = ABSTRACT
    extensions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the kernel's function."""
        return self.functions[self.kernel].name

    @property
    def compile_options(self) -> CompileOptions:
        """The options that change the code; what the target has no use for is at its default."""
        known = option_names()
        given = {name: value for name, value in self.options.items() if name in known}
        return CompileOptions().replaced(given)

    def to_bytes(self) -> bytes:
        """This request as canonical JSON: equal requests give equal bytes."""
        document = {
            "format": FORMAT,
            "functions": [_encode_function(f) for _, f in sorted(self.functions.items())],
            "kernel": self.kernel,
            "specialization": _encode_specialization(self.specialization),
            "options": {name: encode(value) for name, value in self.options.items()},
            "target": self.target,
            "machine": {n: encode(value) for n, value in self.machine.to_features().items()},
        }
        if self.extensions:
            document["extensions"] = list(self.extensions)
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return text.encode()

    @staticmethod
    def from_bytes(data: bytes) -> CompileRequest:
        """The request that `to_bytes` wrote.

        Raises: InternalError when the bytes are damaged or of another version.
        """
        try:
            document = json.loads(data)
            if document["format"] != FORMAT:
                raise InternalError(f"a compile request of format {document['format']!r:.40}")
            return _decode_request(document)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InternalError("these bytes are no compile request") from error

    def cache_key(self, compiler_fingerprint: str) -> str:
        """The key of the compiled kernel: a SHA-256 over compiler and request."""
        digest = hashlib.sha256(compiler_fingerprint.encode() + b"\0")
        for name in self.extensions:
            digest.update(extension_fingerprint(name).encode())
        digest.update(self.to_bytes())
        return digest.hexdigest()


def _decode_request(document: dict[str, Json]) -> CompileRequest:
    functions = [_decode_function(entry) for entry in _list(document["functions"])]
    kernel = _text(document["kernel"])
    by_key = {function.key: function for function in functions}
    if kernel not in by_key:
        raise KeyError(kernel)
    return CompileRequest(
        functions=by_key,
        kernel=kernel,
        specialization=_decode_specialization(_dict(document["specialization"])),
        options=_decode_options(document["options"]),
        target=_text(document["target"]),
        machine=MachineModel.from_features(_decode_options(document["machine"])),
        extensions=tuple(_text(name) for name in _list(document.get("extensions", []))),
    )


def _decode_options(document: Json) -> dict[str, OptionValue]:
    values = {name: decode(value) for name, value in _dict(document).items()}
    return cast("dict[str, OptionValue]", values)


def _encode_function(function: FunctionSource) -> Json:
    return {
        "key": function.key,
        "name": function.name,
        "module": function.module,
        "file": function.file,
        "first_line": function.first_line,
        "indent": function.indent,
        "text": function.text,
        "parameters": [_encode_parameter(p) for p in function.parameters],
        "captures": {path: encode(value) for path, value in function.captures.items()},
        "is_host": function.is_host,
        "is_ordinary": function.is_ordinary,
        "is_class": function.is_class,
        "must_use": function.must_use,
    }


def _decode_function(document: Json) -> FunctionSource:
    entry = _dict(document)
    return FunctionSource(
        key=_text(entry["key"]),
        name=_text(entry["name"]),
        module=_text(entry["module"]),
        file=_text(entry["file"]),
        first_line=_number(entry["first_line"]),
        indent=_number(entry["indent"]),
        text=_text(entry["text"]),
        parameters=tuple(_decode_parameter(_list(p)) for p in _list(entry["parameters"])),
        captures={path: decode(value) for path, value in _dict(entry["captures"]).items()},
        is_host=bool(entry["is_host"]),
        is_ordinary=bool(entry["is_ordinary"]),
        is_class=bool(entry["is_class"]),
        must_use=str(entry["must_use"]),
    )


def _encode_parameter(p: Parameter) -> Json:
    default = encode(p.default) if p.has_default else None
    return [p.name, p.kind, p.annotation, default, p.specialize, p.specialize_alignment]


def _decode_parameter(entry: list[Json]) -> Parameter:
    name, kind, annotation, default, specialize, alignment = entry
    has_default = default is not None
    return Parameter(
        name=_text(name),
        kind=_text(kind),
        annotation=_text(annotation),
        has_default=has_default,
        default=decode(default) if has_default else None,
        specialize=bool(specialize),
        specialize_alignment=bool(alignment),
    )


def _encode_type(type_: TypeTree) -> Json:
    if isinstance(type_, str):
        return type_
    cls = None if type_.cls is None else encode(type_.cls)
    return [[_encode_type(item) for item in type_.items], cls]


def _decode_type(document: Json) -> TypeTree:
    if isinstance(document, str):
        return document
    items, cls = _list(document)
    decoded = None if cls is None else decode(cls)
    if decoded is not None and not isinstance(decoded, NamedTupleClass | AggregateRef):
        raise ValueError(document)
    return TupleType(tuple(_decode_type(item) for item in _list(items)), decoded)


def _encode_specialization(specialization: Specialization) -> Json:
    signature: list[Json] = [[name, _encode_type(t)] for name, t in specialization.signature]
    constants: list[Json] = [
        [list(path), encode(value)] for path, value in _by_path(specialization.constants)
    ]
    divisibility: list[Json] = [
        [list(path), value] for path, value in _by_path(specialization.divisibility)
    ]
    return {"signature": signature, "constants": constants, "divisibility": divisibility}


def _by_path(entries: Mapping[ArgumentPath, Value]) -> list[tuple[ArgumentPath, Value]]:
    """The entries in one order, so that equal requests give equal bytes."""
    return sorted(entries.items(), key=lambda entry: [str(part) for part in entry[0]])


def _decode_specialization(document: dict[str, Json]) -> Specialization:
    signature = [_list(entry) for entry in _list(document["signature"])]
    constants = [_list(entry) for entry in _list(document["constants"])]
    divisibility = [_list(entry) for entry in _list(document["divisibility"])]
    return Specialization(
        signature=tuple((_text(name), _decode_type(type_)) for name, type_ in signature),
        constants={_path(path): decode(value) for path, value in constants},
        divisibility={_path(path): _number(value) for path, value in divisibility},
    )


def _path(document: Json) -> ArgumentPath:
    parts = tuple(part for part in _list(document) if isinstance(part, str | int))
    if len(parts) != len(_list(document)):
        raise ValueError(document)
    return parts


def _list(document: Json) -> list[Json]:
    if not isinstance(document, list):
        raise ValueError(document)
    return document


def _dict(document: Json) -> dict[str, Json]:
    if not isinstance(document, dict):
        raise ValueError(document)
    return document


def _text(document: Json) -> str:
    if not isinstance(document, str):
        raise ValueError(document)
    return document


def _number(document: Json) -> int:
    if type(document) is not int:
        raise ValueError(document)
    return document
