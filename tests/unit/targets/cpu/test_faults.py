"""What the handler of faults reads, and its functions one by one."""

from __future__ import annotations

import ctypes
import platform
import sys
from pathlib import Path

import pytest

from tests.unit.native_parts import Functions, load_parts
from tilewright.codegen.link import LoadedCode, load_object
from tilewright.codegen.optimize import compile_module
from tilewright.runtime.artifact import Artifact
from tilewright.targets.cpu.runtime.fault_ir import (
    ACTION_BYTES,
    CASES,
    ENTRY_FIELDS,
    FAULT_SIGNALS,
    HELP,
    fault_text,
    handles_faults,
)
from tilewright.targets.cpu.runtime.faults import NAME_BYTES, FaultReports, shown_name
from tilewright.targets.cpu.runtime.pool_ir import pool_text

ILL, BUS, FPE, SEGV = FAULT_SIGNALS
MAPPED_NOT, DENIED, KERNEL = 1, 2, 128
STACK = 0x7FFD_0000_0000
CODE = "define i64 @code(i64 %x) {\n  ret i64 %x\n}\n"


@pytest.fixture(scope="module")
def parts() -> Functions:
    text = pool_text(platform.machine(), sys.platform == "linux") + fault_text(platform.machine())
    return load_parts(text, "case_of", "write_number")


@pytest.fixture
def list_of_kernels(monkeypatch: pytest.MonkeyPatch) -> tuple[FaultReports, ctypes.c_int64]:
    """A list of its own, the address of its first entry, and no handler."""
    monkeypatch.setattr(FaultReports, "_watch", lambda self: None)
    head = ctypes.c_int64(0)
    addresses = {"on_fault": 0, "fault_entries": ctypes.addressof(head), "fault_actions": 0}
    return FaultReports(addresses), head


def artifact(name: str, compiled: bytes, *, checked: bool = False) -> Artifact:
    metadata = {"name": name, "defined": ["k.py", 3], "options": {"checked": checked}}
    return Artifact("key", metadata, {"object": compiled})


def noted(reports: FaultReports, name: str, *, checked: bool = False) -> LoadedCode:
    compiled = compile_module(CODE, "", ()).object
    code = load_object(compiled, "code")
    reports.note(artifact(name, compiled, checked=checked), code, "code")
    return code


def read(entry: int, field: str) -> int:
    return ctypes.c_int64.from_address(entry + ENTRY_FIELDS[field]).value


def names_by_address(head: ctypes.c_int64, address: int) -> list[bytes]:
    """The names of the entries that hold an address."""
    entry, found = head.value, []
    while entry:
        if 0 <= address - read(entry, "start") < read(entry, "bytes"):
            found.append(ctypes.string_at(read(entry, "name"), read(entry, "name_bytes")))
        entry = read(entry, "next")
    return found


@pytest.mark.parametrize(
    ("signal", "code", "address", "said"),
    [
        (SEGV, MAPPED_NOT, 0, "lies outside of the memory of the arguments"),
        (SEGV, MAPPED_NOT, STACK - 100_000, "lies outside of the memory of the arguments"),
        (SEGV, MAPPED_NOT, STACK + 100_000, "lies outside of the memory of the arguments"),
        (SEGV, DENIED, 0x7F00_0000_0000, "may only be read, or lies outside"),
        (SEGV, MAPPED_NOT, STACK - 8, "near the stack pointer"),
        (SEGV, DENIED, STACK + 4096, "near the stack pointer"),
        (SEGV, KERNEL, 0, "the processor tells no address"),
        (BUS, 2, 0x7F00_0000_0000, "signal 7 (SIGBUS)"),
        (BUS, 1, STACK, "signal 7 (SIGBUS)"),
        (ILL, 2, 0x7F00_0000_0000, "signal 4 (SIGILL)"),
        (FPE, 1, 0x7F00_0000_0000, "signal 8 (SIGFPE)"),
    ],
)
def test_no_more_is_said_than_is_known(parts, signal, code, address, said) -> None:
    case = CASES[parts["case_of"](signal, code, address, STACK)]
    assert said in case.head + case.tail


