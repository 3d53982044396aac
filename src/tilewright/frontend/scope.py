"""Where the free names of a live function are found, and what its annotations mean."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Mapping, Sequence
from types import CellType, FunctionType, ModuleType

from tilewright.frontend.constants import Imported
from tilewright.frontend.parsing import chain_of
from tilewright.frontend.type_text import parse_scalar
from tilewright.language.core import constexpr, dtype
from tilewright.support.dataclass import dataclass

MISSING = object()


class Scope:
    """Where the free names of a live function are found."""

    def __init__(self, function: FunctionType) -> None:
        self._globals = function.__globals__
        cells = function.__closure__ or ()
        self._cells = dict(zip(function.__code__.co_freevars, cells, strict=True))

    def find(self, name: str) -> tuple[Mapping[str, object] | CellType | None, object]:
        """The namespace that holds `name` (None: Python's builtins) and its value."""
        if name in self._cells:
            cell = self._cells[name]
            return cell, cell_value(cell)
        if name in self._globals:
            return self._globals, self._globals[name]
        if hasattr(builtins, name):
            return None, getattr(builtins, name)
        return self._globals, MISSING

    def owner(self) -> object:
        """The class in which the function was defined, where it names `super`, else None."""
        return cell_value(self._cells["__class__"]) if "__class__" in self._cells else None

    def declares_constexpr(self, name: str) -> bool:
        """Whether the global was declared as `NAME: tl.constexpr = …`."""
        annotation = self._globals.get("__annotations__", {}).get(name)
        return _is_constexpr(annotation) or (
            isinstance(annotation, str) and annotation.rpartition(".")[2] == "constexpr"
        )

    def resolve(self, chain: Sequence[str]) -> object:
        """The live value of a dotted name, or a marker that it has none."""
        _, value = self.find(chain[0])
        for name in chain[1:]:
            value = getattr(value, name, MISSING)
        return value


@dataclass(frozen=True)
class Variable:
    """A name that a function reads: where it was found, and how it can be imported again."""

    path: str
    namespace: Mapping[str, object] | CellType | None
    value: object
    origin: Imported | None
    is_part: bool = False  # of an object that a function of compile time reads


class Attributes(dict[str, object]):
    """The attributes of a class or object as a namespace, bound as Python binds them."""

    def __init__(self, owner: object) -> None:
        super().__init__()
        self._owner = owner

    def get(self, name: str, default: object = None) -> object:  # type: ignore[override]
        """The attribute `name`."""
        return getattr(self._owner, name, default)


def member_of(owner: object, origin: Imported | None, name: str) -> Imported | None:
    """How the member `name` of `owner`, itself found at `origin`, can be imported again."""
    if isinstance(owner, ModuleType):
        return Imported(owner.__name__, name)
    return None if origin is None else Imported(origin.module, f"{origin.name}.{name}")


def annotated_class(cls: type, annotation: object) -> object:
    """What a field's annotation names in the module of its class, where it is postponed text."""
    if not isinstance(annotation, str):
        return annotation
    value: object = sys.modules.get(cls.__module__)
    for name in annotation.split("."):
        value = getattr(value, name, None)
    return value


def cell_value(cell: CellType) -> object:
    """What a closure cell holds, or MISSING before its variable is assigned."""
    try:
        return cell.cell_contents
    except ValueError:  # assigned after the kernel was defined, and not yet
        return MISSING


def annotation_text(annotation: object, scope: Scope) -> str:
    """What a parameter's annotation means for its specialisation, '' when nothing."""
    if isinstance(annotation, str):
        annotation = _evaluate_annotation(annotation, scope)
    if _is_constexpr(annotation):
        return "constexpr"
    if isinstance(annotation, dtype):
        return annotation.short_name()
    if isinstance(annotation, str):
        return annotation if parse_scalar(annotation) else ""
    return "const" if getattr(annotation, "__name__", "") == "const" else ""


def _is_constexpr(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, constexpr)


def _evaluate_annotation(text: str, scope: Scope) -> object:
    """The value of a postponed annotation: a dotted name, a quoted type, or the text itself."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return text
    if isinstance(node, ast.Constant):
        return node.value
    chain = chain_of(node)
    if chain is None:
        return text
    value = scope.resolve(chain)
    return text if value is MISSING else value
