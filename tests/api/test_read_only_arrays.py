"""Arrays that must not be written are refused before a launch that would store into them."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.support.errors import ReadOnlyWrite


@tilewright.jit
def copy(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.load(x + at))


@tilewright.jit
def add(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.atomic_add(out + at, tl.load(x + at))


@tilewright.jit
def put(out, at, value):
    tl.store(out + at, value)


@tilewright.jit
def through_a_callee(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    put(out, at, tl.load(x + at))


@tilewright.jit
def selected(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    target = tl.where(at % 2 == 0, out + at, out + (N - at))
    tl.store(target, tl.load(x + at))


@tilewright.jit
def chosen(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at)
    p = out
    for _ in range(tl.max(value.to(tl.int32), 0)):
        p += 1
    tl.store(p + at, value, mask=at < 1)


@tilewright.jit
def by_descriptor(x, out, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [N], [1], [N])
    target = tl.make_tensor_descriptor(out, [N], [1], [N])
    target.store([0], source.load([0]))


@tilewright.jit
def by_block_pointer(x, out, N: tl.constexpr):
    target = tl.make_block_ptr(out, [N], [1], [0], [N], [0])
    tl.store(target, tl.load(x + tl.arange(0, N)))


@tilewright.jit
def by_integer(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    address = out.to(tl.int64) + 4 * at
    tl.store(address.to(tl.pointer_type(tl.float32)), tl.load(x + at))


KERNELS = [
    *(copy, add, through_a_callee, selected, chosen, by_descriptor, by_block_pointer, by_integer)
]
N = 16


def frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def read_only_arrays() -> dict[str, np.ndarray]:
    return {
        "writeable=False": frozen(np.zeros(N, np.float32)),
        "broadcast": np.broadcast_to(np.zeros((), np.float32), (N,)),
        "bytes": np.frombuffer(bytes(4 * N), np.float32),
        "view": frozen(np.zeros(2 * N, np.float32))[N:],
    }


@pytest.mark.parametrize("kind", list(read_only_arrays()))
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_a_store_into_a_read_only_array_is_refused(kernel, kind) -> None:
    x, out = np.zeros(N, np.float32), read_only_arrays()[kind]
    before = out.tobytes()
    for _ in range(2):
        with pytest.raises(ReadOnlyWrite, match=r"stores into `out`, which is read-only") as raised:
            kernel[(1,)](x, out, N=N)
    assert raised.value.span.file == __file__
    assert out.tobytes() == before


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_a_warm_launch_refuses_too_and_reading_is_free(kernel) -> None:
    x, out = frozen(np.zeros(N, np.float32)), np.zeros(N, np.float32)
    for _ in range(3):
        kernel[(1,)](x, out, N=N)
    with pytest.raises(ReadOnlyWrite):
        kernel[(1,)](x, x, N=N)
    kernel[(1,)](x, out, N=N)
    out.flags.writeable = False
    with pytest.raises(ReadOnlyWrite):
        kernel[(1,)](x, out, N=N)


def test_the_interpreter_and_the_launch_raise_the_same_class() -> None:
    x, out = np.zeros(N, np.float32), frozen(np.zeros(N, np.float32))
    with pytest.raises(ReadOnlyWrite):
        copy.interpret[(1,)](x, out, N=N)
    with pytest.raises(ReadOnlyWrite):
        copy.interpret[(1,)](x, ByInterface(out), N=N)


@tilewright.jit
def store_tile(target, N: tl.constexpr):
    target.store([0], tl.zeros([N], tl.float32))


@tilewright.jit
def read_tile(source, out, N: tl.constexpr):
    tl.store(out + tl.arange(0, N), source.load([0]))


def test_a_host_descriptor_of_a_read_only_array_may_only_be_read() -> None:
    array, out = frozen(np.ones(N, np.float32)), np.zeros(N, np.float32)
    descriptor = TensorDescriptor(array, [N], [1], [N])
    for _ in range(2):
        read_tile[(1,)](descriptor, out, N=N)
        with pytest.raises(ReadOnlyWrite, match="stores into `target`"):
            store_tile[(1,)](descriptor, N=N)
    assert out.sum() == N
    writable = np.ones(N, np.float32)
    for _ in range(2):
        store_tile[(1,)](TensorDescriptor(writable, [N], [1], [N]), N=N)
    assert writable.sum() == 0
    writable.flags.writeable = False
    with pytest.raises(ReadOnlyWrite):
        store_tile[(1,)](TensorDescriptor(writable, [N], [1], [N]), N=N)


@tilewright.jit
def store_second(pair, N: tl.constexpr):
    tl.store(pair[1] + tl.arange(0, N), tl.load(pair[0] + tl.arange(0, N)))


def test_an_array_in_a_tuple_is_named_by_its_place() -> None:
    x, out = np.zeros(N, np.float32), frozen(np.zeros(N, np.float32))
    with pytest.raises(ReadOnlyWrite, match=r"`pair\[1\]`"):
        store_second[(1,)]((x, out), N=N)
    store_second[(1,)]((out, x), N=N)


@tilewright.jit
def through_a_table(table, flags, out, N: tl.constexpr):
    target = tl.load(table).to(tl.pointer_type(tl.float32))
    tl.store(target + tl.arange(0, N), tl.load(flags).to(tl.float32))


def test_an_address_that_was_loaded_says_nothing_about_the_arguments() -> None:
    out, flags = np.zeros(N, np.float32), frozen(np.ones(1, np.int32))
    table = frozen(np.array([out.ctypes.data], np.int64))
    for _ in range(2):
        through_a_table[(1,)](table, flags, flags, N=N)
    assert out.sum() == N


@tilewright.jit
def tell(x, out, N: tl.constexpr):
    tl.device_print("x", tl.load(x + tl.arange(0, N)))
    tl.store(out, tl.atomic_add(out, 1.0))


def test_printing_and_synchronizing_are_no_stores(capfd) -> None:
    tell[(1,)](frozen(np.zeros(2, np.float32)), np.zeros(1, np.float32), N=2)
    capfd.readouterr()


class ByInterface:
    """An array of a package that speaks one protocol only."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.dtype = array.dtype
        self.nbytes = array.nbytes

    @property
    def __array_interface__(self):
        return self._array.__array_interface__


class ByCudaInterface(ByInterface):
    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @property
    def __array_interface__(self):
        raise AttributeError

    @property
    def __cuda_array_interface__(self):
        return self._array.__array_interface__


class ByDlpack:
    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)


@pytest.mark.parametrize("wrapper", [ByInterface, ByDlpack])
def test_every_protocol_says_what_is_read_only(wrapper) -> None:
    x, out = frozen(np.ones(N, np.float32)), np.zeros(N, np.float32)
    for _ in range(2):
        copy[(1,)](wrapper(x), wrapper(out), N=N)
        with pytest.raises(ReadOnlyWrite):
            copy[(1,)](wrapper(out), wrapper(x), N=N)
    assert out.sum() == N


def test_the_interface_of_gpu_arrays_says_what_is_read_only() -> None:
    from tilewright.frontend.arrays import array_facts

    array = np.ones(N, np.float32)
    assert array_facts(ByCudaInterface(array)).is_writable
    assert not array_facts(ByCudaInterface(frozen(array))).is_writable
