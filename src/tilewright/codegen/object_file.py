"""Where the code of a symbol lies in an object file: the ELF files that LLVM writes on Linux."""

from __future__ import annotations

import struct

# Source: elf(5), little-endian: of Elf64_Ehdr the offset of the table of sections, and the number
# of them; of an Elf64_Shdr type, offset, size and link; an Elf64_Sym but for its size.
_MAGIC = b"\x7fELF\x02\x01"
_TABLE_AT, _NUM_SECTIONS_AT = 40, 60
_SECTION = struct.Struct("<4xI16xQQI20x")
_SYMBOL = struct.Struct("<I2xHQ8x")
_SYMBOL_TABLE = 2


def code_range(object_bytes: bytes, symbol: str) -> tuple[int, int] | None:
    """The offset of a symbol in its section, and the section's size.

    None in a file of another format, and where the symbol is not defined.
    """
    if not object_bytes.startswith(_MAGIC):
        return None
    (start,) = struct.unpack_from("<Q", object_bytes, _TABLE_AT)
    (number,) = struct.unpack_from("<H", object_bytes, _NUM_SECTIONS_AT)
    sections = list(_SECTION.iter_unpack(object_bytes[start : start + number * _SECTION.size]))
    tables = [section for section in sections if section[0] == _SYMBOL_TABLE]
    for _, begin, num_bytes, link in tables:
        names = sections[link][1]
        for at, section, offset in _SYMBOL.iter_unpack(object_bytes[begin : begin + num_bytes]):
            # An index past the list stands for something else: absolute, common; 0: undefined.
            is_defined = 0 < section < number
            if is_defined and object_bytes.startswith(symbol.encode() + b"\0", names + at):
                return offset, sections[section][2]
    return None
