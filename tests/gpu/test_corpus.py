"""Every kernel of the corpus on the GPU: it agrees with NumPy, and with memory around arrays."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import torch
from tests.corpus.case import Addresses, Case, arrays_of, check
from tests.corpus.everything import CASES, over
from tilewright.runtime.tensor_descriptor import TensorDescriptor

pytestmark = pytest.mark.gpu

GUARD_BYTES = 4096
_GUARD = 0xA5
_TORCH = {
    np.dtype(ml_dtypes.bfloat16): torch.bfloat16,
    np.dtype(ml_dtypes.float8_e4m3fn): torch.float8_e4m3fn,
    np.dtype(ml_dtypes.float8_e5m2): torch.float8_e5m2,
    np.dtype(np.bool_): torch.bool,
}


class DeviceMemory:
    """The arguments of a case on the GPU; arrays that share bytes still do."""

    def __init__(self, case: Case) -> None:
        self.values = case.values()
        self._buffers: dict[int, tuple[np.ndarray, torch.Tensor]] = {}
        self.tensors: dict[str, torch.Tensor] = {}
        self.arguments = {name: self._move(name, value) for name, value in self.values.items()}
        for name, value in self.values.items():
            if isinstance(value, Addresses):
                addresses = [self._address(target, index) for target, index in value.of]
                self.arguments[name] = torch.tensor(addresses, dtype=torch.int64, device="cuda")

    def _address(self, name: str, index: int) -> int:
        tensor = self.tensors[name]
        return tensor.data_ptr() + index * tensor.element_size()

    def _move(self, name: str, value: object) -> object:
        if isinstance(value, TensorDescriptor):
            return replace(value, base=self._tensor(name, value.base))
        return self._tensor(name, value) if isinstance(value, np.ndarray) else value

    def _interface(self, memory: torch.Tensor, array: np.ndarray, offset: int) -> object:
        """An array with negative strides, which torch has none of, by the interface of others."""
        fields = {
            "shape": array.shape,
            "strides": array.strides,
            "typestr": array.dtype.str,
            "data": (memory.data_ptr() + GUARD_BYTES + offset, False),
            "version": 3,
        }
        return SimpleNamespace(__cuda_array_interface__=fields)

    def _tensor(self, name: str, array: object) -> object:
        assert isinstance(array, np.ndarray)
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        if id(root) not in self._buffers:
            size = root.nbytes + 2 * GUARD_BYTES
            memory = torch.full((size,), _GUARD, dtype=torch.uint8, device="cuda")
            data = torch.frombuffer(bytearray(root.tobytes()), dtype=torch.uint8)
            memory[GUARD_BYTES : GUARD_BYTES + root.nbytes] = data.cuda()
            self._buffers[id(root)] = (root, memory)
        memory = self._buffers[id(root)][1]
        offset = array.ctypes.data - root.ctypes.data
        dtype = _TORCH.get(array.dtype) or getattr(torch, array.dtype.name)
        typed = memory[GUARD_BYTES:-GUARD_BYTES].view(dtype)
        strides = [stride // array.itemsize for stride in array.strides]
        if min(strides, default=0) < 0:
            return self._interface(memory, array, offset)
        start = typed.storage_offset() + offset // array.itemsize
        tensor = torch.as_strided(typed, array.shape, strides, start)
        self.tensors[name] = tensor
        return tensor

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays as they are now on the GPU; fails where memory around them changed."""
        for root, memory in self._buffers.values():
            data = memory.cpu().numpy()
            end = GUARD_BYTES + root.nbytes
            assert (data[:GUARD_BYTES] == _GUARD).all() and (data[end:] == _GUARD).all()
            root.reshape(-1).view(np.uint8)[:] = data[GUARD_BYTES:end]
        skipped = {n for n, value in self.values.items() if isinstance(value, Addresses)}
        return {n: a for n, a in arrays_of(self.values).items() if n not in skipped}


@over(CASES)
def test_the_kernel_on_the_gpu_agrees_with_numpy(case: Case) -> None:
    memory = DeviceMemory(case)
    case.kernel[case.grid](**memory.arguments, enable_fp_fusion=False, **case.options)
    torch.cuda.synchronize()
    check(case, memory.arrays(), case.expected(), "GPU against NumPy")
