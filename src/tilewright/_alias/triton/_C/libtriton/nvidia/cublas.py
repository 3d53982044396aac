"""Matrix products by cuBLASLt, which programs compare their own kernels with.

The library is the one that torch brought, that a wheel of NVIDIA's holds, or that the loader
finds; it is called through ctypes and looked for when the first object is made.
Source: cuBLAS 12 and 13 library documentation, section cuBLASLt.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Iterator
from ctypes import byref, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Protocol

from tilewright.support.errors import TilewrightError, UnsupportedError

_VERSIONS = ("13", "12", "11")
_COMPUTE_32F, _R_32F = 68, 0
_OP_N, _OP_T = 0, 1
_DESC_TRANSA, _DESC_TRANSB = 3, 4
_PREFERENCE_WORKSPACE_BYTES = 1
# The number of a type of elements in the library.
_TYPES = {
    **{"float16": 2, "bfloat16": 14, "float32": 0},
    **{"float8_e4m3fn": 28, "float8_e5m2": 29},
}

_EIGHT_BITS = (28, 29)


class CublasError(TilewrightError, RuntimeError):
    """cuBLASLt refuses a call."""


class Matrix(Protocol):
    """An array of torch with two dimensions, in rows."""

    shape: tuple[int, int]
    dtype: object

    def data_ptr(self) -> int: ...

    def is_contiguous(self) -> bool: ...


class Workspace(Protocol):
    """Memory on the GPU that products may write."""

    def data_ptr(self) -> int: ...

    def numel(self) -> int: ...

    def element_size(self) -> int: ...


class _Algorithm(ctypes.Structure):
    _fields_ = [
        ("algorithm", c_uint64 * 8),
        ("workspace_bytes", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    ]


class _Library:
    """The library and a handle of it."""

    def __init__(self) -> None:
        self._functions = load_library()
        self.handle = c_void_p()
        self.call("cublasLtCreate", byref(self.handle))

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.destroy("cublasLtDestroy", self.handle)

    def call(self, name: str, *args: object) -> None:
        """Call a function. Raises: `CublasError` when it says that it failed."""
        status = getattr(self._functions, name)(*args)
        if status != 0:
            raise CublasError(f"{name} of cuBLASLt gives status {status}")

    def destroy(self, name: str, made: c_void_p) -> None:
        """Call a function that destroys what it is given."""
        getattr(self._functions, name)(made)


class CublasLt:
    """Products of matrices in rows; `workspace` is memory on the GPU.

    Raises: `UnsupportedError` where the library is not on this machine.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._library = _Library()
        self._workspace = workspace

    def matmul(self, a: Matrix, b: Matrix, c: Matrix) -> None:
        """`c = a @ b.T`; `a: [M, K]`, `b: [N, K]`, `c: [M, N]`, f32 accumulation."""
        self._multiply(a, b, c, c, 1.0, 0.0)

    def gemm(self, a: Matrix, b: Matrix, c: Matrix, d: Matrix, alpha: float, beta: float) -> None:
        """`d = alpha * a @ b.T + beta * c`."""
        self._multiply(a, b, c, d, alpha, beta)

    def _multiply(
        self, a: Matrix, b: Matrix, c: Matrix, d: Matrix, alpha: float, beta: float
    ) -> None:
        m, n, k = _sizes(a, b, c, d)
        plan = _Plan(self._library)
        try:
            # The library counts in columns: rows of `d` are columns of `b @ a.T`.
            operation = plan.operation(_OP_T, _OP_N)
            left, right = plan.layout(b, k, n, k), plan.layout(a, k, m, k)
            # Products of 8-bit floats take what they add in 16 bits.
            added = plan.layout(c, n, m, n, 2 if _type_of(c) in _EIGHT_BITS else None)
            result = plan.layout(d, n, m, n)
            size = self._workspace.numel() * self._workspace.element_size()
            algorithm = plan.algorithm(operation, (left, right, added, result), size)
            factors = c_float(alpha), c_float(beta)
            pointers = [c_void_p(x.data_ptr()) for x in (b, a, c, d)]
            if beta == 0 and _type_of(c) in _EIGHT_BITS:
                # Nothing is added, and no one array is of the types of both addend and result.
                pointers[2] = c_void_p()
            self._library.call(
                "cublasLtMatmul",
                *(self._library.handle, operation, byref(factors[0])),
                *(pointers[0], left, pointers[1], right, byref(factors[1])),
                *(pointers[2], added, pointers[3], result, byref(algorithm.algorithm)),
                *(c_void_p(self._workspace.data_ptr()), c_size_t(size), c_void_p(_stream())),
            )
        finally:
            plan.close()


