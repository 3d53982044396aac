"""The memory of a launch as qemu gets it, and tools that are missing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.aarch64.emulator import BASE, REMEDY, Image, image_of, tool
from tests.corpus.case import Addresses
from tests.corpus.run import guarded


def test_arrays_keep_their_place_in_a_page() -> None:
    image = Image()
    memory = guarded({"x": np.arange(100, dtype=np.float32)}, shift=3)
    (buffer,) = memory.buffers
    image.move(buffer.memory)
    x = memory.arrays()["x"]
    moved = image.moved(x.ctypes.data)
    assert moved >= BASE
    assert moved % 4096 == x.ctypes.data % 4096
    assert image.read(moved, x.nbytes) == x.tobytes()


def test_an_address_of_no_array_is_refused() -> None:
    image = Image()
    inside = np.zeros(8)
    image.move(inside)
    end = inside.ctypes.data + inside.nbytes
    assert image.moved(end - 1) == image.moved(inside.ctypes.data) + inside.nbytes - 1
    with pytest.raises(ValueError, match="lies in no array"):
        image.moved(end)


def test_tables_of_addresses_point_into_the_image() -> None:
    x = np.arange(10, dtype=np.int16)
    memory = guarded({"x": x, "table": Addresses((("x", 0), ("x", 7)))})
    image = image_of(memory)
    table = memory.values["table"]
    assert isinstance(table, np.ndarray)
    content = image.read(image.moved(table.ctypes.data), table.nbytes)
    first, second = np.frombuffer(content, np.int64)
    assert second - first == 14
    assert image.read(int(second), 2) == x[7].tobytes()


def test_a_missing_tool_is_named_with_the_way_to_get_it() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        tool("qemu-of-no-machine")
    assert "qemu-of-no-machine" in str(caught.value)
    assert REMEDY in str(caught.value)
