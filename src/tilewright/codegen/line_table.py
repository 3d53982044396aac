"""The debug metadata of a kernel: which instruction stands for which line of which file."""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc
from xdsl.ir import Operation

from tilewright.codegen.llvm_builder import ModuleBuilder
from tilewright.ops.function import FuncOp
from tilewright.support.dataclass import dataclass

_START = ("kernel", 1, 1)


@dataclass
class LineTable:
    """The lines of one kernel; `scope` is the reference of its subprogram.

    Functions are inlined before emission, so a line of another file than the kernel's gets a
    lexical block of that file.
    """

    module: ModuleBuilder
    scope: str
    start: str
    scopes: dict[str, str]
    nodes: dict[tuple[str, int, int], str] = field(default_factory=dict[tuple[str, int, int], str])

    @classmethod
    def of_kernel(cls, module: ModuleBuilder, kernel: FuncOp, emission_kind: str) -> LineTable:
        """The table of `kernel`; `emission_kind` is LLVM's, such as `LineTablesOnly`."""
        place = place_of(kernel) or _START
        file, line, _ = place
        file_node = _file_node(module, file)
        unit = module.add_metadata(
            f"distinct !DICompileUnit(language: DW_LANG_C, file: {file_node}, producer: "
            f'"tilewright", isOptimized: true, runtimeVersion: 0, emissionKind: {emission_kind})'
        )
        empty = module.add_metadata("!{}")
        signature = module.add_metadata(f"!DISubroutineType(types: {empty})")
        flag = module.add_metadata('!{i32 2, !"Debug Info Version", i32 3}')
        module.named_metadata["llvm.dbg.cu"] = unit
        module.named_metadata["llvm.module.flags"] = flag
        scope = module.add_metadata(
            f'distinct !DISubprogram(name: "{kernel.sym_name.data}", scope: {file_node}, '
            f"file: {file_node}, line: {line}, type: {signature}, scopeLine: {line}, "
            f"spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: {unit})"
        )
        start = module.add_metadata(f"!DILocation(line: {line}, column: 1, scope: {scope})")
        return cls(module, scope, f", !dbg {start}", {file: scope})

    def attachment(self, op: Operation) -> str | None:
        """What follows the instructions of an op, None where its line is not known."""
        place = place_of(op)
        if place is None:
            return None
        node = self.nodes.get(place)
        if node is None:
            file, line, column = place
            node = self.module.add_metadata(
                f"!DILocation(line: {line}, column: {column}, scope: {self._scope(file)})"
            )
            self.nodes[place] = node
        return f", !dbg {node}"

    def _scope(self, file: str) -> str:
        if file not in self.scopes:
            file_node = _file_node(self.module, file)
            self.scopes[file] = self.module.add_metadata(
                f"!DILexicalBlockFile(scope: {self.scope}, file: {file_node}, discriminator: 0)"
            )
        return self.scopes[file]


def place_of(op: Operation) -> tuple[str, int, int] | None:
    """File, line and column of the innermost function that an op was written in."""
    location = op.location
    while isinstance(location, CallSiteLoc):
        location = location.callee
    if not isinstance(location, FileLineColLoc):
        return None
    return location.filename.data, location.line.data, location.column.data


def _file_node(module: ModuleBuilder, file: str) -> str:
    folder, _, name = file.replace("\\", "/").rpartition("/")
    return module.add_metadata(f'!DIFile(filename: "{_text(name)}", directory: "{_text(folder)}")')


def _text(name: str) -> str:
    """A string of LLVM's assembly: what is no plain character goes by its bytes in hex."""
    plain = (c.isascii() and c.isprintable() and c not in '"\\' for c in name)
    return "".join(
        c if is_plain else "".join(f"\\{byte:02X}" for byte in c.encode())
        for c, is_plain in zip(name, plain, strict=True)
    )
