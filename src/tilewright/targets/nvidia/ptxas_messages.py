"""What ptxas says, as data: registers, spills, and messages mapped to the kernel's own lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tilewright.support.dataclass import dataclass

_MESSAGE = re.compile(
    r"ptxas (?:(?P<file>[^;\n]*), line (?P<line>\d+); )?"
    r"(?P<severity>error|fatal|warning|info)\s*: (?:\((?P<code>C\d+)\) )?(?P<text>.*)"
)
_FUNCTION = re.compile(r"Function properties for (?P<name>\S+)")
_FRAME = re.compile(
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads"
)
_USED = re.compile(r"Used (?P<registers>\d+) registers(?:, used (?P<barriers>\d+) barriers)?")
_SHARED = re.compile(r"(?P<bytes>\d+) bytes smem")
_COMPILING = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
_FILE = re.compile(r'\s*\.file\s+(?P<index>\d+)\s+"(?P<path>[^"]*)"')
_LOCATION = re.compile(r"\s*\.loc\s+(?P<index>\d+)\s+(?P<line>\d+)\s+\d+")
# Places that some messages name in their text rather than in front of it.
_LINE_OF_TEXT = re.compile(r" (?:in around|around|at|on|near) line (?P<line>\d+)")
_FUNCTION_OF_TEXT = re.compile(r" in (?:the )?function (?:'[^']*'|\w+)")

# The codes of what stops matrix instructions from overlapping; C7519 (a fence was added) does
# not. Measured with ptxas 13.0, 2026-11.
SERIALIZED = frozenset(f"C{number}" for number in range(7509, 7519))
_SETMAXNREG_IGNORED = "C7508"
# What it says of kernels that need more than a machine has.
EXCEEDED = ("too much shared data", "Insufficient registers")


@dataclass(frozen=True)
class Message:
    """One message: `kind` is what it is about, `file` and `line` are the kernel's own, if known.

    `kind` is one of `error`, `resources` (too much shared memory, too few registers),
    `serialized` (matrix instructions wait for each other), `setmaxnreg` (ignored) and `note`;
    `code` is the assembler's number (`C7510`), where it gives one.
    """

    severity: str
    kind: str
    text: str
    code: str = ""
    ptx_line: int = 0
    file: str = ""
    line: int = 0

    def remark(self) -> str:
        """This message as one line, with the source position in front where it is known."""
        where = f"{self.file}:{self.line}: " if self.line else ""
        code = f" ({self.code})" if self.code else ""
        return f"{where}ptxas: {self.text}{code}"


@dataclass(frozen=True)
class Resources:
    """What one kernel takes of the machine, as ptxas counts it.

    *Units*: 32-bit registers a thread; bytes a thread for the stack and what is spilled to it;
    bytes a cta of statically allocated shared memory.
    """

    registers: int = 0
    stack_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    static_shared_bytes: int = 0
    barriers: int = 0

    @property
    def has_spills(self) -> bool:
        """Whether registers were spilled to memory."""
        return bool(self.spill_store_bytes or self.spill_load_bytes)


def parse_messages(output: str, ptx: str) -> tuple[Message, ...]:
    """The errors, warnings and performance messages among what ptxas printed for `ptx`."""
    return tuple(_messages(output, ptx))


def _messages(output: str, ptx: str) -> Iterator[Message]:
    for line in output.splitlines():
        match = _MESSAGE.match(line)
        if match is None:
            continue
        severity, code, text = match["severity"], match["code"] or "", match["text"].strip()
        # Plain information is the counts that `parse_resources` reads.
        if severity == "info" and not code:
            continue
        in_text = _LINE_OF_TEXT.search(text)
        ptx_line = int(match["line"] or (in_text["line"] if in_text is not None else 0))
        file, source_line = source_position(ptx, ptx_line)
        kind = _kind(severity, code, text)
        text = _FUNCTION_OF_TEXT.sub("", _LINE_OF_TEXT.sub("", text))
        yield Message(severity, kind, text, code, ptx_line, file, source_line)


def _kind(severity: str, code: str, text: str) -> str:
    if any(words in text for words in EXCEEDED):
        return "resources"
    if severity in ("error", "fatal"):
        return "error"
    if code == _SETMAXNREG_IGNORED or "setmaxnreg" in text:
        return "setmaxnreg"
    if code in SERIALIZED or "serialized" in text:
        return "serialized"
    return "note"


def source_position(ptx: str, ptx_line: int) -> tuple[str, int]:
    """The kernel's file and line at a line of PTX, by the last `.loc` before it; ('', 0) else."""
    lines = ptx.splitlines()
    for text in reversed(lines[: max(ptx_line, 0)]):
        match = _LOCATION.match(text)
        if match is not None:
            return _files(lines).get(match["index"], ""), int(match["line"])
    return "", 0


def _files(lines: list[str]) -> Mapping[str, str]:
    matches = (_FILE.match(line) for line in lines)
    return {match["index"]: match["path"] for match in matches if match is not None}


def parse_resources(output: str) -> dict[str, Resources]:
    """What each function takes, by the name of the function, from the output of `ptxas -v`.

    The counts of registers belong to the kernel that was being compiled; functions that were
    not inlined have a frame of their own and share its registers.
    """
    found: dict[str, Resources] = {}
    kernel = function = ""
    for line in output.splitlines():
        compiling, properties = _COMPILING.search(line), _FUNCTION.search(line)
        frame, used = _FRAME.search(line), _USED.search(line)
        if compiling is not None:
            kernel = compiling["name"]
        elif properties is not None:
            function = properties["name"]
        elif frame is not None:
            found[function] = _with_frame(found.get(function, Resources()), frame)
        elif used is not None:
            found[kernel] = _with_counts(found.get(kernel, Resources()), used, line)
    return found


def _with_frame(resources: Resources, frame: re.Match[str]) -> Resources:
    return Resources(
        resources.registers,
        int(frame["stack"]),
        int(frame["stores"]),
        int(frame["loads"]),
        resources.static_shared_bytes,
        resources.barriers,
    )


def _with_counts(resources: Resources, used: re.Match[str], line: str) -> Resources:
    shared = _SHARED.search(line)
    return Resources(
        int(used["registers"]),
        resources.stack_bytes,
        resources.spill_store_bytes,
        resources.spill_load_bytes,
        0 if shared is None else int(shared["bytes"]),
        int(used["barriers"] or 0),
    )
