"""What a kernel says while it runs: lines for the driver's print buffer, failed assertions.

*Source*: "vprintf" and "__assertfail" are system calls of the driver; PTX Writer's Guide to
Interoperability, "System Calls".
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.simt.services import CallSite

# By definition: the widths of the types.
_BYTES = {"i32": 4, "i64": 8, "double": 8}


def emit_print(
    fn: FunctionBuilder, module: ModuleBuilder, text: str, arguments: Sequence[tuple[str, str]]
) -> None:
    """Print by a format of printf; `arguments` are (LLVM type, name)."""
    printer = _printer(module, text, [kind for kind, _ in arguments])
    fn.emit(f"call void {printer}({', '.join(f'{kind} {name}' for kind, name in arguments)})")


def _printer(module: ModuleBuilder, text: str, kinds: Sequence[str]) -> str:
    """A function that prints by one format, so that a line costs its caller one call."""
    number, format_ = _text(module, text)
    name = f"tw_print_{number}"
    if module.has_function(name):
        return f"@{name}"
    module.declare("vprintf", "i32", "ptr, ptr")
    parameters = ", ".join(f"{kind} %a{index}" for index, kind in enumerate(kinds))
    fn = FunctionBuilder(module, f"define internal void @{name}({parameters}) noinline nounwind")
    offsets: list[int] = []
    end = 0
    for kind in kinds:
        size = _BYTES[kind]
        offsets.append(-(-end // size) * size)
        end = offsets[-1] + size
    buffer = fn.value(f"alloca [{max(8, end)} x i8], align 8")
    for index, (kind, offset) in enumerate(zip(kinds, offsets, strict=True)):
        place = fn.value(f"getelementptr i8, ptr {buffer}, i64 {offset}")
        fn.emit(f"store {kind} %a{index}, ptr {place}, align {_BYTES[kind]}")
    fn.value(f"call i32 @vprintf(ptr {format_}, ptr {buffer})")
    fn.emit("ret void")
    return module.add_function(name, fn.text())


def emit_failure(fn: FunctionBuilder, module: ModuleBuilder, message: str, site: CallSite) -> None:
    """Report a failed assertion with its place and program, and stop the kernel."""
    module.declare("__assertfail", "void", "ptr, ptr, i32, ptr, i64")
    texts = [_text(module, text)[1] for text in (message, site.file, site.kernel)]
    fn.emit(
        f"call void @__assertfail(ptr {texts[0]}, ptr {texts[1]}, i32 {site.line}, "
        f"ptr {texts[2]}, i64 1)"
    )


def _text(module: ModuleBuilder, text: str) -> tuple[int, str]:
    """The number of a text that ends with a zero byte, and its generic address."""
    data = text.encode() + b"\0"
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in (34, 92) else f"\\{byte:02X}" for byte in data
    )
    definition = f'private addrspace(1) constant [{len(data)} x i8] c"{escaped}", align 1'
    number = next(
        (
            place
            for place, line in enumerate(module.globals.values())
            if line.endswith(f" = {definition}")
        ),
        len(module.globals),
    )
    name = f"tw_text_{number}"
    module.add_global(name, definition)
    return number, f"addrspacecast (ptr addrspace(1) @{name} to ptr)"
