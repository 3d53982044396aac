"""`assert_close`: two arrays agree, or the message names the element that is furthest off."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import numpy as np

    Float64 = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

DEFAULT_ATOL = 1e-2
# What array packages hold that NumPy itself does not.
_WIDENED = ("bfloat16", "float8")


def assert_close(
    x: object,
    y: object,
    atol: float | None = None,
    rtol: float | None = None,
    err_msg: str = "",
) -> None:
    """Check that |x - y| ≤ atol + rtol·|y| in every element; two NaNs agree.

    `x` and `y` are anything that NumPy can make an array of, torch tensors included. Defaults
    are atol 1e-2 and rtol 0. `err_msg` is put in front of the message.

    Raises: `AssertionError` with the worst element and how many are off.
    """
    import numpy as np

    atol, rtol = DEFAULT_ATOL if atol is None else atol, 0.0 if rtol is None else rtol
    left, right = _as_float64(x), _as_float64(y)
    if left.shape != right.shape and left.size != 1 and right.size != 1:
        raise AssertionError(_titled(err_msg, f"shapes {left.shape} and {right.shape} differ"))
    left, right = np.broadcast_arrays(left, right)
    with np.errstate(invalid="ignore", over="ignore"):
        excess = np.abs(left - right) - (atol + rtol * np.abs(right))
    both = (left == right) | (np.isnan(left) & np.isnan(right))
    # A NaN or an infinity on one side only is worse than any finite difference.
    excess = np.where(both, -np.inf, np.where(np.isnan(excess), np.inf, excess))
    if not (excess > 0).any():
        return
    raise AssertionError(_titled(err_msg, _describe(left, right, excess, atol, rtol)))


def _titled(title: str, text: str) -> str:
    return f"{title}\n{text}" if title else text


def _describe(left: Float64, right: Float64, excess: Float64, atol: float, rtol: float) -> str:
    import numpy as np

    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
    num_bad = int((excess > 0).sum())
    got, expected = float(left[at]), float(right[at])
    return (
        f"{num_bad} of {excess.size} elements differ ({100 * num_bad / excess.size:.3g} %)\n"
        f"  worst at {list(at)}: got {got!r}, expected {expected!r}\n"
        f"  difference {abs(got - expected):.6g}, allowed {atol + rtol * abs(expected):.6g}"
        f" (atol {atol:g}, rtol {rtol:g})"
    )


def _as_float64(value: object) -> Float64:
    import numpy as np

    detach = getattr(value, "detach", None)
    if callable(detach):  # a torch tensor, perhaps of a dtype that NumPy lacks
        value = cast("_Tensor", detach()).cpu()
        if str(value.dtype).rpartition(".")[2].startswith(_WIDENED):
            value = value.float()
    return np.asarray(value).astype(np.float64)


if TYPE_CHECKING:
    from typing import Protocol

    class _Tensor(Protocol):
        """The part of a torch tensor that comparison uses."""

        dtype: object

        def cpu(self) -> _Tensor: ...
        def float(self) -> _Tensor: ...
