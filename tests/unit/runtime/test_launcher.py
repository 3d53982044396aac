"""The guarded native launch: each guard alone, failure cases one by one, references."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.codegen.link import LoadedCode, load_object
from tilewright.codegen.optimize import compile_module
from tilewright.frontend.divisors import DivisorClass
from tilewright.frontend.passing import parameter_guards
from tilewright.frontend.program import Parameter
from tilewright.frontend.signature import specialize
from tilewright.runtime import launch_table as guard
from tilewright.runtime.arguments import guard_of
from tilewright.runtime.launch_table import Guard
from tilewright.runtime.launcher import SLOW_PATH, Launch
from tilewright.runtime.object_layout import has_known_object_layout
from tilewright.support.errors import InternalError, InvalidGrid
from tilewright.targets.cpu.host import host_machine
from tilewright.targets.cpu.runtime import native
from tilewright.targets.cpu.runtime.native import native_runtime
from tilewright.targets.cpu.runtime.pool import KernelRecord

# Slot 0 is the address of an i64 array: out[0] += 1 for each range, out[1 …] = the other slots,
# out[7] = grid x + 10 y + 100 z. `fail` sets the status word to program 0's first slot.
KERNELS = """
define void @copy(ptr %args, ptr %grid, i64 %begin, i64 %end, ptr %context) {
entry:
  %out = load ptr, ptr %args
  %count = load i64, ptr %out
  %count.next = add i64 %count, 1
  store i64 %count.next, ptr %out
  %to = getelementptr i64, ptr %out, i64 1
  %from = getelementptr i64, ptr %args, i64 1
  %slots = load <4 x i64>, ptr %from, align 8
  store <4 x i64> %slots, ptr %to, align 8
  %x = load i32, ptr %grid
  %y.at = getelementptr i32, ptr %grid, i64 1
  %y = load i32, ptr %y.at
  %z.at = getelementptr i32, ptr %grid, i64 2
  %z = load i32, ptr %z.at
  %y.10 = mul i32 %y, 10
  %z.100 = mul i32 %z, 100
  %xy = add i32 %x, %y.10
  %xyz = add i32 %xy, %z.100
  %code = sext i32 %xyz to i64
  %code.at = getelementptr i64, ptr %out, i64 7
  store i64 %code, ptr %code.at
  ret void
}

define void @nothing(ptr %args, ptr %grid, i64 %begin, i64 %end, ptr %context) {
  ret void
}

define void @fail(ptr %args, ptr %grid, i64 %begin, i64 %end, ptr %context) {
  %status.at = getelementptr ptr, ptr %context, i64 1
  %status = load ptr, ptr %status.at
  %code = load i32, ptr %args
  store i32 %code, ptr %status
  ret void
}
"""


class FakeDtype:
    """Stands for a dtype object of another library."""

    def __repr__(self) -> str:
        return "FakeDtype"


F32 = FakeDtype()
F64 = FakeDtype()


class FakeTensor:
    """An object with the part of torch's protocol that the launcher uses."""

    def __init__(self, address: int, dtype: FakeDtype = F32, is_cpu: bool = True) -> None:
        self.address = address
        self.dtype = dtype
        self.is_cpu = is_cpu

    def data_ptr(self) -> int:
        return self.address


class Unreadable(FakeTensor):
    """A tensor whose storage cannot be read."""

    def data_ptr(self) -> int:
        raise RuntimeError("no storage")


@pytest.fixture(scope="module")
def code() -> LoadedCode:
    host = host_machine()
    compiled = compile_module(KERNELS, host.arch, host.features)
    return load_object(compiled.object, "copy", "nothing", "fail")


@pytest.fixture
def record(code: LoadedCode) -> KernelRecord:
    return native_runtime().pool.make_record(code.addresses["copy"])


@pytest.fixture
def out() -> np.ndarray:
    """An array on a 16-byte boundary that the kernel `copy` writes to."""
    return aligned(np.int64, 8)


def aligned(dtype: type, length: int, offset: int = 0) -> np.ndarray:
    size = np.dtype(dtype).itemsize * length
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 16 + offset
    return memory[start : start + size].view(dtype)


OUT = guard.numpy_pointer(0, np.dtype(np.int64), is_aligned=True, is_written=True)


@pytest.fixture
def make(record: KernelRecord, code: LoadedCode) -> Callable[..., Launch]:
    def launcher(*guards: Guard) -> Launch:
        return native_runtime().make_launcher((OUT, *guards), record, keepalive=code)

    return launcher


