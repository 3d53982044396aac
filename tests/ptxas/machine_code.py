"""Hopper's machine code as far as tests count it: instructions, their kinds, and loops.

An instruction is 16 bytes: its kind in bits 0 to 11; of a branch, the distance from behind it in
words of 4 bytes, in bits 16 to 23 and from 34 on.
*Source*: nvdisasm 13.5 -hex, compared by hand.
"""

from __future__ import annotations

import struct

from tilewright.support.dataclass import dataclass

BRANCH, ELECT, COPY, PRODUCT, WARPSYNC = 0x947, 0x82F, 0x5B4, 0x9F0, 0x348
TO_UNIFORM = 0x2CA
THREAD_COPY, ARRIVAL_BEHIND_COPIES = 0xFAE, 0x9B0
_BYTES = 16


@dataclass(frozen=True)
class MachineCode:
    """The instructions of one kernel."""

    instructions: tuple[int, ...]

    def kinds(self) -> list[int]:
        """What each instruction is; the two that start a product count as one."""
        kinds = [instruction & 0xFFF for instruction in self.instructions]
        return [PRODUCT if kind == 0xDF0 else kind for kind in kinds]

    def loops(self) -> list[list[int]]:
        """The kinds in each loop, innermost first: from where a branch leads back, to it."""
        kinds = self.kinds()
        found: list[list[int]] = []
        for index, instruction in enumerate(self.instructions):
            start = index + 1 + _distance(instruction) * 4 // _BYTES
            if kinds[index] == BRANCH and start < index:
                found.append(kinds[start : index + 1])
        return sorted(found, key=len)

    def arrivals_that_count(self) -> list[bool]:
        """Of each arrival behind copies, whether it is one of those that an mbarrier counts.

        Bits 70 and 71: 1 with `.noinc`; without it 2, behind an arrival that adds one more.
        """
        arrivals = [i for i in self.instructions if i & 0xFFF == ARRIVAL_BEHIND_COPIES]
        return [instruction >> 70 & 3 == 1 for instruction in arrivals]

    def loop_with(self, kind: int) -> list[int]:
        """The kinds in the smallest loop that has one of `kind`."""
        return next(loop for loop in self.loops() if kind in loop)


def _distance(branch: int) -> int:
    words = (branch >> 34 & (1 << 48) - 1) << 8 | branch >> 16 & 0xFF
    return words - (1 << 56) if words >> 55 else words


def machine_code(cubin: bytes, kernel: str) -> MachineCode:
    """The code of a kernel: section `.text.` with its name of a 64-bit ELF file."""
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 58)
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + size * i) for i in range(count)]
    names = sections[names_at][4]
    for name, _, _, _, start, num_bytes in sections:
        begin = names + name
        if cubin[begin : cubin.index(b"\0", begin)].decode() == f".text.{kernel}":
            code = cubin[start : start + num_bytes]
            words = [code[at : at + _BYTES] for at in range(0, num_bytes, _BYTES)]
            return MachineCode(tuple(int.from_bytes(word, "little") for word in words))
    raise AssertionError(f"no code of {kernel}")
