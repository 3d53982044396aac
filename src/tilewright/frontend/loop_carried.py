"""What a loop carries from one iteration to the next."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from tilewright.frontend.control_flow import (
    BREAK,
    CONTINUE,
    DEAD,
    FLAGS,
    NOT_SET,
    RETURN,
    VALUE,
    may_be_set,
)
from tilewright.frontend.frame import Frame
from tilewright.frontend.lanes import spread
from tilewright.frontend.liveness import Names
from tilewright.frontend.phi import Slot, fill, materialize, zero
from tilewright.frontend.values import is_number, same_constant, type_text
from tilewright.language.core import dtype, tensor, tuple_
from tilewright.ops.builder import ir_type
from tilewright.support.errors import LoopTypeMismatch

Leaf = tuple[str, tuple[int, ...]]
# The flags that outlive an iteration, and the value that goes with `return`.
_OWN = (BREAK, RETURN, VALUE)


class LoopCarried:
    """The carried leaves of one loop.

    Runtime values of the candidates are carried from the start. What is known at compile time
    is carried only once the body turned out to change it: `finish` then says that the body must
    be lowered again, with that leaf among the findings.
    """

    def __init__(self, frame: Frame, node: ast.For | ast.While, names: Names) -> None:
        header = frame.code.liveness.header[id(node)]
        self._frame = frame
        self._node = node
        self._assigned = names
        self._names = [n for n in frame.variables if n in names and n in header]
        self._findings = frame.lowering.loop_findings()
        self._inits: dict[Leaf, tensor] = {}
        self._trees: dict[str, object] = {}
        self._entered: list[tensor] = []
        self._lines = dict(frame.scope.assigned_at)
        self._end_lines: dict[str, int] = {}
        self._ends_early = False
        self.live = header
        self.leaves: list[Leaf] = []

    @property
    def ends_early(self) -> bool:
        """Whether the last body lowered may set `%break` or `%return`."""
        return self._ends_early

    @property
    def names(self) -> Names:
        """The variables that may be carried."""
        return frozenset(self._names)

    def carries(self, name: str) -> bool:
        """Whether a part of the variable is carried."""
        return any(carried == name for carried, _ in self.leaves)

    def begin(self) -> list[tensor]:
        """Settle what is carried this time, and give the values before the loop."""
        self.leaves, self._trees = [], {}
        variables = self._frame.variables
        for name in self._names:
            self._trees[name] = self._tree(name, (), variables[name])
        for flag in (BREAK, RETURN):
            self._trees[flag] = self._tree(flag, (), NOT_SET)
        if self._findings.returned is not None:
            self._trees[VALUE] = self._tree(VALUE, (), self._findings.returned)
        return [self._inits[leaf] for leaf in self.leaves]

    def _tree(self, name: str, path: tuple[int, ...], value: object) -> object:
        if isinstance(value, tuple_):
            items = [self._tree(name, (*path, i), v) for i, v in enumerate(value.values)]
            return tuple_(items, value.fields, value.factory)
        leaf = (name, path)
        is_grown = leaf in self._findings.grown and is_number(value)
        if not isinstance(value, tensor) and not is_grown:
            return value
        self._inits[leaf] = self._initial(leaf, value)
        self.leaves.append(leaf)
        return Slot(len(self.leaves) - 1)

    def _initial(self, leaf: Leaf, value: object) -> tensor:
        if leaf in self._inits:
            return self._inits[leaf]
        b = self._frame.at(self._node)
        if leaf[0] == VALUE and isinstance(value, tensor):
            return spread(b, zero(b, value.type))  # the body's, which does not exist before it
        return spread(b, materialize(b, value))

    def types(self) -> list[dtype]:
        """The types of the carried leaves."""
        return [self._inits[leaf].type for leaf in self.leaves]

    def ir_types(self) -> list[Attribute]:
        """The IR types of the carried leaves."""
        return [ir_type(t) for t in self.types()]

    def enter(self, arguments: Sequence[SSAValue]) -> None:
        """Bind the variables to block arguments at the head of a region."""
        self._bind(arguments)
        self._frame.variables[CONTINUE] = NOT_SET

    def enter_body(self, arguments: Sequence[SSAValue]) -> None:
        """As `enter`, where the loop's test made sure that no flag is set.

        Of lanes some may have left: their flags stay.
        """
        self.enter(arguments)
        if self._frame.builder.lanes:
            return
        self._frame.variables[BREAK] = NOT_SET
        self._frame.variables[RETURN] = NOT_SET

    def _bind(self, values: Sequence[SSAValue]) -> None:
        tensors = [tensor(v, t) for v, t in zip(values, self.types(), strict=True)]
        self._entered = tensors
        for name, tree in self._trees.items():
            self._frame.variables[name] = fill(tree, tensors.__getitem__)

    def current(self) -> list[tensor] | None:
        """The carried values here, or None when more must be carried than was thought.

        Raises: LoopTypeMismatch.
        """
        frame, size = self._frame, len(self._findings.grown)
        values: list[tensor] = []
        self._end_lines = frame.scope.assigned_at
        for name, tree in self._trees.items():
            # A loop inside the body takes its own flags away when it ends.
            value = frame.variables.get(name, NOT_SET if name in FLAGS else None)
            if value is None and frame.scope.lost.get(name) == DEAD:
                value = fill(tree, self._entered.__getitem__)
            self._compare(name, (), tree, frame.read(name) if value is None else value, values)
        has_value = frame.variables.get(VALUE) is not None
        if has_value and VALUE not in self._trees:
            self._findings.returned = frame.variables[VALUE]
            return None
        return values if len(self._findings.grown) == size else None

    def finish(self) -> list[tensor] | None:
        """The carried values at the end of the body, as `current`."""
        flags = [self._frame.variables.get(flag) for flag in (BREAK, RETURN)]
        self._ends_early = any(may_be_set(flag) for flag in flags)
        return self.current()

    def _compare(
        self, name: str, path: tuple[int, ...], tree: object, value: object, values: list[tensor]
    ) -> None:
        """Match a value at the end of the body with what the head expects."""
        if isinstance(tree, Slot):
            values.append(self._matching(name, tree, value))
        elif isinstance(tree, tuple_) and isinstance(value, tuple_) and len(tree) == len(value):
            for i, (t, v) in enumerate(zip(tree.values, value.values, strict=True)):
                self._compare(name, (*path, i), t, v, values)
        elif same_constant(tree, value):
            return
        elif is_number(tree) and (is_number(value) or isinstance(value, tensor)):
            self._findings.grown.add((name, path))
        else:
            raise self._type_error(name, tree, value)

    def _matching(self, name: str, slot: Slot, value: object) -> tensor:
        initial = self._inits[self.leaves[slot.index]]
        if not (isinstance(value, tensor) or is_number(value)):
            raise self._type_error(name, initial, value)
        result = spread(self._frame.builder, materialize(self._frame.builder, value))
        if result.type != initial.type:
            raise self._type_error(name, initial, value if isinstance(value, tensor) else result)
        return result

    def _type_error(self, name: str, before: object, after: object) -> LoopTypeMismatch:
        shown = "the returned value" if name == VALUE else f"`{name}`"
        first, last = self._lines.get(name, 0), self._end_lines.get(name, 0)
        before_line = f" (line {first})" if first else ""
        after_line = f" (line {last})" if last else ""
        return LoopTypeMismatch(
            f"{shown} is {self._text(name, before)}{before_line} before the loop "
            f"and {type_text(after)}{after_line} after an iteration",
            known_as=f"Loop-carried variable {name} has initial type {self._text(name, before)} "
            f"but is re-assigned to {type_text(after)} in loop! "
            "Please make sure that the type stays consistent.",
        )

    def _text(self, name: str, tree: object) -> str:
        """The type of a head value, whose run-time parts are slots."""
        types = [tensor(None, t) for t in self.types()]
        return type_text(fill(tree, types.__getitem__))

    def bind_results(self, results: Sequence[SSAValue]) -> None:
        """Bind the variables after the loop; what the loop alone assigns has no value there."""
        frame = self._frame
        self._bind(results)
        frame.scope.assigned_at.update(
            {name: line for name, line in self._end_lines.items() if name in self._trees}
        )
        for flag in (BREAK, CONTINUE):
            frame.variables.pop(flag, None)
        line = self._node.lineno
        reason = f"only the loop at line {line} assigns it, which may not run"
        for name in sorted(self._assigned - set(self._names)):
            frame.lose(name, reason if name in self.live else DEAD)
