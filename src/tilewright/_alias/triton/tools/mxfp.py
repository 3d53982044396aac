"""`triton.tools.mxfp`: arrays of torch in the microscaling formats of the OCP specification.

`MXFP4Tensor` holds E2M1 values (a sign, two bits of exponent, one of mantissa), `MXScaleTensor`
their scales, powers of two in E8M0. Both keep a byte for each value in `data`.
Source: OCP Microscaling Formats (MX) Specification, version 1.0, sections 5.3.3 and 5.4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import frexp
from typing import Any

# Arrays of torch, which this package does not depend on.
_Tensor = Any
# The magnitudes of the codes 0 to 7; the fourth bit is the sign.
_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_E8M0_BIAS = 127
_E8M0_NAN = 255


def _torch() -> Any:
    return import_module("torch")


class _Bytes:
    """Values of a small format, a byte each."""

    data: _Tensor

    def __init__(
        self,
        data: _Tensor = None,
        size: Sequence[int] | int | None = None,
        device: object = None,
    ) -> None:
        self.device = device
        self.size = (size,) if isinstance(size, int) else size
        if data is not None:
            assert _torch().is_tensor(data), "data is a tensor of torch"
            self.device = data.device
            self.data = self._from_float(data)
            return
        if size is None:
            raise ValueError("pass `data`, or the `size` of what `random()` makes")

    def _from_float(self, values: _Tensor) -> _Tensor:
        raise NotImplementedError

    def _random_bytes(self, low: int, high: int) -> _Tensor:
        torch = _torch()
        return torch.randint(low, high, self.size, dtype=torch.uint8, device=self.device)


class MXFP4Tensor(_Bytes):
    """E2M1 values, from floats (`data`) or at random (`size`, then `random()`).

    Rounds to nearest, ties to the even code; beyond 6 saturates, infinity included, and NaN,
    which the format has not, is 0.
    """

    def random(self) -> MXFP4Tensor:
        """Every code alike, the negative zero left out."""
        torch = _torch()
        codes = self._random_bytes(0, 16)
        self.data = torch.where(codes == 8, torch.zeros_like(codes), codes)
        return self

    def to(self, dtype: object) -> _Tensor:
        """The values as floats of `dtype`."""
        torch = _torch()
        codes = self.data.to(torch.int64)
        magnitudes = torch.tensor(_MAGNITUDES, dtype=torch.float32, device=self.data.device)
        found = magnitudes[codes & 7]
        return torch.where(codes >= 8, -found, found).to(dtype)

    def _from_float(self, values: _Tensor) -> _Tensor:
        torch = _torch()
        wide = values.to(torch.float32)
        magnitude = torch.nan_to_num(wide.abs(), nan=0.0, posinf=_MAGNITUDES[-1])
        codes = torch.zeros_like(wide, dtype=torch.uint8)
        for code in range(1, len(_MAGNITUDES)):
            middle = (_MAGNITUDES[code - 1] + _MAGNITUDES[code]) / 2
            is_above = magnitude >= middle if code % 2 == 0 else magnitude > middle
            codes += is_above.to(torch.uint8)
        is_negative = torch.signbit(wide) & ~torch.isnan(wide)
        return codes | is_negative.to(torch.uint8) << 3

    def to_packed_tensor(self, dim: int) -> _Tensor:
        """Two values in a byte along `dim`, the first in the low half; an odd last one alone."""
        torch = _torch()
        assert 0 <= dim < self.data.ndim, f"dim {dim} of {self.data.ndim} dimensions"
        data = self.data
        if data.shape[dim] % 2:
            shape = [*data.shape]
            shape[dim] = 1
            zeros = torch.zeros(shape, dtype=data.dtype, device=data.device)
            data = torch.cat([data, zeros], dim=dim)
        low = torch.index_select(data, dim, torch.arange(0, data.shape[dim], 2, device=data.device))
        high = torch.index_select(
            data, dim, torch.arange(1, data.shape[dim], 2, device=data.device)
        )
        return high << 4 | low

    def unpack_packed_tensor(
        self, packed_tensor: _Tensor, dim: int, original_shape: Sequence[int]
    ) -> _Tensor:
        """The codes that `to_packed_tensor` packed."""
        torch = _torch()
        halves = torch.stack([packed_tensor & 15, packed_tensor >> 4], dim=dim + 1)
        both = halves.flatten(dim, dim + 1)
        return both.narrow(dim, 0, original_shape[dim]).contiguous()


class MXScaleTensor(_Bytes):
    """E8M0 scales: the byte `b` is `2 ** (b - 127)`, 255 is NaN.

    A float becomes the power of two at or below it; what is not positive and finite becomes NaN.
    """

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Every power of two alike, from `low` to `high` where they are given."""
        bias = _E8M0_BIAS
        first = 0 if low is None else max(0, _floor_log2(low) + bias)
        last = _E8M0_NAN - 1 if high is None else min(_E8M0_NAN - 1, _floor_log2(high) + bias)
        self.data = self._random_bytes(first, last + 1)
        return self

    def to(self, dtype: object) -> _Tensor:
        """The scales as floats of `dtype`."""
        return fp8e8m0_to_float32(self.data).to(dtype)

    def _from_float(self, values: _Tensor) -> _Tensor:
        torch = _torch()
        wide = values.to(torch.float32)
        is_valid = torch.isfinite(wide) & (wide > 0)
        exponents = torch.frexp(torch.where(is_valid, wide, torch.ones_like(wide)))[1] - 1
        codes = torch.clamp(exponents + _E8M0_BIAS, 0, _E8M0_NAN - 1)
        return torch.where(is_valid, codes, torch.full_like(codes, _E8M0_NAN)).to(torch.uint8)


def fp8e8m0_to_float32(scale: _Tensor) -> _Tensor:
    """The powers of two that bytes of E8M0 (of any 8-bit type) stand for, as float32."""
    torch = _torch()
    codes = scale.view(torch.uint8).to(torch.int32)
    one = torch.ones_like(codes, dtype=torch.float64)
    # In float64, where 2 ** -127 is normal: it is subnormal in float32 and must not become 0.
    values = torch.ldexp(one, codes - _E8M0_BIAS).to(torch.float32)
    return torch.where(codes == _E8M0_NAN, torch.full_like(values, float("nan")), values)


def _floor_log2(value: float) -> int:
    return frexp(value)[1] - 1


__all__ = ["MXFP4Tensor", "MXScaleTensor", "fp8e8m0_to_float32"]
