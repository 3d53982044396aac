"""The state of lowering: one `Lowering` for each kernel, one `Frame` for each function call.

The rules of expressions and statements register in the tables here, by their `ast` class.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import field

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, IntAttr, LocationAttr, StringAttr
from xdsl.ir import Block

from tilewright.frontend import suggestions
from tilewright.frontend.constants import ModuleRef, Unusable
from tilewright.frontend.liveness import analyze
from tilewright.frontend.lowering_state import (
    FunctionCode,
    HostFunction,
    KernelBuilder,
    LoopContext,
    LoopFindings,
    Scope,
)
from tilewright.frontend.parsing import parse_function
from tilewright.frontend.program import LoweringRequest
from tilewright.frontend.subset import reject
from tilewright.frontend.values import ModuleValue, describe, is_constant, value_of
from tilewright.language.core import tensor
from tilewright.ops.library import SURFACE
from tilewright.support import errors
from tilewright.support.dataclass import dataclass
from tilewright.support.deep_calls import with_room
from tilewright.support.errors import (
    CompileError,
    GlobalNotConstexpr,
    NameNotUsable,
    NestingTooDeep,
    PlainFunctionCall,
    TilewrightError,
    UndefinedName,
    UnknownMember,
)
from tilewright.support.rules import RuleTable
from tilewright.support.source import Span

MAX_NESTING = 128
"""Branches and loops in one another. The IR's own walks call themselves at each level."""

EXPRESSIONS: RuleTable[Callable[..., object]] = RuleTable("expressions")
STATEMENTS: RuleTable[Callable[..., Exit]] = RuleTable("statements")


@dataclass(frozen=True)
class Exit:
    """How control leaves a statement: on to the next one, or never (`leaves`)."""

    leaves: bool


FALLS = Exit(False)
LEAVES = Exit(True)


@dataclass
class Lowering:
    """What all calls of one kernel share.

    `num_open` counts the branches and loops that are being lowered. `messages` holds the lines
    of `static_print` until the kernel is done: a loop body may be lowered more than once.
    `place` is the way to what is being lowered, through calls, loops and the iterations of those
    that are unrolled. A loop that is lowered again, with the one around it, comes to the same
    place with no less to find out at run time: it starts from the `findings` there. Without
    them a nest would be lowered 2^depth times.
    """

    request: LoweringRequest
    builder: KernelBuilder
    codes: dict[str, FunctionCode] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    host_functions: dict[str, HostFunction] = field(default_factory=dict)
    # Called before each statement of a kernel that is stepped through.
    before_statement: Callable[[Frame, ast.stmt], None] | None = None
    num_open: int = 0
    place: tuple[int, ...] = ()
    findings: dict[tuple[int, ...], LoopFindings] = field(default_factory=dict)

    @contextmanager
    def inside(self, *steps: int) -> Generator[None]:
        """Lower further along the way to a place."""
        saved, self.place = self.place, (*self.place, *steps)
        try:
            yield
        finally:
            self.place = saved

    def loop_findings(self) -> LoopFindings:
        """What is known of the loop at this place."""
        return self.findings.setdefault(self.place, LoopFindings())

    def code(self, key: str) -> FunctionCode:
        """The parsed function of the request."""
        if key not in self.codes:
            source = self.request.functions[key]
            node = parse_function(source)
            self.codes[key] = FunctionCode(source, node, analyze(node))
        return self.codes[key]


