"""The tensor maps of a launch as LLVM text: those of earlier launches, or Python makes them.

A launch's maps depend on some of its slots. They are kept in a table of entries, found by a hash
of those slots; an entry whose keys differ is made again by `MapRecord.maker`:

    MapRecord ─ entries ─►  held │ keys … │ maps, 128 bytes each, at `maps_at`
                            held │ keys … │ maps …

Keys with the numbers -1, -2 and -3 are the extents of the grid, which stand before the slots. An
entry that says `unfit` holds no maps: the kernel is not made for launches with these keys.
"""

from __future__ import annotations

# Byte offsets in `MapRecord`: where the tensor maps of earlier launches are kept.
MAP_FIELDS: dict[str, int] = {
    "num_maps": 0,
    "num_keys": 8,
    "key_slots": 16,
    "entries": 24,
    "entry_bytes": 32,
    "maps_at": 40,
    "maker": 48,
}
# By definition: an entry is a word that says whether it holds something, the keys, and the maps.
# The upper six bits of a hash name one.
MAP_ENTRY_KEYS = 8
NUM_MAP_ENTRIES = 64
# Source: cuda.h, CUtensorMap: 128 bytes.
MAP_BYTES = 128
# By definition: what the first word of an entry says; 0 is one that nothing has been put in.
HELD = {"maps": 1, "unfit": 2}
# By definition: the words before the slots, of which the last three are the grid.
NUM_GRID_WORDS = 4

