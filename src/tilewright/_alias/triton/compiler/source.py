"""`ASTSource`: a kernel with the types and constants that it is compiled for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from tilewright.frontend.bound_call import PassedFunctions
from tilewright.frontend.capture import constant_of
from tilewright.frontend.constants import Constant, Unusable
from tilewright.frontend.kernel_source import KernelSource
from tilewright.frontend.program import ArgumentPath, Specialization, TupleType, TypeTree
from tilewright.runtime.fingerprint import digest
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import ArgumentNotSupported

from ..runtime.raising import as_triton_raises

if TYPE_CHECKING:
    from ..backends.compiler import BackendOptions, GPUTarget
    from ..runtime.interface import KernelParam

IndexPath = tuple[int, ...]
Attributes = Mapping[IndexPath, Sequence[Sequence[object]]]
Signature = Mapping[str, object]


class KernelFunction(Protocol):
    """What a source asks of its kernel; `runtime.jit.JITFunction` is one."""

    __name__: str
    module: str

    @property
    def arg_names(self) -> Sequence[str]:
        """The names of the parameters, in order."""
        ...

    @property
    def params(self) -> Sequence[KernelParam]:
        """The parameters, in order."""
        ...

    @property
    def cache_key(self) -> str:
        """The identity of the sources of the kernel and of what it reaches, in hex."""
        ...

    @property
    def source(self) -> KernelSource:
        """The snapshot of the kernel."""
        ...

    @property
    def def_line(self) -> int:
        """The line of the file where `def` stands."""
        ...

    @property
    def def_indent(self) -> int:
        """The columns that `def` is indented by in the file."""
        ...

    def named(self, snapshot: KernelSource, source: ASTSource) -> KernelSource:
        """The snapshot under the name that the kernel has for these constants."""
        ...


@dataclass(frozen=True)
class Specialized:
    """A snapshot of a kernel, and what it is specialised for."""

    source: KernelSource
    specialization: Specialization


class ASTSource:
    """A kernel with the types and constants that it is compiled for.

    `signature` maps parameters to types (`*fp32`, `i32`, `constexpr`); `constexprs` maps
    parameters, by name or by index path, to values; `attrs` maps index paths to facts such
    as `[["tt.divisibility", 16]]`.
    """

    language = "triton"
    ext = "ttir"

    def __init__(
        self,
        fn: KernelFunction,
        signature: Signature,
        constexprs: Mapping[str | IndexPath, object] | None = None,
        attrs: Attributes | None = None,
    ) -> None:
        self.fn = fn
        self.name = fn.__name__
        self.signature = _by_name(fn, signature)
        self.constants = {_path(fn, key): value for key, value in (constexprs or {}).items()}
        self.attrs = dict(attrs or {})

    def hash(self) -> str:
        """The identity of the kernel and of what it is specialised for."""
        types = sorted((name, repr(type_)) for name, type_ in self.signature.items())
        constants = sorted((repr(k), repr(v)) for k, v in self.constants.items())
        attributes = sorted((k, repr(v)) for k, v in self.attrs.items())
        return digest(self.fn.cache_key, repr(types), repr(constants), repr(attributes))

    def parse_options(self) -> dict[str, object]:
        """The compile options that the source itself asks for: none."""
        return {}

    def make_ir(
        self,
        target: GPUTarget,
        options: BackendOptions,
        codegen_fns: object,
        module_map: object,
        context: object,
    ) -> object:
        """The tile IR of the kernel, for clients that walk it."""
        from .ir import module_of  # loads the compiler, which launches do without

        found = self.specialized()
        return module_of(found.source, found.specialization)

    def specialized(self) -> Specialized:
        """The snapshot and the specialisation that these types and constants stand for."""
        return _Specializer(self).specialized()


def _by_name(fn: KernelFunction, signature: object) -> dict[str, object]:
    """The types by the names of the parameters. *Raises*: ArgumentNotSupported for other keys."""
    if isinstance(signature, Mapping):
        given = cast("Mapping[object, object]", signature)
        types = {key: type_ for key, type_ in given.items() if isinstance(key, str)}
        if len(types) == len(given):
            return types
    error = ArgumentNotSupported(
        f"ASTSource(): the signature of {fn.__name__}() is {signature!r}",
        hint="it maps the names of parameters to types, as in {'x_ptr': '*fp32', 'n': 'i32'}",
    )
    raise as_triton_raises(error)


def _path(fn: KernelFunction, key: str | IndexPath) -> IndexPath:
    return (fn.arg_names.index(key),) if isinstance(key, str) else tuple(key)


class _Specializer:
    """Turns the words of an `ASTSource` into a specialisation."""

    def __init__(self, source: ASTSource) -> None:
        self._names = tuple(p.name for p in source.fn.source.parameters)
        self._source = source
        self._passed = PassedFunctions(source.name, source.fn.source)

    def specialized(self) -> Specialized:
        """The snapshot, with the functions among the constants, and the specialisation."""
        signature = tuple((name, self._type(i, name)) for i, name in enumerate(self._names))
        constants = self._constants(signature)
        divisibility = {
            self._named(path): _divisor(facts)
            for path, facts in self._source.attrs.items()
            if _divisor(facts) > 1
        }
        kept = {path: value for path, value in divisibility.items() if path not in constants}
        specialization = Specialization(signature, constants, kept)
        return Specialized(self._passed.joined(), specialization)

    def _type(self, index: int, name: str) -> TypeTree:
        given = self._source.signature.get(name, "constexpr")
        has_value = (index,) in self._source.constants
        return "constexpr" if has_value and not isinstance(given, tuple) else _type_tree(given)

    def _constants(
        self, signature: tuple[tuple[str, TypeTree], ...]
    ) -> dict[ArgumentPath, Constant]:
        constants: dict[ArgumentPath, Constant] = {}
        for path, type_ in Specialization(signature).leaves():
            if type_ == "constexpr":
                constants[path] = self._constant(path)
        return constants

    def _constant(self, path: ArgumentPath) -> Constant:
        index: IndexPath = (self._names.index(str(path[0])), *cast("IndexPath", path[1:]))
        if index not in self._source.constants:
            raise ArgumentNotSupported(
                f"{self._source.name}(): the constexpr `{path[0]}` has no value",
                argument=str(path[0]),
                hint="name it in `constexprs`",
            )
        constant = constant_of(self._source.constants[index], self._passed.reference)
        if isinstance(constant, Unusable):
            raise ArgumentNotSupported(
                f"{self._source.name}(): `{path[0]}` cannot be a constant: {constant.text}",
                argument=str(path[0]),
            )
        return constant

    def _named(self, path: IndexPath) -> ArgumentPath:
        return (self._names[path[0]], *path[1:])


def _type_tree(given: object) -> TypeTree:
    if isinstance(given, tuple | list):
        return TupleType(tuple(_type_tree(item) for item in cast("Sequence[object]", given)))
    text = str(given)
    return {"i1": "u1", "*u1": "*i1", "f32": "fp32", "f16": "fp16", "f64": "fp64"}.get(text, text)


def _divisor(facts: Sequence[Sequence[object]]) -> int:
    return next((int(str(value)) for name, value in facts if name == "tt.divisibility"), 1)