class Frame:
    """One activation of a function: its variables and where it was called from."""

    def __init__(
        self,
        lowering: Lowering,
        code: FunctionCode,
        caller: Frame | None = None,
        call: ast.AST | None = None,
    ) -> None:
        self.lowering = lowering
        self.code = code
        self.scope = Scope()
        self.loop: LoopContext | None = None
        # Declared by a bare `x: tl.constexpr`: what is assigned to them stays as it is.
        self.constant_names: set[str] = set()
        # What to say where a constant is needed of a name that is annotated as one and is none.
        self.unkept_promises: dict[str, str] = {}
        self.call_node: ast.AST = code.node
        self.statement_call: ast.AST | None = None
        self._caller_location: LocationAttr | None = None
        self._locations: dict[tuple[int, int], LocationAttr] = {}
        if caller is not None and call is not None:
            self._caller_location = caller.location(call)

    @property
    def builder(self) -> KernelBuilder:
        """Where ops go."""
        return self.lowering.builder

    @property
    def variables(self) -> dict[str, object]:
        """The values of the variables here."""
        return self.scope.variables

    def evaluate(self, node: ast.expr) -> object:
        """The value of an expression, with errors placed at the innermost expression."""
        rule = EXPRESSIONS.find(type(node))
        try:
            if rule is None:
                raise reject(node)
            return with_room(lambda: rule(self, node))
        except TilewrightError as error:
            self.place(error, node)
            raise

    def execute(self, node: ast.stmt) -> Exit:
        """Lower one statement."""
        if self.lowering.before_statement is not None:
            self.lowering.before_statement(self, node)
        rule = STATEMENTS.find(type(node))
        try:
            if rule is None:
                raise reject(node)
            return rule(self, node)
        except TilewrightError as error:
            self.place(error, node)
            raise

    def place(self, error: TilewrightError, node: ast.AST) -> None:
        """Give `error` the position of `node` unless it has one."""
        if error.span is None:
            error.span = self.span(node)
            error.source = self.code.line(error.span.line)

    def span(self, node: ast.AST) -> Span:
        """The position of `node` in the user's file, its first line when it has several."""
        line: int = getattr(node, "lineno", self.code.source.first_line)
        start: int = getattr(node, "col_offset", 0)
        end_line: int = getattr(node, "end_lineno", line)
        end: int = getattr(node, "end_col_offset", start + 1)
        text = self.code.line(line)
        column = self.code.column(line, start)
        if isinstance(node, ast.FunctionDef | ast.If | ast.For | ast.While) or end_line != line:
            end_column = len(text.rstrip()) + 1
        else:
            end_column = self.code.column(line, end)
        source = self.code.source
        definition = (self.code.node.lineno, source.indent)
        return Span(source.file, line, column, end_column, source.name, definition)

    def location(self, node: ast.AST) -> LocationAttr:
        """The IR location of `node`, with the chain of calls that led here."""
        line: int = getattr(node, "lineno", self.code.source.first_line)
        offset: int = getattr(node, "col_offset", 0)
        known = self._locations.get((line, offset))
        if known is None:
            known = self._make_location(line, self.code.column(line, offset))
            self._locations[line, offset] = known
        return known

    def _make_location(self, line: int, column: int) -> LocationAttr:
        file = StringAttr(self.code.source.file)
        here = FileLineColLoc(file, IntAttr(line), IntAttr(column))
        return here if self._caller_location is None else CallSiteLoc(here, self._caller_location)

    def at(self, node: ast.AST) -> KernelBuilder:
        """The builder, set to the position of `node`."""
        builder = self.lowering.builder
        builder.location = self.location(node)
        return builder

    def read(self, name: str) -> object:
        """The value of a variable or of a captured name.

        Raises: UndefinedName, GlobalNotConstexpr, NameNotUsable.
        """
        if name in self.variables:
            return self.variables[name]
        if name in self.scope.lost:
            raise UndefinedName(
                f"`{name}` has no value here: {self.scope.lost[name]}",
                known_as=f"{name} is not defined",
            )
        return self.captured(name)

    def captured(self, path: str) -> object:
        """The value that a dotted global name had when the kernel was snapshotted."""
        if path not in self.code.source.captures:
            raise UndefinedName(
                f"`{path}` is read before it is assigned", known_as=f"{path} is not defined"
            )
        constant = self.code.source.captures[path]
        if isinstance(constant, Unusable):
            raise unusable(path, constant)
        if isinstance(constant, ModuleRef):
            return ModuleValue(path, constant.name, constant.enum)
        return value_of(constant)

    def assign(self, name: str, value: object, node: ast.AST) -> None:
        """Bind a variable."""
        self.variables[name] = value
        self.scope.lost.pop(name, None)
        self.scope.assigned_at[name] = getattr(node, "lineno", 0)

    def promise(self, name: str, value: object, node: ast.AST) -> None:
        """Note that `name` is annotated as a constexpr; a runtime value under it stays one."""
        if not is_constant(value):
            line = getattr(node, "lineno", 0)
            self.unkept_promises[name] = (
                f"`{name}` is annotated tl.constexpr at line {line}, "
                f"but what it is given there is {describe(value)}"
            )

    def lose(self, name: str, reason: str) -> None:
        """Unbind a variable, remembering why."""
        self.variables.pop(name, None)
        self.scope.lost[name] = reason

    @contextmanager
    def on_path(self, active: tensor | None) -> Generator[None]:
        """Lower for the lanes that are on one path; None is all lanes."""
        with self.builder.mapping(self.builder.lanes, active):
            yield

    @contextmanager
    def branch(self, block: Block, scope: Scope | None = None) -> Generator[Scope]:
        """Lower into `block` with variables of its own: a copy of the current ones, or `scope`."""
        saved, self.scope = self.scope, scope or self.scope.copy()
        self.lowering.num_open += 1
        try:
            if self.lowering.num_open > MAX_NESTING:
                raise NestingTooDeep(
                    f"branches and loops are nested more than {MAX_NESTING} deep, with those of "
                    "the functions that are called in them"
                )
            with self.builder.inside(block):
                yield self.scope
        finally:
            self.lowering.num_open -= 1
            self.scope = saved


_NAMES = "docs/language-names.md lists the names of the language"


def _undefined(path: str) -> CompileError:
    module, _, name = path.rpartition(".")
    if not module:
        return UndefinedName(
            f"`{path}` is not defined",
            hint="check the spelling, or import it",
            known_as=f"{path} is not defined",
        )
    close = suggestions.closest(name, SURFACE)
    serves = suggestions.of_name(name)
    hint = f"did you mean `{module}.{close}`?" if close else f"use {serves}" if serves else _NAMES
    return UnknownMember(f"`{module}` has no member `{name}`", hint=hint)


_UNUSABLE: dict[str, type[CompileError]] = {
    "GlobalNotConstexpr": GlobalNotConstexpr,
    "PlainFunctionCall": PlainFunctionCall,
    "NameNotUsable": NameNotUsable,
    "UndefinedName": UndefinedName,
}


def unusable(path: str, reason: Unusable) -> errors.CompileError:
    """The error for reading a name that kernels may not use."""
    if reason.kind == "GlobalNotConstexpr":
        return GlobalNotConstexpr(
            f"`{path}` is a global variable with the value {reason.text}, "
            "which kernels cannot read",
            hint=f"declare it as `{path} = tl.constexpr({reason.text})`, or pass it as an argument",
        )
    if reason.kind == "OuterNotConstexpr":
        return GlobalNotConstexpr(
            f"`{path}` is a variable of the function around the kernel with the value "
            f"{reason.text}, which kernels cannot read",
            hint=f"declare it as `{path} = tl.constexpr({reason.text})`, or pass it as an argument",
            known_as=f"{path} is not defined",
        )
    if reason.kind == "UndefinedName":
        return _undefined(path)
    cls = _UNUSABLE[reason.kind]
    if reason.kind == "PlainFunctionCall":
        return cls(reason.text)
    return cls(f"`{path}` is {reason.text}, which kernels cannot use")