def accepts(launch: Launch, out: np.ndarray, *args: object) -> bool:
    """Whether the guards hold; the kernel must have run once if they do, else not at all."""
    before = int(out[0])
    result = launch(1, 1, 1, out, *args)
    assert result is None or result is SLOW_PATH
    assert int(out[0]) - before == (result is None)
    return result is None


def test_objects_lie_in_memory_as_expected():
    assert has_known_object_layout()


def test_the_grid_reaches_the_kernel(make, out):
    assert make()(3, 4, 5, out) is None
    assert out[7] == 3 + 40 + 500


@pytest.mark.parametrize("size", [-1, 1 << 31, 1 << 63, 1 << 64, -(1 << 70), 1.0, "2", None, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_grid_size_that_is_no_small_int_takes_the_slow_path(make, out, axis, size):
    grid = [1, 1, 1]
    grid[axis] = size
    assert make()(*grid, out) is SLOW_PATH
    assert out[0] == 0


def test_a_wrong_number_of_arguments_takes_the_slow_path(make, out):
    launch = make(guard.ignored())
    for args in ((), (1,), (1, 1, 1), (1, 1, 1, out), (1, 1, 1, out, 0, 0)):
        assert launch(*args) is SLOW_PATH
    assert accepts(launch, out, "anything")


def test_a_keyword_is_a_type_error(make, out):
    with pytest.raises(TypeError):
        make()(1, 1, 1, x=out)


def test_a_numpy_pointer_is_the_address_of_the_data(make, out):
    array = aligned(np.float32, 12)
    assert accepts(make(guard.numpy_pointer(1, np.dtype(np.float32), True)), out, array)
    assert out[1] == array.ctypes.data


@pytest.mark.parametrize(
    "argument",
    [
        aligned(np.float64, 4),
        aligned(np.int32, 4),
        aligned(np.float32, 4).astype(">f4"),
        aligned(np.float32, 4, offset=4),
        aligned(np.float32, 4).view(np.matrix),
        np.ma.masked_array([1.0], dtype=np.float32),
        np.float32(1.0),
        [1.0],
        None,
        0,
    ],
    ids=lambda value: type(value).__name__ + str(getattr(value, "dtype", "")),
)
def test_a_numpy_guard_fails_on_another_type_dtype_or_alignment(make, out, argument):
    assert not accepts(make(guard.numpy_pointer(1, np.dtype(np.float32), True)), out, argument)


def test_a_numpy_guard_for_unaligned_data_fails_on_aligned_data(make, out):
    launch = make(guard.numpy_pointer(1, np.dtype(np.float32), is_aligned=False))
    assert accepts(launch, out, aligned(np.float32, 4, offset=4))
    assert not accepts(launch, out, aligned(np.float32, 4))


def test_a_numpy_guard_without_specialisation_takes_either_alignment(make, out):
    launch = make(guard.numpy_pointer(1, np.dtype(np.float32), is_aligned=None))
    assert accepts(launch, out, aligned(np.float32, 4, offset=4))
    assert accepts(launch, out, aligned(np.float32, 4))


def test_a_numpy_guard_fails_on_items_across_their_alignment(make, out):
    launch = make(guard.numpy_pointer(1, np.dtype(np.float32), is_aligned=None))
    assert not accepts(launch, out, aligned(np.float32, 4, offset=2))


def test_a_read_only_array_may_be_read_but_not_written(make, out):
    array = aligned(np.float32, 4)
    array.flags.writeable = False
    dtype = np.dtype(np.float32)
    assert accepts(make(guard.numpy_pointer(1, dtype, True, is_written=False)), out, array)
    assert not accepts(make(guard.numpy_pointer(1, dtype, True, is_written=True)), out, array)


def test_an_equal_copy_of_the_dtype_is_accepted(make, out):
    dtype = np.dtype(np.float32).newbyteorder().newbyteorder()
    array = aligned(np.float32, 4).view(dtype)
    assert array.dtype is not np.dtype(np.float32)
    assert accepts(make(guard.numpy_pointer(1, np.dtype(np.float32), True)), out, array)


def test_a_tensor_pointer_is_what_data_ptr_returns(make, out):
    launch = make(guard.tensor_pointer(1, FakeTensor, F32, True, check_is_cpu=True))
    assert accepts(launch, out, FakeTensor(0x1230))
    assert out[1] == 0x1230


@pytest.mark.parametrize(
    "argument",
    [
        FakeTensor(0x1234),
        FakeTensor(0x1230, dtype=F64),
        FakeTensor(0x1230, is_cpu=False),
        Unreadable(0x1230),
        np.zeros(4, np.float32),
        0x1230,
    ],
    ids=["alignment", "dtype", "device", "subclass", "array", "int"],
)
def test_a_tensor_guard_fails_on_another_type_dtype_device_or_alignment(make, out, argument):
    launch = make(guard.tensor_pointer(1, FakeTensor, F32, True, check_is_cpu=True))
    assert not accepts(launch, out, argument)


def test_a_null_data_ptr_is_a_pointer_where_the_recorded_one_was_null(make, out):
    row = guard.tensor_pointer(1, FakeTensor, F32, True, check_is_cpu=True)
    assert not accepts(make(row), out, FakeTensor(0))
    assert accepts(make(guard.also_null(row)), out, FakeTensor(0))
    assert accepts(make(guard.also_null(row)), out, FakeTensor(16))


def test_an_exception_of_data_ptr_reaches_the_caller(make, out):
    launch = make(guard.tensor_pointer(1, Unreadable, F32, True, check_is_cpu=True))
    with pytest.raises(RuntimeError, match="no storage"):
        launch(1, 1, 1, out, Unreadable(16))
    assert out[0] == 0


@pytest.mark.parametrize("address", ["16", None, 1.5])
def test_a_data_ptr_that_is_no_int_is_a_type_error(make, out, address):
    launch = make(guard.tensor_pointer(1, FakeTensor, F32, None, check_is_cpu=False))
    with pytest.raises(TypeError):
        launch(1, 1, 1, out, FakeTensor(address))


def test_a_tensor_without_the_attributes_is_an_attribute_error(make, out):
    tensor = FakeTensor(16)
    del tensor.dtype
    launch = make(guard.tensor_pointer(1, FakeTensor, F32, True, check_is_cpu=False))
    with pytest.raises(AttributeError, match="dtype"):
        launch(1, 1, 1, out, tensor)


I32 = (0, 5, -7, (1 << 31) - 1, -(1 << 31))
I64 = (1 << 31, -(1 << 31) - 1, (1 << 63) - 1, -(1 << 63))
U64 = (1 << 63, (1 << 64) - 1)
NEITHER = (1 << 64, -(1 << 63) - 1, 1 << 200, -(1 << 200))


@pytest.mark.parametrize(
    "dtype, members",
    [("i32", I32), ("i64", I64), ("u64", U64), ("any_i64", I32 + I64)],
)
def test_an_integer_guard_takes_exactly_the_values_of_its_type(make, out, dtype, members):
    launch = make(guard.integer(1, dtype))
    for value in I32 + I64 + U64 + NEITHER:
        assert accepts(launch, out, value) == (value in members), value
        if value in members:
            assert out[1] == (value if value < 1 << 63 else value - (1 << 64))


@pytest.mark.parametrize("divisor, larger, takes_one, members", [
    (16, 0, False, {0, 16, -32, 1 << 20}), (1, 16, False, {2, 4, 8, 12, -8, 15, -1, 17}),
    (1, 16, True, {1, 2, 4, 8, 12, -8, 15, -1, 17}), (8, 16, False, {8, -8}),
    (4, 16, False, {4, 8, 12, -8}), (4, 8, False, {4, 12}), (1, 2, True, {1, 15, -1, 17}),
])  # fmt: skip
def test_an_integer_guard_tells_the_classes_of_values_apart(
    make, out, divisor, larger, takes_one, members
):
    launch = make(guard.integer(1, "i32", DivisorClass(divisor, larger, takes_one)))
    for value in (1, 0, 16, -32, 1 << 20, 2, 4, 8, 12, -8, 15, -1, 17):
        assert accepts(launch, out, value) == (value in members), value


@pytest.mark.parametrize("pointer", ["*fp8e4nv", "*fp16", "*fp32", "*fp64"])
@pytest.mark.parametrize("annotation", ["", "i32"])
@pytest.mark.parametrize("least", [2, 16])
def test_a_warm_launch_takes_what_the_kernel_was_compiled_for(
    make, out, pointer, annotation, least
):
    """A launcher made for one integer takes another one where both have one specialisation."""
    parameters = (Parameter("x", annotation=pointer), Parameter("n", annotation=annotation))
    values = (*range(-3, 35), 48, 1000, 4096, 4097)
    keys = {}
    for value in values:
        found = specialize("kernel", parameters, {"x": aligned(np.uint8, 16), "n": value})
        keys[value] = found.with_divisors_from(least)
    for made_for, key in keys.items():
        facts = parameter_guards(parameters, key, least_divisor=least)
        assert facts is not None
        launch = make(guard_of(facts[1], made_for))
        for value in values:
            assert accepts(launch, out, value) == (keys[value] == key), (made_for, value)


@pytest.mark.parametrize("argument", [True, 1.0, "1", None, np.int64(1), np.zeros(1, np.int64)])
def test_an_integer_guard_fails_on_another_type(make, out, argument):
    assert not accepts(make(guard.integer(1, "i32")), out, argument)


def test_floats_are_rounded_to_the_width_of_their_slot(make, out):
    assert accepts(make(guard.float32(1), guard.float64(2)), out, 0.1, 0.1)
    assert out[1] == struct.unpack("i", struct.pack("f", 0.1))[0]
    assert out[2:3].view(np.float64)[0] == 0.1


@pytest.mark.parametrize("argument", [1, True, np.float64(1.0), np.float32(1.0), "1.0", None])
@pytest.mark.parametrize("make_guard", [guard.float32, guard.float64])
def test_a_float_guard_fails_on_another_type(make, out, make_guard, argument):
    assert not accepts(make(make_guard(1)), out, argument)


def test_a_boolean_is_one_or_zero(make, out):
    launch = make(guard.boolean(1))
    assert accepts(launch, out, True) and out[1] == 1
    assert accepts(launch, out, False) and out[1] == 0
    for other in (1, 0, None, np.bool_(True)):
        assert not accepts(launch, out, other)


CONSTANTS: list[object] = [1, 2, True, False, None, 1.0, 0.0, -0.0, "a", "1", b"a", int, F32]


@pytest.mark.parametrize("constant", CONSTANTS, ids=repr)
def test_a_constant_guard_takes_only_its_constant(make, out, constant):
    launch = make(guard.constant(constant))
    for value in CONSTANTS:
        assert accepts(launch, out, value) == (value is constant), value


def test_a_constant_guard_takes_an_equal_object(make, out):
    assert accepts(make(guard.constant("matrix_a")), out, "".join(["matrix", "_a"]))
    assert accepts(make(guard.constant(10**30)), out, 10 ** int("30"))
    assert accepts(make(guard.constant(2.5)), out, float("2.5"))
    assert accepts(make(guard.constant(float("nan"))), out, float("nan"))


def test_tuples_are_compared_by_identity(make, out):
    ones: tuple[object, ...] = (1, 1)
    launch = make(guard.constant(ones))
    assert accepts(launch, out, ones)
    assert not accepts(launch, out, (True, True))


def test_none_and_ignored_arguments_have_no_slot(make, out):
    launch = make(guard.none(), guard.integer(1, "i32"), guard.ignored(), guard.integer(2, "i32"))
    assert accepts(launch, out, None, 11, object(), 22)
    assert list(out[1:3]) == [11, 22]
    assert not accepts(launch, out, 0, 11, None, 22)


def test_the_first_failing_guard_decides(make, out):
    launch = make(guard.integer(1, "i32"), guard.tensor_pointer(2, Unreadable, F32, None, False))
    assert launch(1, 1, 1, out, "no int", Unreadable(0)) is SLOW_PATH
    with pytest.raises(RuntimeError, match="no storage"):
        launch(1, 1, 1, out, 1, Unreadable(0))


def test_references_are_exact_over_many_calls(code):
    record = native_runtime().pool.make_record(code.addresses["nothing"])
    array, tensor, text = aligned(np.float32, 4), FakeTensor(32), "".join(["te", "xt"])
    guards = (
        guard.numpy_pointer(0, np.dtype(np.float32), True),
        guard.tensor_pointer(1, FakeTensor, F32, True, True),
        guard.integer(2, "i64"),
        guard.float32(3),
        guard.constant("text"),
    )
    launch = native_runtime().make_launcher(guards, record)
    number, real = 1 << 40, 2.75
    watched = [array, tensor, number, real, text, None, SLOW_PATH, F32, array.dtype, np.ndarray]
    watched += [True, FakeTensor, guards[4].object, launch, 1]
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(100_000):
        launch(1, 1, 1, array, tensor, number, real, text)
        launch(1, 1, 1, array, tensor, number, text, text)
    after = [sys.getrefcount(x) for x in watched]
    # The interpreter's own traffic in None and small ints moves their counts a little.
    assert max(abs(b - a) for a, b in zip(before, after, strict=True)) < 50
    assert [before[i] for i in (0, 1, 2, 3, 4, 6, 7)] == [after[i] for i in (0, 1, 2, 3, 4, 6, 7)]


def test_references_are_exact_when_exceptions_pass(code, out):
    record = native_runtime().pool.make_record(code.addresses["nothing"])
    guards = (guard.tensor_pointer(0, Unreadable, F32, True, True),)
    launch = native_runtime().make_launcher(guards, record)
    tensor = Unreadable(16)
    before = sys.getrefcount(tensor), sys.getrefcount(F32)
    for _ in range(2_000):
        with pytest.raises(RuntimeError):
            launch(1, 1, 1, tensor)
    assert (sys.getrefcount(tensor), sys.getrefcount(F32)) == before


def test_a_launcher_keeps_what_it_points_to(code):
    dtype = np.dtype(np.float32).newbyteorder().newbyteorder()
    constant = "".join(["con", "stant"])
    record = native_runtime().pool.make_record(code.addresses["nothing"])
    guards = [guard.numpy_pointer(0, dtype, True), guard.constant(constant)]
    before = sys.getrefcount(constant)
    launch = native_runtime().make_launcher(guards, record, keepalive=code)
    del record, guards
    assert sys.getrefcount(constant) == before
    assert launch(1, 1, 1, aligned(np.float32, 4), "constant") is None
    del launch
    assert sys.getrefcount(constant) == before - 1


class Stop(Exception):
    """What the status handler of a test raises."""


def test_a_status_word_calls_the_handler(code):
    status = ctypes.c_int64(0)

    def on_status() -> None:
        word, status.value = status.value, 0
        raise Stop(word)

    pool = native_runtime().pool
    record = pool.make_record(code.addresses["fail"], status=ctypes.addressof(status))
    launch = native_runtime().make_launcher((guard.integer(0, "i32"),), record, on_status)
    assert launch(1, 1, 1, 0) is None
    with pytest.raises(Stop, match="42"):
        launch(1, 1, 1, 42)
    assert launch(1, 1, 1, 0) is None


def test_a_status_address_needs_a_handler(code):
    status = ctypes.c_int64(0)
    pool = native_runtime().pool
    record = pool.make_record(code.addresses["fail"], status=ctypes.addressof(status))
    with pytest.raises(InternalError, match="status handler"):
        native_runtime().make_launcher((), record)


def test_a_launch_without_memory_for_scratch_is_a_memory_error(code, out):
    record = native_runtime().pool.make_record(code.addresses["copy"], arena_bytes=1 << 60)
    with pytest.raises(MemoryError):
        native_runtime().make_launcher((OUT,), record)(1, 1, 1, out)


def test_a_launch_of_too_many_programs_is_refused(make, out):
    most = (1 << 31) - 1
    with pytest.raises(InvalidGrid, match="programs"):
        make()(most, most, most, out)
    assert out[0] == 0


def test_a_raw_launch_takes_packed_slots(record, out):
    slots = struct.pack("qqdiiq", out.ctypes.data, -3, 1.5, 7, 0, 9)
    native_runtime().launch_raw(record, (2, 3, 4), slots)
    assert out[1] == -3 and out[2:3].view(np.float64)[0] == 1.5
    assert list(out[3:5]) == [7, 9] and out[7] == 432


@pytest.mark.parametrize("grid", [(1, 1, -1), (1 << 31, 1, 1), (1, 1)])
def test_a_raw_launch_refuses_a_wrong_grid(record, grid):
    with pytest.raises(ValueError, match="grid"):
        native_runtime().launch_raw(record, grid, bytes(40))


def test_a_raw_launch_refuses_slots_that_are_not_bytes(record):
    with pytest.raises(TypeError):
        native_runtime().launch_raw(record, (1, 1, 1), [0] * 5)


def test_objects_that_lie_elsewhere_always_take_the_slow_path(monkeypatch, code, out):
    monkeypatch.setattr(native, "has_known_object_layout", lambda: False)
    runtime = native.NativeRuntime(num_threads=1)
    record = runtime.pool.make_record(code.addresses["copy"])
    assert runtime.make_launcher((OUT,), record)(1, 1, 1, out) is SLOW_PATH
    runtime.launch_raw(record, (2, 0, 1), bytes(40))
    runtime.launch_raw(record, (1, 1, 1), struct.pack("5q", out.ctypes.data, 5, 6, 7, 8))
    assert list(out[:5]) == [1, 5, 6, 7, 8]
