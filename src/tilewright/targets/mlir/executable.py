"""From LLVM's assembly of a kernel to an object that the CPU's pool of threads runs.

Part of a cache hit without an object: imports neither xDSL nor the compiler's front.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

import llvmlite.binding as llvm

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.optimize import create_target_machine, parse_module
from tilewright.machine.model import MachineModel
from tilewright.targets.cpu.emit import ROUND_TO_BFLOAT, emit_entry
from tilewright.targets.cpu.rules.reports import report_function
from tilewright.targets.cpu.runtime.status import MAX_RANK, OFFSETS
from tilewright.targets.mlir.tools import Tools

_IDS = ("pid0", "pid1", "pid2", "grid0", "grid1", "grid2")
# A conversion of this feature takes denormals for zero.
_INEXACT = ("avx512bf16", "avxneconvert")
_FAILURE = re.compile(
    r"  call void @puts\(ptr @(assert_msg\w*)\)\n  call void @abort\(\)\n  unreachable\n"
)
_PRINTF = re.compile(r"^declare void @(tw_printf\w*)\((.*)\)\n", re.MULTILINE)
_PRINT_CALL = re.compile(r"call void @(tw_printf\w*)\(")
_MESSAGE = re.compile(r'^@(assert_msg\w*) = private constant .* c"(.*)"', re.MULTILINE)
# Chosen, not measured: LLVM's own pipeline as most compilers run it. Its loop vectorizer stays
# off: in LLVM 22 an assertion of its cost model ends the process on a maximum of bfloat16s.
_SPEED_LEVEL = 2


def lowered(text: str, tools: Tools) -> str:
    """LLVM's assembly of a module in core dialects. Raises: MlirToolFailed."""
    return tools.to_llvm(tools.to_buffers(text))


def executable_text(lowered: str, metadata: Mapping[str, object]) -> str:
    """LLVM's assembly with the function that the pool calls.

    Of the metadata it takes `entry`, the kernel's symbol, `slots`, the LLVM types of its
    arguments, and `messages`, what each assertion says.
    """
    kernel, slots = str(metadata["entry"]), _texts(metadata["slots"])
    builder = ModuleBuilder()
    builder.add_metadata("!{i32 1}")
    _add_program(builder, kernel, slots)
    emit_entry(builder, list(slots), False)
    lines = [line for line in lowered.splitlines() if not line.startswith("!")]
    body = _reporting(builder, "\n".join(lines), kernel, _texts(metadata["messages"]))
    body = _printing(builder, body)
    text = f"{body}\n{builder.text()}"
    return text + ROUND_TO_BFLOAT if "bfloat" in text else text


def _add_program(builder: ModuleBuilder, kernel: str, slots: Sequence[str]) -> None:
    """The function that the entry calls for one program."""
    taken = [f"{kind} %a{index}" for index, kind in enumerate(slots)]
    taken += [f"i32 %{name}" for name in _IDS]
    header = (
        f"define internal fastcc void @program({', '.join(taken)}, ptr %scratch, ptr %status)"
        " noinline nounwind"
    )
    fn = FunctionBuilder(builder, header)
    given: list[str] = []
    for index, kind in enumerate(slots):
        if kind == "ptr":
            # A memref is two pointers, an offset, a size (which nothing looks at) and a stride.
            given += [f"ptr %a{index}", f"ptr %a{index}", "i64 0", f"i64 {(1 << 63) - 1}", "i64 1"]
        else:
            given.append(f"{kind} %a{index}")
    given += [f"i32 %{name}" for name in _IDS]
    fn.emit(f'call void @"{kernel}"({", ".join(given)}, ptr %status)')
    fn.emit("ret void")
    builder.add_function("program", fn.text())


def _texts(value: object) -> list[str]:
    assert isinstance(value, list)
    return list(map(str, value))


def _reporting(builder: ModuleBuilder, lowered: str, kernel: str, messages: Sequence[str]) -> str:
    """A kernel that takes the status record as its last argument.

    A program whose assertion fails fills it and ends, where MLIR would end the process.
    """
    header = re.compile(rf'^define void @"?{re.escape(kernel)}"?\(([^)]*)\)', re.MULTILINE)
    found = header.search(lowered)
    assert found is not None, f"there is no function {kernel}"
    first = found[1].count("%") - len(_IDS)
    ids = ", ".join(f"i32 %{first + axis}" for axis in range(3))
    sites = {name: messages.index(text) for name, text in _failures(lowered).items()}
    none = ", ".join(["i32 0"] * (1 + MAX_RANK))

    def report(failure: re.Match[str]) -> str:
        site = sites[failure[1]]
        function = report_function(builder)
        return f"  call void {function}(ptr %status, i32 {site}, {ids}, {none})\n  ret void\n"

    start = f'define internal void @"{kernel}"({found[1]}, ptr %status)'
    return _FAILURE.sub(report, lowered[: found.start()] + start + lowered[found.end() :])


def _printing(builder: ModuleBuilder, lowered: str) -> str:
    """A kernel whose lines go to the file that the status record names."""
    for name, kinds in _PRINTF.findall(lowered):
        builder.declare("dprintf", "i32", "i32, ptr, ...")
        taken = [f"{kind} %a{index}" for index, kind in enumerate(kinds.split(", "))]
        header = f"define internal void @{name}(ptr %status, {', '.join(taken)}) nounwind"
        fn = FunctionBuilder(builder, header)
        place = fn.value(f"getelementptr i8, ptr %status, i64 {OFFSETS['print_file']}")
        file = fn.value(f"load i32, ptr {place}, align 4")
        # The format is a memref: two pointers, an offset, a size and a stride.
        given = ", ".join((f"i32 {file}", "ptr %a1", *taken[5:]))
        fn.value(f"call i32 (i32, ptr, ...) @dprintf({given})")
        fn.emit("ret void")
        builder.add_function(name, fn.text())
    called = _PRINTF.sub("", lowered)
    return _PRINT_CALL.sub(r"call void @\1(ptr %status, ", called)


def _failures(lowered: str) -> dict[str, str]:
    """The messages of assertions by the names of their constants."""
    found: dict[str, str] = {}
    for name, text in _MESSAGE.findall(lowered):
        raw = re.sub(rb"\\([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), text.encode())
        found[name] = raw.rstrip(b"\0").decode()
    return found


def compile_object(text: str, machine: MachineModel) -> bytes:
    """Machine code of a module in LLVM's assembly, after LLVM's own pipeline."""
    features = tuple(f for f in machine.features if f[1:] not in _INEXACT)
    features += tuple(f"-{name}" for name in _INEXACT if f"+{name}" in machine.features)
    target = create_target_machine(machine.arch, features, machine.triple)
    module = parse_module(text, target)
    options = llvm.create_pipeline_tuning_options(speed_level=_SPEED_LEVEL)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)
    return target.emit_object(module)


def object_key(text: str, tools: Tools, machine: MachineModel, fingerprint: str) -> str:
    """Under what an object is kept: all that it was made from."""
    parts = (text, str(tools.opt), tools.version, repr(machine.to_features()), fingerprint)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