MAPS = r"""
; The entry for the keys of a launch: the slots that its tensor maps depend on, hashed.
define internal ptr @map_entry(ptr %maps, ptr %slots) {
entry:
  %num = call i64 @row_entry(ptr %maps, i64 $map_num_keys)
  %indices = call ptr @table_entry(ptr %maps, i64 $map_key_slots)
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %mix]
  %hash = phi i64 [0, %entry], [%mixed, %mix]
  %more = icmp ult i64 %i, %num
  br i1 %more, label %mix, label %done
mix:
  %index.at = getelementptr i64, ptr %indices, i64 %i
  %index = load i64, ptr %index.at
  %slot = getelementptr i64, ptr %slots, i64 %index
  %key = load i64, ptr %slot
  %both = xor i64 %hash, %key
  ; 2^64 divided by the golden ratio spreads neighbours over the high bits.
  %mixed = mul i64 %both, -7046029254386353131
  %i.next = add i64 %i, 1
  br label %next
done:
  %place = lshr i64 %hash, 58
  %size = call i64 @row_entry(ptr %maps, i64 $map_entry_bytes)
  %offset = mul i64 %place, %size
  %entries = call ptr @table_entry(ptr %maps, i64 $map_entries)
  %at = getelementptr i8, ptr %entries, i64 %offset
  ret ptr %at
}

; Whether an entry holds the maps for these slots.
define internal i1 @map_entry_fits(ptr %maps, ptr %at, ptr %slots) {
entry:
  %held = load i64, ptr %at
  %holds = icmp ne i64 %held, 0
  br i1 %holds, label %compare, label %no
compare:
  %num = call i64 @row_entry(ptr %maps, i64 $map_num_keys)
  %indices = call ptr @table_entry(ptr %maps, i64 $map_key_slots)
  %keys = getelementptr i8, ptr %at, i64 $map_entry_keys
  br label %next
next:
  %i = phi i64 [0, %compare], [%i.next, %look]
  %more = icmp ult i64 %i, %num
  br i1 %more, label %look, label %yes
look:
  %index.at = getelementptr i64, ptr %indices, i64 %i
  %index = load i64, ptr %index.at
  %slot = getelementptr i64, ptr %slots, i64 %index
  %value = load i64, ptr %slot
  %key.at = getelementptr i64, ptr %keys, i64 %i
  %key = load i64, ptr %key.at
  %same = icmp eq i64 %key, %value
  %i.next = add i64 %i, 1
  br i1 %same, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; Let Python make the maps of these slots in an entry: false with an exception.
define internal i1 @make_maps(ptr %maps, ptr %at, ptr %slots) {
  %arguments = alloca [3 x ptr]
  %first = getelementptr ptr, ptr %arguments, i64 1
  %second = getelementptr ptr, ptr %arguments, i64 2
  %slots.word = ptrtoint ptr %slots to i64
  %at.word = ptrtoint ptr %at to i64
  %slots.number = call ptr @PyLong_FromLongLong(i64 %slots.word)
  %no.slots = icmp eq ptr %slots.number, null
  br i1 %no.slots, label %fail, label %other
other:
  %at.number = call ptr @PyLong_FromLongLong(i64 %at.word)
  %no.at = icmp eq ptr %at.number, null
  br i1 %no.at, label %drop, label %call
drop:
  call void @Py_DecRef(ptr %slots.number)
  ret i1 false
call:
  store ptr %slots.number, ptr %first
  store ptr %at.number, ptr %second
  %maker = call ptr @table_entry(ptr %maps, i64 $map_maker)
  %value = call ptr @PyObject_Vectorcall(ptr %maker, ptr %first,
                                        i64 -9223372036854775806, ptr null)
  call void @Py_DecRef(ptr %slots.number)
  call void @Py_DecRef(ptr %at.number)
  %raised = icmp eq ptr %value, null
  br i1 %raised, label %fail, label %good
good:
  call void @Py_DecRef(ptr %value)
  ret i1 true
fail:
  ret i1 false
}

; Put the extents of a grid before the slots.
define internal void @put_grid(ptr %slots, ptr %grid) {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %put]
  %more = icmp ult i64 %i, 3
  br i1 %more, label %put, label %done
put:
  %extent.at = getelementptr i32, ptr %grid, i64 %i
  %extent = load i32, ptr %extent.at
  %word = zext i32 %extent to i64
  %place = sub i64 -1, %i
  %at = getelementptr i64, ptr %slots, i64 %place
  store i64 %word, ptr %at
  %i.next = add i64 %i, 1
  br label %next
done:
  ret void
}

; Copy the maps of a launch to `copies` and point at them behind the slots. 1: done, 0: another
; thread was faster, 2: the kernel is not made for such a launch, -1: an exception.
define internal i32 @add_maps(ptr %maps, ptr %slots, ptr %copies, ptr %params) {
entry:
  %at = call ptr @map_entry(ptr %maps, ptr %slots)
  %known = call i1 @map_entry_fits(ptr %maps, ptr %at, ptr %slots)
  br i1 %known, label %start, label %make
make:
  %made = call i1 @make_maps(ptr %maps, ptr %at, ptr %slots)
  br i1 %made, label %again, label %raise
again:
  %now = call i1 @map_entry_fits(ptr %maps, ptr %at, ptr %slots)
  br i1 %now, label %start, label %slow
start:
  %held = load i64, ptr %at
  %unfit = icmp eq i64 %held, $held_unfit
  br i1 %unfit, label %refuse, label %copy
refuse:
  ret i32 2
copy:
  %num = call i64 @row_entry(ptr %maps, i64 $map_num_maps)
  %from = call i64 @row_entry(ptr %maps, i64 $map_maps_at)
  %source = getelementptr i8, ptr %at, i64 %from
  %bytes = mul i64 %num, $map_bytes
  %words = lshr i64 %bytes, 3
  call void @copy_words(ptr %copies, ptr %source, i64 %words)
  br label %point
point:
  %k = phi i64 [0, %copy], [%k.next, %next]
  %left = icmp ult i64 %k, %num
  br i1 %left, label %next, label %done
next:
  %offset = mul i64 %k, $map_bytes
  %map = getelementptr i8, ptr %copies, i64 %offset
  %param = getelementptr ptr, ptr %params, i64 %k
  store ptr %map, ptr %param
  %k.next = add i64 %k, 1
  br label %point
done:
  ret i32 1
slow:
  ret i32 0
raise:
  ret i32 -1
}
"""