def test_the_remedy_follows_accesses_only() -> None:
    checkable = [case.tail for case in CASES if case.is_checkable]
    assert all("lies" in tail for tail in checkable)
    assert all("lies" not in case.tail for case in CASES if not case.is_checkable)


@pytest.mark.parametrize("number", [0, 0x9ABCDEF, 0x123456789ABCDEF0, (1 << 64) - 1])
def test_an_address_is_written_in_hexadecimal(parts, number) -> None:
    text = ctypes.create_string_buffer(b"." * 18)
    parts["write_number"](ctypes.addressof(text) + 1, number)
    assert text.value == f".{number:016x}.".encode()


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_the_handler_compiles_for_both_linux_architectures(architecture) -> None:
    triple = f"{architecture}-unknown-linux-gnu"
    text = pool_text(architecture, is_linux=True) + fault_text(architecture)
    assert compile_module(text, "generic", (), triple).object.startswith(b"\x7fELF")


def test_no_other_machine_has_a_handler() -> None:
    assert handles_faults("x86_64", is_linux=True)
    assert not handles_faults("x86_64", is_linux=False)
    assert not handles_faults("riscv64", is_linux=True)


def test_an_action_of_every_signal_has_its_place() -> None:
    assert max(FAULT_SIGNALS) < 16
    assert f"[16 x [{ACTION_BYTES} x i8]]" in fault_text("x86_64")


def test_a_kernel_is_named_while_its_code_is_loaded(list_of_kernels) -> None:
    reports, head = list_of_kernels
    first, second = noted(reports, "first"), noted(reports, "second")
    begin, other = first.address, second.address
    assert names_by_address(head, begin) == [b"first\n  k.py:3, in first\n"]
    assert names_by_address(head, other) == [b"second\n  k.py:3, in second\n"]
    assert names_by_address(head, begin - 64) == []
    del first
    assert names_by_address(head, begin) == []
    assert names_by_address(head, other) == [b"second\n  k.py:3, in second\n"]


def test_the_entry_of_code_that_is_gone_is_taken_again(list_of_kernels) -> None:
    reports, head = list_of_kernels
    kept = noted(reports, "kept")
    entries = set()
    for number in range(5):
        code = noted(reports, f"kernel_{number}")
        entries.add(head.value)
        name = f"kernel_{number}\n  k.py:3, in kernel_{number}\n".encode()
        assert names_by_address(head, code.address) == [name]
        del code
    assert len(entries) == 1
    assert names_by_address(head, kept.address) == [b"kept\n  k.py:3, in kept\n"]


def test_who_is_checked_gets_no_help(list_of_kernels) -> None:
    reports, head = list_of_kernels
    code = noted(reports, "plain")
    assert read(head.value, "help_bytes") == len(HELP)
    checked = noted(reports, "checked", checked=True)
    assert read(head.value, "help_bytes") == 0
    assert code.address != checked.address


def test_an_object_of_another_format_is_not_noted(list_of_kernels) -> None:
    reports, head = list_of_kernels
    code = load_object(compile_module(CODE, "", ()).object, "code")
    reports.note(artifact("foreign", b"\xcf\xfa\xed\xfe"), code, "code")
    assert head.value == 0


def test_long_names_and_paths_fit_into_an_entry(list_of_kernels) -> None:
    reports, head = list_of_kernels
    compiled = compile_module(CODE, "", ()).object
    code = load_object(compiled, "code")
    path = str(Path("/", *(["folder\N{GREEK SMALL LETTER PI}"] * 600), "kernel.py"))
    name = "\N{LINEAR B SYLLABLE B008 A}" * 300
    metadata = {"name": name, "defined": [path, 1_000_000_000], "constants": f"{name}={name!r}"}
    reports.note(Artifact("key", metadata, {"object": compiled}), code, "code")
    (shown,) = names_by_address(head, code.address)
    assert shown == shown_name(metadata)
    # The entry is followed by as many bytes as it was made with: the longest name has room.
    assert len(shown) <= NAME_BYTES
    assert shown.decode(errors="replace").count("kernel.py:1000000000, in ") == 1
    assert shown.endswith(b"...\n")


def test_a_kernel_without_a_place_is_named() -> None:
    assert shown_name({"name": "k"}) == b"k\n"
