"""The GPU launcher's functions one by one, without a driver: docs/internals/native-launch.md."""

from __future__ import annotations

import ctypes

import pytest

from tests.unit.native_parts import Functions, load_parts
from tilewright.targets.nvidia.launch_maps_ir import (
    MAP_BYTES,
    MAP_ENTRY_KEYS,
    MAP_FIELDS,
    NUM_MAP_ENTRIES,
)
from tilewright.targets.nvidia.launcher_ir import (
    CONFIG_FIELDS,
    CONFIG_WORDS,
    ENTRY_BYTES,
    ENTRY_FIELDS,
    HISTORY_FIELDS,
    NUM_ENTRIES,
    NUM_ENTRY_SLOTS,
    RECORD_FIELDS,
    nvidia_launcher_text,
)

WORD = 8


@pytest.fixture(scope="module")
def parts() -> Functions:
    names = "configure point_at note_launch map_entry map_entry_fits add_maps"
    return load_parts(nvidia_launcher_text(), *names.split())


def words(*values: int) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(values))(*values)


def word_at(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def make_record(**fields: int) -> ctypes.Array[ctypes.c_int64]:
    record = words(*[0] * 20)
    for name, value in fields.items():
        record[RECORD_FIELDS[name] // WORD] = value
    return record


def test_a_configuration_is_the_kernels_with_this_grid_and_stream(parts: Functions):
    record = make_record(grid_scale=2)
    for i in range(CONFIG_WORDS):
        record[i] = 100 + i
    config, grid = words(*[0] * CONFIG_WORDS), (ctypes.c_int32 * 3)(5, 6, 7)
    given = [ctypes.addressof(each) for each in (record, config, grid)]
    parts["configure"](*given, 9)
    extents = (ctypes.c_int32 * 3).from_buffer(config)
    assert list(extents) == [10, 6, 7]
    stream = CONFIG_FIELDS["stream"] // WORD
    assert config[stream] == 9
    assert [config[i] for i in range(2, CONFIG_WORDS) if i != stream] == [102, 103, 105, 106]


def test_parameters_point_at_their_slots(parts: Functions):
    slots, params = words(1, 2, 3), words(0, 0, 0, -1)
    parts["point_at"](ctypes.addressof(params), ctypes.addressof(slots), 3)
    assert list(params) == [ctypes.addressof(slots) + i * WORD for i in range(3)] + [-1]


@pytest.mark.parametrize("num_slots", [0, 2, NUM_ENTRY_SLOTS, NUM_ENTRY_SLOTS + 3])
def test_the_history_goes_around_and_keeps_what_has_room(parts: Functions, num_slots: int):
    history = (ctypes.c_char * (HISTORY_FIELDS["entries"] + NUM_ENTRIES * ENTRY_BYTES + 8))()
    at, grid = ctypes.addressof(history), (ctypes.c_int32 * 3)(4, 5, 6)
    record = make_record(history=at, num_params=num_slots)
    slots = words(*range(1, num_slots + 1), 0)
    arguments = [ctypes.addressof(each) for each in (record, grid, slots)]
    for _ in range(NUM_ENTRIES + 2):
        parts["note_launch"](*arguments)
    assert word_at(at + HISTORY_FIELDS["count"]) == NUM_ENTRIES + 2
    kept = min(num_slots, NUM_ENTRY_SLOTS)
    for index in (0, 1, NUM_ENTRIES - 1):
        entry = at + HISTORY_FIELDS["entries"] + index * ENTRY_BYTES
        assert word_at(entry + ENTRY_FIELDS["record"]) == arguments[0]
        assert list((ctypes.c_int32 * 3).from_address(entry + ENTRY_FIELDS["grid"])) == [4, 5, 6]
        count = ctypes.c_int32.from_address(entry + ENTRY_FIELDS["num_slots"]).value
        assert count == kept
        noted = (ctypes.c_int64 * kept).from_address(entry + ENTRY_FIELDS["slots"])
        assert list(noted) == list(range(1, kept + 1))
    end = at + HISTORY_FIELDS["entries"] + NUM_ENTRIES * ENTRY_BYTES
    assert word_at(end) == 0, "what lies behind the last entry was written"


class Maps:
    """A `MapRecord` of one map whose keys are slots 2 and 0, with its empty table."""

    def __init__(self) -> None:
        entry_bytes = MAP_ENTRY_KEYS + 2 * WORD + MAP_BYTES
        self.table = (ctypes.c_char * (entry_bytes * NUM_MAP_ENTRIES))()
        self.keys = words(2, 0)
        fields = {
            "num_maps": 1,
            "num_keys": 2,
            "key_slots": ctypes.addressof(self.keys),
            "entries": ctypes.addressof(self.table),
            "entry_bytes": entry_bytes,
            "maps_at": MAP_ENTRY_KEYS + 2 * WORD,
        }
        self.record = words(*[0] * 7)
        for name, value in fields.items():
            self.record[MAP_FIELDS[name] // WORD] = value
        self.address = ctypes.addressof(self.record)

    def fill(self, entry: int, keys: tuple[int, int], value: int) -> None:
        num_words = MAP_BYTES // WORD
        made = (ctypes.c_int64 * (3 + num_words)).from_address(entry)
        made[:] = [1, *keys, *[value] * num_words]


def test_an_entry_is_found_by_its_key_slots_alone(parts: Functions):
    maps, slots, other = Maps(), words(7, 8, 9), words(7, -1, 9)
    entry = parts["map_entry"](maps.address, ctypes.addressof(slots))
    assert entry == parts["map_entry"](maps.address, ctypes.addressof(other))
    assert not parts["map_entry_fits"](maps.address, entry, ctypes.addressof(slots))
    maps.fill(entry, (9, 7), 5)
    assert parts["map_entry_fits"](maps.address, entry, ctypes.addressof(other))
    for changed in (words(6, 8, 9), words(7, 8, 10)):
        assert not parts["map_entry_fits"](maps.address, entry, ctypes.addressof(changed))


def test_known_maps_are_copied_and_pointed_at(parts: Functions):
    maps, slots = Maps(), words(7, 8, 9)
    entry = parts["map_entry"](maps.address, ctypes.addressof(slots))
    maps.fill(entry, (9, 7), 5)
    copies, params = words(*[0] * (MAP_BYTES // WORD + 1)), words(0, -1)
    given = [ctypes.addressof(each) for each in (slots, copies, params)]
    assert parts["add_maps"](maps.address, *given) == 1
    assert list(copies) == [5] * (MAP_BYTES // WORD) + [0]
    assert list(params) == [given[1], -1]
