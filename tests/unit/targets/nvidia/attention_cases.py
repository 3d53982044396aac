"""Arguments for the kernels of attention, and what NumPy makes of them in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

import tilewright.language as tl
from tests.unit.targets.nvidia.attention_kernels import backward, forward
from tilewright.ir.op import Array
from tilewright.jit import JITFunction
from tilewright.runtime.tensor_descriptor import TensorDescriptor

DTYPES = {
    "float16": (tl.float16, np.dtype(np.float16)),
    "bfloat16": (tl.bfloat16, np.dtype(ml_dtypes.bfloat16)),
    "float8_e5m2": (tl.float8e5, np.dtype(ml_dtypes.float8_e5m2)),
    "float8_e4m3fn": (tl.float8e4nv, np.dtype(ml_dtypes.float8_e4m3fn)),
}
TOLERANCES = {"float16": 8e-3, "bfloat16": 3e-2, "float8_e5m2": 0.3, "float8_e4m3fn": 0.15}
# Of the largest element: what float32 sums in another order, and exp2 by the hardware, may add.
FLOOR = 1e-4
WAYS = ("host", "made", "pointers")
LOG2_E = 1.4426950408889634


@dataclass(frozen=True)
class Attention:
    """One launch: `heads` of `n` rows and `depth` columns in blocks of `rows` and `columns`."""

    way: str = "host"
    dtype: str = "float16"
    is_causal: bool = True
    depth: int = 64
    rows: int = 64
    columns: int = 64
    num_warps: int = 4
    n: int = 128
    heads: int = 1

    def __str__(self) -> str:
        """The name in a report."""
        causal = "causal" if self.is_causal else "full"
        sizes = f"{self.depth}-{self.rows}x{self.columns}-{self.num_warps}w"
        return f"{self.way}-{self.dtype}-{causal}-{sizes}"

    @property
    def grid(self) -> tuple[int, int]:
        """A program for each block of rows of each head."""
        return self.n // self.rows, self.heads

    @property
    def scale(self) -> float:
        """What scores are multiplied by, in the exponent of two."""
        return LOG2_E / self.depth**0.5

    def inputs(self, count: int, seed: int = 0) -> list[Array]:
        """Arrays in the dtype of the case."""
        generator = np.random.default_rng(seed + self.depth + self.n)
        shape = (self.heads * self.n, self.depth)
        kind = DTYPES[self.dtype][1]
        return [generator.standard_normal(shape).astype(kind) for _ in range(count)]

    def taken(self, array: Array, rows: int) -> object:
        """An array as the kernel takes it: plainly, or behind a descriptor of blocks."""
        if self.way != "host":
            return array
        return TensorDescriptor.from_tensor(array, (rows, self.depth))

    def options(self) -> dict[str, object]:
        """The options of the launch."""
        return {"num_warps": self.num_warps}

    def probabilities(self, q: Array, k: Array) -> tuple[Array, Array]:
        """softmax(q k^T) of each head, and the log2 of each row's sum."""
        s = np.einsum("hid,hjd->hij", self.split(q), self.split(k)) * self.scale
        if self.is_causal:
            s = np.where(np.tril(np.ones(s.shape[1:], np.bool_)), s, -np.inf)
        top = s.max(-1, keepdims=True)
        e = np.exp2(s - top)
        total = e.sum(-1, keepdims=True)
        return e / total, (top + np.log2(total))[..., 0]

    def split(self, array: Array) -> Array:
        """The heads of an array, in float64."""
        return array.astype(np.float64).reshape(self.heads, self.n, self.depth)


def forward_arguments(case: Attention) -> list[object]:
    """Arguments of `forward`; what it writes holds zeros."""
    q, k, v = case.inputs(3)
    out = np.zeros_like(q)
    lse = np.zeros(case.heads * case.n, np.float32)
    own, other = case.rows, case.columns
    blocks = zip((q, k, v, out), (own, other, other, own), strict=True)
    tensors = [case.taken(array, rows) for array, rows in blocks]
    sizes = [case.heads * case.n, case.n, case.scale, DTYPES[case.dtype][0], case.way]
    stage = 3 if case.is_causal else 1
    return [*tensors, lse, *sizes, stage, case.rows, case.columns, case.depth]


def forward_expected(case: Attention) -> dict[int, Array]:
    """What `forward` writes, by the number of the argument."""
    q, k, v = case.inputs(3)
    p, lse = case.probabilities(q, k)
    out = np.einsum("hij,hjd->hid", p, case.split(v))
    return {3: out.reshape(-1, case.depth), 4: lse.ravel()}


def backward_arguments(case: Attention) -> list[object]:
    """Arguments of `backward`; what it writes holds zeros."""
    q, k, v, do = case.inputs(4)
    p, lse = case.probabilities(q, k)
    out = np.einsum("hij,hjd->hid", p, case.split(v))
    delta = (out * case.split(do)).sum(-1).ravel().astype(np.float32)
    results = [np.zeros(q.shape, np.float32) for _ in range(3)]
    # Descriptors have one block: what a program keeps and what it walks over are alike.
    tensors = [case.taken(array, case.rows) for array in (q, k, v, do, *results)]
    sizes = [case.heads * case.n, case.n, case.scale, DTYPES[case.dtype][0], case.way]
    blocks = [case.is_causal, case.rows, case.columns, case.depth]
    return [*tensors, lse.ravel().astype(np.float32), delta, *sizes, *blocks]


