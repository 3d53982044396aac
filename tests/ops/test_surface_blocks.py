"""Block pointers and tensor descriptors, made in the kernel and by the host."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ops.emission import Emission
from tests.ops.harness import interpret
from tilewright.frontend.arrays import descriptor_facts, descriptor_slots
from tilewright.language.core import (
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    tuple_,
    uint8,
)
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.support.errors import (
    ArgumentNotSupported,
    CompileError,
    DtypeNotAllowed,
    InvalidOption,
    LiteralOutOfRange,
    NotAPointer,
    NotPowerOfTwo,
    ShapeMismatch,
    StoreToConst,
    UnknownAttribute,
)


@tilewright.jit
def transpose_kernel(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_block_ptr(x, (M, N), (N, 1), (tl.program_id(0) * BM, 0), (BM, BN), (1, 0))
    target = tl.make_block_ptr(out, (N, M), (M, 1), (0, tl.program_id(0) * BM), (BN, BM), (1, 0))
    for _ in range(0, N, BN):
        tile = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, tile.trans(), boundary_check=(0, 1))
        source = tl.advance(source, (0, BN))
        target = target.advance((BN, 0))


@pytest.mark.parametrize("shape", [(8, 8), (7, 13), (1, 5), (16, 4)])
@pytest.mark.parametrize("name", ["float32", "int16"])
def test_block_pointers_walk_over_a_matrix(shape: tuple[int, int], name: str) -> None:
    x = np.arange(shape[0] * shape[1], dtype=name).reshape(shape)
    out = np.zeros(shape[::-1], name)
    interpret(transpose_kernel, (-(-shape[0] // 4),), x, out, *shape, BM=4, BN=8)
    assert np.array_equal(out, x.T)


@tilewright.jit
def padding_kernel(x, out, n, SIZE: tl.constexpr, PADDING: tl.constexpr):
    block = tl.make_block_ptr(x, (n,), (1,), (-2,), (SIZE,), (0,))
    tl.store(out + tl.arange(0, SIZE), tl.load(block, boundary_check=(0,), padding_option=PADDING))


@pytest.mark.parametrize(("padding", "filler"), [("zero", 0.0), ("nan", np.nan)])
def test_elements_before_and_behind_the_tensor_are_padding(padding: str, filler: float) -> None:
    x, out = np.array([1, 2, 3], np.float32), np.ones(8, np.float32)
    interpret(padding_kernel, (1,), x, out, 3, SIZE=8, PADDING=padding)
    expected = [filler, filler, 1, 2, 3, filler, filler, filler]
    assert np.array_equal(out, np.array(expected, np.float32), equal_nan=True)


@tilewright.jit
def descriptor_kernel(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BM, BN])
    target = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    for i in range(0, M, BM):
        for j in range(0, source.shape[1], BN):
            tile = source.load([i, j]) * 2
            if i == 0:
                target.store([i, j], tile)
            else:
                tl.store_tensor_descriptor(target, [i, j], tile + 1)


@pytest.mark.parametrize("shape", [(8, 16), (7, 12), (3, 20)])
@pytest.mark.parametrize("element", [np.float32, np.int32, ml_dtypes.bfloat16])
def test_descriptors_walk_over_a_matrix(shape: tuple[int, int], element: type) -> None:
    x = (np.arange(shape[0] * shape[1]) % 61).reshape(shape).astype(element)
    out = np.zeros(shape, element)
    interpret(descriptor_kernel, (1,), x, out, *shape, BM=4, BN=8)
    expected = x * 2
    expected[4:] += 1
    assert np.array_equal(out, expected)


@tilewright.jit
def pick(flag, first, second):
    chosen = first
    if flag > 0:
        chosen = second
    return chosen


@tilewright.jit
def passed_kernel(x, y, out, flag, SIZE: tl.constexpr):
    first = tl.make_tensor_descriptor(x, [SIZE], [1], [SIZE], padding_option="nan")
    second = tl.make_tensor_descriptor(y, [SIZE - 2], [1], [SIZE], padding_option="nan")
    chosen = pick(flag, first, second)
    tl.static_assert(chosen.dtype == tl.float32)
    tl.static_assert(chosen.block_shape[0] == SIZE)
    tl.store(out + tl.arange(0, SIZE), chosen.load([0]))
    tl.store(out + SIZE, chosen.shape[0].to(tl.float32))


@pytest.mark.parametrize("flag", [-3, 7])
def test_a_descriptor_is_chosen_at_run_time(flag: int) -> None:
    x, y = np.arange(8, dtype=np.float32), np.arange(10, 18, dtype=np.float32)
    out = np.zeros(9, np.float32)
    interpret(passed_kernel, (1,), x, y, out, flag, SIZE=8)
    expected = [*y[:6], np.nan, np.nan, 6] if flag > 0 else [*x, 8]
    assert np.array_equal(out, np.array(expected, np.float32), equal_nan=True)


@tilewright.jit
def rows_kernel(x, rows, out, M, N, R: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, BN])
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [1, BN])
    chosen = tl.load(rows + tl.arange(0, R))
    target.scatter(source.gather(chosen, 2), chosen, 2)


def test_gather_and_scatter_move_rows() -> None:
    x = np.arange(16 * 8, dtype=np.float32).reshape(16, 8)
    rows = np.array([3, 1, 15, 0, 7, 9, 20, -1], np.int32)
    out = np.zeros_like(x)
    interpret(rows_kernel, (1,), x, rows, out, 16, 8, R=8, BN=8)
    expected = np.zeros_like(x)
    kept = rows[(rows >= 0) & (rows < 16)]
    expected[kept, 2:] = x[kept, 2:]
    assert np.array_equal(out, expected)


@tilewright.jit
def reduce_kernel(x, N, KIND: tl.constexpr, SIZE: tl.constexpr):
    target = tl.make_tensor_descriptor(x, [N], [1], [SIZE])
    value = tl.arange(0, SIZE) - 3
    if KIND == "add":
        target.atomic_add([1], value)
    elif KIND == "min":
        target.atomic_min([1], value)
    elif KIND == "max":
        target.atomic_max([1], value)
    elif KIND == "and":
        target.atomic_and([1], value)
    elif KIND == "or":
        target.atomic_or([1], value)
    else:
        target.atomic_xor([1], value)


KINDS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_descriptor_combines_into_memory(kind: str) -> None:
    x = np.arange(6, dtype=np.int32)
    expected = x.copy()
    expected[1:] = KINDS[kind](x[1:], np.arange(5, dtype=np.int32) - 3)
    interpret(reduce_kernel, (1,), x, 6, KIND=kind, SIZE=8)
    assert np.array_equal(x, expected)


def make(emission: Emission, element: dtype = float32, **changes: object) -> tuple_:
    arguments: dict[str, object] = {
        "base": emission.pointer(element),
        "shape": [64, 64],
        "strides": [64, 1],
        "block_shape": [8, 16],
    }
    made = emission.call("make_tensor_descriptor", **{**arguments, **changes})
    assert isinstance(made, tuple_)
    return made


BAD_DESCRIPTORS: list[tuple[dict[str, object], type[CompileError], str]] = [
    ({"strides": [64, 2]}, InvalidOption, "last stride must be the constant 1"),
    ({"strides": [63, 1]}, InvalidOption, "252 bytes, no multiple of 16"),
    ({"strides": [64]}, ShapeMismatch, "`strides` has 1"),
    ({"shape": [64]}, ShapeMismatch, "`shape` has 1"),
    ({"block_shape": [8, 2]}, ShapeMismatch, "at least 16 are needed"),
    ({"block_shape": [8, 12]}, NotPowerOfTwo, "12"),
    ({"block_shape": []}, ShapeMismatch, "1 to 5"),
    ({"padding_option": "one"}, InvalidOption, "padding_option"),
    ({"shape": [2**40, 64]}, LiteralOutOfRange, "does not fit int32"),
    ({"shape": [1.5, 64]}, DtypeNotAllowed, "integers are needed"),
]


@pytest.mark.parametrize(("changes", "error", "text"), BAD_DESCRIPTORS)
def test_what_no_descriptor_can_be_is_refused(
    changes: dict[str, object], error: type[CompileError], text: str
) -> None:
    with pytest.raises(error, match=text):
        make(Emission(), **changes)


def test_the_last_stride_must_be_known_at_compile_time() -> None:
    emission = Emission()
    with pytest.raises(InvalidOption, match="it is int32"):
        make(emission, strides=[64, emission.value(int32)])


def test_integers_have_no_nan_padding() -> None:
    with pytest.raises(InvalidOption, match="no NaN"):
        make(Emission(), int32, padding_option="nan")


def test_a_base_is_a_scalar_pointer_to_numbers() -> None:
    emission = Emission()
    with pytest.raises(NotAPointer):
        make(emission, base=emission.value(int32))
    with pytest.raises(NotAPointer, match="scalar pointer"):
        make(emission, base=emission.pointer(float32, 8))


def test_offsets_of_a_descriptor_are_int32() -> None:
    emission = Emission()
    made = make(emission)
    with pytest.raises(DtypeNotAllowed, match="offsets are int32"):
        emission.call("load_tensor_descriptor", made, [emission.value(int64), 0])
    with pytest.raises(ShapeMismatch, match="`offsets` has 1"):
        emission.call("load_tensor_descriptor", made, [0])


def test_a_stored_value_fits_the_block() -> None:
    emission = Emission()
    made = make(emission)
    emission.call("store_tensor_descriptor", made, [0, 0], emission.value(float64, 1, 16))
    with pytest.raises(ShapeMismatch, match="does not fit the block"):
        emission.call("store_tensor_descriptor", made, [0, 0], emission.value(float32, 16, 16))


def test_constant_memory_is_not_stored_to() -> None:
    emission = Emission()
    made = make(emission, base=emission.pointer(float32, const=True))
    with pytest.raises(StoreToConst):
        emission.call("store_tensor_descriptor", made, [0, 0], 1.0)


def test_gather_needs_one_row_and_eight_offsets() -> None:
    emission = Emission()
    with pytest.raises(ShapeMismatch, match="one row"):
        emission.call("descriptor_gather", make(emission), emission.value(int32, 8), 0)
    row = make(emission, block_shape=[1, 16])
    with pytest.raises(ShapeMismatch, match="at least 8"):
        emission.call("descriptor_gather", row, emission.value(int32, 4), 0)
    with pytest.raises(DtypeNotAllowed, match="int16 or int32"):
        emission.call("descriptor_gather", row, emission.value(int64, 8), 0)
    gathered = emission.call("descriptor_gather", row, emission.value(int16, 8), 0)
    assert gathered.type.extents == (8, 16)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "element"),
    [("add", float64), ("add", int64), ("max", float16), ("min", float32), ("and", float32)],
)
def test_a_combination_without_hardware_is_refused(kind: str, element: dtype) -> None:
    emission = Emission()
    made = make(emission, element)
    with pytest.raises(DtypeNotAllowed, match="they must be"):
        emission.call(f"descriptor_atomic_{kind}", made, [0, 0], 1)


def test_a_tile_is_no_descriptor() -> None:
    emission = Emission()
    with pytest.raises(CompileError, match="not a tensor descriptor"):
        emission.call("load_tensor_descriptor", emission.value(float32, 4), [0])


@tilewright.jit
def typo_kernel(x, SIZE: tl.constexpr):
    tl.make_tensor_descriptor(x, [SIZE], [1], [SIZE]).lod([0])


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(UnknownAttribute, match="no attribute or method `lod`"):
        interpret(typo_kernel, (1,), np.zeros(8, np.float32), SIZE=8)


BAD_BLOCK_POINTERS: list[tuple[dict[str, object], type[CompileError], str]] = [
    ({"order": (0, 0)}, InvalidOption, "once each"),
    ({"order": (0,)}, InvalidOption, "once each"),
    ({"strides": (64,)}, ShapeMismatch, "`strides` has 1"),
    ({"offsets": (0, 0, 0)}, ShapeMismatch, "`offsets` has 3"),
    ({"block_shape": (8, 7)}, NotPowerOfTwo, "7"),
    ({"offsets": (0, 2**31)}, LiteralOutOfRange, "does not fit int32"),
]


@pytest.mark.parametrize(("changes", "error", "text"), BAD_BLOCK_POINTERS)
def test_what_no_block_pointer_can_be_is_refused(
    changes: dict[str, object], error: type[CompileError], text: str
) -> None:
    emission = Emission()
    arguments: dict[str, object] = {
        "base": emission.pointer(float32),
        "shape": (64, 64),
        "strides": (64, 1),
        "offsets": (0, 0),
        "block_shape": (8, 8),
        "order": (1, 0),
    }
    with pytest.raises(error, match=text):
        emission.call("make_block_ptr", **{**arguments, **changes})


def test_a_plain_pointer_does_not_advance() -> None:
    emission = Emission()
    with pytest.raises(NotAPointer, match="block pointer is needed"):
        emission.call("advance", emission.pointer(float32, 8), (8,))


def test_a_host_descriptor_describes_an_array() -> None:
    x = np.zeros((4, 8, 16), np.float32)
    made = TensorDescriptor.from_tensor(x, [1, 4, 16], padding="nan")
    assert made.shape == (4, 8, 16)
    assert made.strides == (128, 16, 1)
    assert descriptor_facts(made) == "tensordesc<fp32[1,4,16],nan>"
    assert descriptor_slots(made) == [x.ctypes.data, 4, 8, 16, 128, 16, 1]


def test_a_host_descriptor_takes_a_view_with_padded_rows() -> None:
    x = np.zeros((8, 32), np.float16)[:, :24]
    assert TensorDescriptor.from_tensor(x, [4, 8]).strides == (32, 1)


class TorchLike:
    """What a descriptor asks of a torch tensor."""

    shape = (4, 16)

    def stride(self) -> tuple[int, int]:
        return (16, 1)

    def element_size(self) -> int:
        return 4


def test_a_host_descriptor_asks_a_torch_tensor_for_strides() -> None:
    assert TensorDescriptor.from_tensor(TorchLike(), [4, 4]).strides == (16, 1)


MATRIX = np.zeros((4, 16), np.float32)
BAD_HOST_DESCRIPTORS: list[tuple[tuple[object, ...], type[CompileError], str]] = [
    ((MATRIX, (4, 16), (16, 2), (4, 4)), ShapeMismatch, "last stride is 2"),
    ((MATRIX, (4, 16), (15, 1), (4, 4)), ShapeMismatch, "60 bytes"),
    ((MATRIX, (4, 0), (16, 1), (4, 4)), ShapeMismatch, "is empty"),
    ((MATRIX, (4, 16), (16, 1), (4, 3)), NotPowerOfTwo, "3"),
    ((MATRIX, (4, 16), (16, 1), (4, 2)), ShapeMismatch, "at least 16"),
    ((MATRIX, (4, 16), (16, 1), (4,)), ShapeMismatch, "`block_shape` has 1"),
    ((MATRIX, (1,) * 6, (1,) * 6, (4,) * 6), ShapeMismatch, "6 dimensions"),
    ((MATRIX, (4, 16), (16, 1), (4, 4), "one"), InvalidOption, "padding"),
    (("text", (4, 16), (16, 1), (4, 4)), ArgumentNotSupported, "no array"),
]


@pytest.mark.parametrize(("arguments", "error", "text"), BAD_HOST_DESCRIPTORS)
def test_what_no_host_descriptor_can_be_is_refused(
    arguments: tuple[object, ...], error: type[CompileError], text: str
) -> None:
    with pytest.raises(error, match=text):
        TensorDescriptor(*arguments).check_launch()  # type: ignore[arg-type]


def test_a_base_that_is_not_aligned_is_refused_at_launch() -> None:
    memory = np.zeros(64, np.uint8)
    aligned = memory[-memory.ctypes.data % 16 :]
    made = TensorDescriptor(aligned[1:], (16,), (1,), (16,))
    with pytest.raises(ArgumentNotSupported, match="no multiple of 16"):
        descriptor_slots(made)


def test_bytes_and_halves_have_wider_least_blocks() -> None:
    emission = Emission()
    made = make(emission, uint8)
    assert made.values[0].type.block_type.scalar == uint8  # type: ignore[union-attr]
    with pytest.raises(ShapeMismatch, match="make it 16 or more"):
        make(emission, int8, block_shape=[8, 8])