class _Plan:
    """The descriptions that one product needs, destroyed together."""

    def __init__(self, library: _Library) -> None:
        self._library = library
        self._made: list[tuple[str, c_void_p]] = []

    def _make(self, kind: str, *args: object) -> c_void_p:
        made = c_void_p()
        self._library.call(f"cublasLt{kind}Create", byref(made), *args)
        self._made.append((f"cublasLt{kind}Destroy", made))
        return made

    def operation(self, transpose_a: int, transpose_b: int) -> c_void_p:
        """The description of the product."""
        made = self._make("MatmulDesc", c_int(_COMPUTE_32F), c_int(_R_32F))
        for attribute, value in ((_DESC_TRANSA, transpose_a), (_DESC_TRANSB, transpose_b)):
            kept = c_int32(value)
            self._library.call(
                "cublasLtMatmulDescSetAttribute",
                *(made, c_int(attribute), byref(kept), c_size_t(ctypes.sizeof(kept))),
            )
        return made

    def layout(
        self, array: Matrix, rows: int, columns: int, stride: int, type_: int | None = None
    ) -> c_void_p:
        """The description of a matrix, in columns of `stride` elements."""
        element = c_int(_type_of(array) if type_ is None else type_)
        return self._make(
            "MatrixLayout", element, c_uint64(rows), c_uint64(columns), c_int64(stride)
        )

    def algorithm(
        self, operation: c_void_p, layouts: tuple[c_void_p, ...], workspace_bytes: int
    ) -> _Algorithm:
        """The algorithm that the library thinks best. Raises: `CublasError` where it has none."""
        preference = self._make("MatmulPreference")
        size = c_size_t(workspace_bytes)
        self._library.call(
            "cublasLtMatmulPreferenceSetAttribute",
            *(preference, c_int(_PREFERENCE_WORKSPACE_BYTES), byref(size)),
            c_size_t(ctypes.sizeof(size)),
        )
        found, count = _Algorithm(), c_int()
        self._library.call(
            "cublasLtMatmulAlgoGetHeuristic",
            *(self._library.handle, operation, *layouts, preference, c_int(1)),
            *(byref(found), byref(count)),
        )
        if count.value == 0:
            raise CublasError("cuBLASLt has no algorithm for these matrices")
        return found

    def close(self) -> None:
        """Destroy what was made."""
        for name, made in reversed(self._made):
            self._library.destroy(name, made)


def _sizes(a: Matrix, b: Matrix, c: Matrix, d: Matrix) -> tuple[int, int, int]:
    (m, k), (n, k_of_b) = a.shape, b.shape
    if k != k_of_b or any(tuple(x.shape) != (m, n) for x in (c, d)):
        shapes = ", ".join(str(list(x.shape)) for x in (a, b, c))
        raise CublasError(f"CublasLt: matrices of {shapes} do not make c = a @ b.T")
    if _type_of(a) != _type_of(b):
        raise CublasError(f"CublasLt: `a` is of {a.dtype} and `b` of {b.dtype}")
    if not all(x.is_contiguous() for x in (a, b, c, d)):
        raise CublasError("CublasLt: a matrix is not contiguous")
    return m, n, k


def _type_of(array: Matrix) -> int:
    name = str(array.dtype).rpartition(".")[2]
    if name not in _TYPES:
        raise CublasError(f"CublasLt: no product of {array.dtype}; take {', '.join(_TYPES)}")
    return _TYPES[name]


def _stream() -> int:
    from ....runtime.driver import driver  # it needs this package

    return driver.active.get_current_stream()


@cache
def load_library() -> ctypes.CDLL:
    """cuBLASLt in this process. Raises: `UnsupportedError` where it is not on this machine."""
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise UnsupportedError(
        "CublasLt: the library cuBLASLt is not on this machine",
        hint="pip install nvidia-cublas-cu12, or install torch for CUDA",
    )


def _candidates() -> Iterator[str]:
    """The library in the wheels of NVIDIA's, beside torch, and by name."""
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    torch = sys.modules.get("torch")
    if torch is not None and torch.__file__:
        folders.append(Path(torch.__file__).parent)
    for folder in folders:
        yield from sorted(map(str, folder.glob("**/libcublasLt.so.*")), reverse=True)
    yield from (f"libcublasLt.so.{version}" for version in _VERSIONS)