def backward_expected(case: Attention) -> dict[int, Array]:
    """What `backward` writes, by the number of the argument."""
    q, k, v, do = map(case.split, case.inputs(4))
    p, _ = case.probabilities(*case.inputs(4)[:2])
    dv = np.einsum("hij,hid->hjd", p, do)
    dp = np.einsum("hid,hjd->hij", do, v)
    delta = (p * dp).sum(-1, keepdims=True)
    ds = p * (dp - delta)
    dq, dk = np.einsum("hij,hjd->hid", ds, k), np.einsum("hij,hid->hjd", ds, q)
    return {i: x.reshape(-1, case.depth) for i, x in zip((4, 5, 6), (dq, dk, dv), strict=True)}


def array_in(argument: object) -> Array:
    """The array of an argument, that of a descriptor included."""
    base = argument.base if isinstance(argument, TensorDescriptor) else argument
    # NumPy knows fewer dtypes than torch.
    array = base.double().cpu().numpy() if hasattr(base, "cpu") else base
    assert isinstance(array, np.ndarray)
    return array


def rounded(case: Attention, array: Array) -> Array:
    """`array` through the dtype of the case, and back to float64."""
    return array.astype(np.float32).astype(DTYPES[case.dtype][1]).astype(np.float64)


def forward_eager(case: Attention) -> dict[int, Array]:
    """The forward pass in the dtype of the case, op by op; scores of 8 bits would tell nothing."""
    q, k, v = map(case.split, case.inputs(3))
    s = np.einsum("hid,hjd->hij", q, k) * case.scale
    if DTYPES[case.dtype][1].itemsize > 1:
        s = rounded(case, s)
    if case.is_causal:
        s = np.where(np.tril(np.ones(s.shape[1:], np.bool_)), s, -np.inf)
    e = np.exp2(s - s.max(-1, keepdims=True))
    out = np.einsum("hij,hjd->hid", rounded(case, e), v) / e.sum(-1, keepdims=True)
    return {3: rounded(case, out).reshape(-1, case.depth)}


def backward_eager(case: Attention) -> dict[int, Array]:
    """The backward pass in the dtype of the case, op by op."""
    q, k, v, do = map(case.split, case.inputs(4))
    p = rounded(case, case.probabilities(*case.inputs(4)[:2])[0])
    dv = np.einsum("hij,hid->hjd", p, do)
    dp = rounded(case, np.einsum("hid,hjd->hij", do, v))
    ds = rounded(case, p * (dp - rounded(case, (p * dp).sum(-1, keepdims=True))))
    dq, dk = np.einsum("hij,hjd->hid", ds, k), np.einsum("hij,hid->hjd", ds, q)
    found = zip((4, 5, 6), (dq, dk, dv), strict=True)
    return {i: rounded(case, x).reshape(-1, case.depth) for i, x in found}


EAGER = {"forward": forward_eager, "backward": backward_eager}


def require_close(
    name: str, case: Attention, arguments: Sequence[object], expected: dict[int, Array]
) -> None:
    """Assert that a launch is at most twice as far from float64 as the same op by op is.

    A kernel rounds probabilities and their gradients to the dtype of the case as matrix products
    take them, so single elements may be far off (0.056 of 28 in dk of bfloat16, by NumPy alone):
    what counts is the largest error and the root of the mean square beside those of a computation
    that rounds each result. What is not rounded there (log of sums) has the dtype's tolerance.
    """
    eager = EAGER[name](case)
    for index, right in expected.items():
        left = array_in(arguments[index]).astype(np.float64)
        what = f"{case}: argument {index}"
        if index not in eager:
            tolerance = TOLERANCES[case.dtype]
            np.testing.assert_allclose(left, right, tolerance, tolerance, err_msg=what)
            continue
        error, allowed = left - right, eager[index] - right
        floor = FLOOR * np.abs(right).max()
        for measure in (_largest, _mean_square):
            assert measure(error) <= 2 * measure(allowed) + floor, (
                f"{what}: {measure.__name__} {measure(error):.3g}, op by op {measure(allowed):.3g}"
            )


def _largest(error: Array) -> float:
    return float(np.abs(error).max())


def _mean_square(error: Array) -> float:
    return float(np.sqrt(np.square(error).mean()))


# Depth, rows, columns and warps of blocks as people choose them for Hopper.
_SHAPES = (
    (128, 64, 64, 4), (128, 128, 64, 4), (128, 128, 128, 8), (256, 128, 64, 8), (64, 128, 32, 4),
    (256, 64, 32, 4),
)  # fmt: skip

FORWARD = [
    *(
        Attention(way, dtype, is_causal)
        for way in WAYS
        for dtype in ("float16", "bfloat16", "float8_e5m2")
        for is_causal in (True, False)
    ),
    *(Attention(way, "float16", True, *shape) for way in WAYS for shape in _SHAPES),
    *(Attention("host", "bfloat16", False, *shape) for shape in _SHAPES),
    *(Attention(way, "float8_e4m3fn", True, 128, 128, 64, 8) for way in WAYS),
]
"""Every form of the forward pass that is compiled for Hopper."""

BACKWARD = [
    *(Attention(way, "float16", causal) for way in WAYS for causal in (True, False)),
    *(Attention(way, "bfloat16", True, 128, 64, 64, 8) for way in WAYS),
    *(Attention(way, "float16", True, 64, 128, 32, 4) for way in WAYS[1:]),
    Attention("pointers", "float16", True, 256, 64, 32, 8),
]
"""Every form of the backward pass that is compiled for Hopper."""

KERNELS: dict[str, JITFunction] = {"forward": forward, "backward": backward}
ARGUMENTS = {"forward": forward_arguments, "backward": backward_arguments}
EXPECTED = {"forward": forward_expected, "backward": backward_expected}
LISTED = [("forward", c) for c in FORWARD] + [("backward", c) for c in BACKWARD]
