"""What type checkers are told of operators and methods: values of kernels have them in kernels.

The frontend gives them meaning (`frontend/expressions.py`, `frontend/attributes.py`), so nothing
here exists when a program runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any


class Operators:
    """What Python's operators can be applied to."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __lshift__(self, other: Any) -> Any: ...
        def __rlshift__(self, other: Any) -> Any: ...
        def __rshift__(self, other: Any) -> Any: ...
        def __rrshift__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __rand__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __ror__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __rxor__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...
        def __pos__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __abs__(self) -> Any: ...


class Indexed:
    """What is indexed, taken apart and a bound of `range`: `x[:, None]`, `a, b = x`."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getitem__(self, index: Any) -> Any: ...
        def __iter__(self) -> Any: ...
        def __index__(self) -> int: ...


class Methods:
    """The functions of the language that are methods of a tile, and `T`."""

    __slots__ = ()

    if TYPE_CHECKING:
        T: Any
        abs: Callable[..., Any]
        advance: Callable[..., Any]
        argmax: Callable[..., Any]
        argmin: Callable[..., Any]
        argsort: Callable[..., Any]
        associative_scan: Callable[..., Any]
        atomic_add: Callable[..., Any]
        atomic_and: Callable[..., Any]
        atomic_cas: Callable[..., Any]
        atomic_load: Callable[..., Any]
        atomic_max: Callable[..., Any]
        atomic_min: Callable[..., Any]
        atomic_or: Callable[..., Any]
        atomic_poll: Callable[..., Any]
        atomic_store: Callable[..., Any]
        atomic_xchg: Callable[..., Any]
        atomic_xor: Callable[..., Any]
        bitonic_merge: Callable[..., Any]
        broadcast_to: Callable[..., Any]
        cast: Callable[..., Any]
        cdiv: Callable[..., Any]
        ceil: Callable[..., Any]
        cos: Callable[..., Any]
        cumprod: Callable[..., Any]
        cumsum: Callable[..., Any]
        erf: Callable[..., Any]
        exp: Callable[..., Any]
        exp2: Callable[..., Any]
        expand_dims: Callable[..., Any]
        flip: Callable[..., Any]
        floor: Callable[..., Any]
        gather: Callable[..., Any]
        histogram: Callable[..., Any]
        item: Callable[..., Any]
        log: Callable[..., Any]
        log2: Callable[..., Any]
        logical_and: Callable[..., Any]
        logical_or: Callable[..., Any]
        max: Callable[..., Any]
        max_constancy: Callable[..., Any]
        max_contiguous: Callable[..., Any]
        min: Callable[..., Any]
        multiple_of: Callable[..., Any]
        permute: Callable[..., Any]
        ravel: Callable[..., Any]
        reduce: Callable[..., Any]
        reduce_or: Callable[..., Any]
        reshape: Callable[..., Any]
        rsqrt: Callable[..., Any]
        sigmoid: Callable[..., Any]
        sin: Callable[..., Any]
        softmax: Callable[..., Any]
        sort: Callable[..., Any]
        split: Callable[..., Any]
        sqrt: Callable[..., Any]
        sqrt_rn: Callable[..., Any]
        store: Callable[..., Any]
        sum: Callable[..., Any]
        to: Callable[..., Any]
        topk: Callable[..., Any]
        trans: Callable[..., Any]
        view: Callable[..., Any]
        xor_sum: Callable[..., Any]
