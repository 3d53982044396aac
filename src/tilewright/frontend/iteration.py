"""What a loop runs over: the bounds and hints of `range`, the values of `static_range`."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue

from tilewright.frontend.constants import BuiltinRef, OpRef
from tilewright.frontend.frame import Frame
from tilewright.frontend.lanes import is_divergent, spread
from tilewright.frontend.program import Parameter
from tilewright.frontend.sequences import iterate
from tilewright.frontend.signature import bind
from tilewright.frontend.values import describe, is_constant, plain
from tilewright.language.core import (
    constexpr,
    dtype,
    int32,
    int64,
    pointer_type,
    tensor,
    tuple_,
    uint32,
    uint64,
)
from tilewright.language.iterators import RANGE_HINTS
from tilewright.ops.builder import Builder, integer_property
from tilewright.ops.casting import convert, to_tensor
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.debug.surface import device_assert, is_checking
from tilewright.ops.elementwise.operators import binary
from tilewright.ops.elementwise.surface import maximum, select
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import (
    InvalidOption,
    IteratorNotSupported,
    LoopBoundsError,
    NotConstexpr,
    TilewrightError,
    TooManyIterations,
)

MAX_UNROLLED = 10_000
_BOUNDS = [
    Parameter("arg1"),
    Parameter("arg2", has_default=True),
    Parameter("step", has_default=True),
]
_WITH_HINTS = [*_BOUNDS, *(Parameter(name, has_default=True) for name in RANGE_HINTS)]
_CONDITION = [Parameter("arg1"), Parameter("disable_licm", has_default=True)]


@dataclass(frozen=True)
class LoopRange:
    """A range at run time, always counted upwards with a positive step.

    A descending range counts the same steps from the other end: the loop's variable is then
    `mirror` minus `scale` times the counter.
    """

    lower: tensor
    upper: tensor
    step: tensor
    mirror: tensor | None
    hints: Mapping[str, Attribute]
    scale: int = 1

    @property
    def type(self) -> dtype:
        """The dtype of bounds, step and variable."""
        return self.lower.dtype

    def variable(self, frame: Frame, counter: tensor) -> tensor:
        """The loop's variable in the body."""
        if self.mirror is None:
            return counter
        if self.scale != 1:
            counter = binary(frame.builder, "Mult", counter, constexpr(self.scale))
        return binary(frame.builder, "Sub", self.mirror, counter)

    def following(self, b: Builder, counter: tensor) -> tensor:
        """The counter of the next iteration, or the end: no sum passes the last number."""
        moved = binary(b, "Add", counter, self.step)
        if self._counts_within():
            return moved
        unsigned = uint64 if self.type == int64 else uint32
        rest = convert(b, binary(b, "Sub", self.upper, counter), unsigned)
        goes_on = binary(b, "Gt", rest, convert(b, self.step, unsigned))
        if counter.static_shape:  # lanes without an iteration stay where they are
            goes_on = binary(b, "BitAnd", goes_on, binary(b, "Lt", counter, self.upper))
        return select(b, goes_on, moved, self.upper)

    def _counts_within(self) -> bool:
        """Whether no step from below the end passes the last number."""
        step, end = _number(self.step), _number(self.upper)
        if step == 1:
            return True
        return step is not None and end is not None and _fits(end + step - 1, self.type)


@dataclass(frozen=True)
class ValueRange:
    """The values of a loop that is unrolled."""

    values: list[object]


def evaluate_iterator(frame: Frame, node: ast.expr) -> LoopRange | ValueRange:
    """What a `for` runs over.

    Raises: IteratorNotSupported, LoopBoundsError, TooManyIterations, NotConstexpr.
    """
    try:
        return _evaluate(frame, node)
    except TilewrightError as error:
        frame.place(error, node)
        raise


def _evaluate(frame: Frame, node: ast.expr) -> LoopRange | ValueRange:
    function = frame.evaluate(node.func) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or function not in _RANGES:
        raise _not_a_range(frame, node, function)
    positional = [
        item
        for argument in node.args
        for item in (
            iterate(frame.evaluate(argument.value))
            if isinstance(argument, ast.Starred)
            else [frame.evaluate(argument)]
        )
    ]
    keywords = {k.arg or "**": frame.evaluate(k.value) for k in node.keywords}
    frame.at(node)
    if function == OpRef("static_range"):
        return _static_range(bind("tl.static_range", _BOUNDS, positional, keywords, _none))
    name = "range" if isinstance(function, BuiltinRef) else "tl.range"
    parameters = _BOUNDS if isinstance(function, BuiltinRef) else _WITH_HINTS
    return _runtime_range(frame, name, bind(name, parameters, positional, keywords, _none))


_RANGES = (BuiltinRef("range"), OpRef("range"), OpRef("static_range"))


def _none(p: Parameter) -> object:
    return constexpr(None)


def _not_a_range(frame: Frame, node: ast.expr, function: object) -> IteratorNotSupported:
    if isinstance(function, BuiltinRef):
        return IteratorNotSupported(
            f"a `for` cannot run over {describe(function)}",
            hint=_IN_PLACE_OF.get(function.name, ""),
        )
    value = frame.evaluate(node)
    return IteratorNotSupported(
        f"a `for` cannot run over {describe(value)}", hint=_how_to_iterate(value)
    )


_UNROLLED = "loop over tl.static_range(len(values)) and index"
_IN_PLACE_OF: dict[str, str] = {name: _UNROLLED for name in ("enumerate", "zip", "reversed")}


def _how_to_iterate(value: object) -> str:
    if isinstance(value, tensor) and isinstance(value.type, pointer_type):
        return "an array argument becomes a pointer: loop over range(n) and load x + i"
    if isinstance(value, tensor):
        return "operators work on all elements at once; tl.sum, tl.max and tl.reduce combine them"
    if isinstance(value, tuple_):
        return _UNROLLED
    return ""


def _bounds(bound: Mapping[str, object]) -> tuple[object, object, object]:
    first, second, step = bound["arg1"], bound["arg2"], bound["step"]
    if plain(second) is None:
        first, second = constexpr(0), first
    return first, second, constexpr(1) if plain(step) is None else step


def _static_range(bound: Mapping[str, object]) -> ValueRange:
    values: list[int] = []
    for name, value in zip(("start", "end", "step"), _bounds(bound), strict=True):
        known = plain(value)
        if not is_constant(value) or isinstance(known, bool) or not isinstance(known, int):
            raise NotConstexpr(
                f"static_range(): the {name} is {describe(value)}, "
                "which is no integer known at compile time",
                hint="use `range` for bounds that only the run knows",
            )
        values.append(known)
    if values[2] == 0:
        raise LoopBoundsError("static_range(): the step is 0")
    counted = range(*values)  # its `len` may be beyond a machine word
    if counted and (count := (counted[-1] - counted[0]) // counted.step + 1) > MAX_UNROLLED:
        raise TooManyIterations(
            f"static_range() unrolls {count} iterations; the limit is {MAX_UNROLLED}"
        )
    return ValueRange([constexpr(value) for value in counted])


def _runtime_range(frame: Frame, name: str, bound: Mapping[str, object]) -> LoopRange:
    first, last, step = _bounds(bound)
    distance = _checked_step(name, step)
    b = frame.builder
    given = (first, last, step if distance is None else constexpr(abs(distance)))
    bounds = [_integer(frame, name, value) for value in given]
    common = int64 if any(_needs_64_bits(t.dtype) for t in bounds) else int32
    lower, upper, stride = (convert(b, t, common) for t in bounds)
    if distance is None and is_checking(b):
        upper = _checked_end(b, name, lower, upper, stride)
    if any(t.static_shape for t in bounds):  # each lane has a range of its own
        lower, upper, stride = (spread(b, t) for t in (lower, upper, stride))
    if distance is None or distance > 0:
        return LoopRange(lower, upper, stride, None, _hints(bound))
    return _descending(b, (lower, upper, stride), -distance, _hints(bound))


def _descending(
    b: Builder, bounds: tuple[tensor, tensor, tensor], step: int, hints: Mapping[str, Attribute]
) -> LoopRange:
    """A range that goes down by `step`; what it counts up fits the type whatever the bounds are.

    The distance of two bounds does not: it is counted where they say that it is short enough.
    """
    lower, upper, stride = bounds
    type_, zero = lower.dtype, _alike(b, lower, 0)
    first, last = _number(lower), _number(upper)
    if first is not None and last is not None and first <= last:
        return LoopRange(zero, zero, stride, lower, hints)
    are_near = first is not None and last is not None and _fits(first - last, type_)
    if are_near or (last is not None and last >= 0):  # 0, s, 2s, … up to the distance
        start = lower if first is not None else maximum(b, lower, upper)
        return LoopRange(zero, binary(b, "Sub", start, upper), stride, lower, hints)
    if step <= 2:  # the complements of the bounds, which go up
        ones = _alike(b, lower, -1)
        low, high = (binary(b, "Sub", ones, bound) for bound in (lower, upper))
        return LoopRange(low, high, stride, ones, hints)
    # 0, 1, 2, … up to the number of iterations: a third of all numbers of the type at most.
    unsigned = uint64 if type_ == int64 else uint32
    rest = binary(b, "Sub", binary(b, "Sub", lower, upper), _alike(b, lower, 1))
    whole = binary(b, "FloorDiv", convert(b, rest, unsigned), convert(b, stride, unsigned))
    count = binary(b, "Add", convert(b, whole, type_), _alike(b, lower, 1))
    count = select(b, binary(b, "Gt", lower, upper), count, zero)
    return LoopRange(zero, count, _alike(b, lower, 1), lower, hints, step)


def _alike(b: Builder, bound: tensor, number: int) -> tensor:
    """A number of a bound's type and shape."""
    value = b.constant(number, bound.dtype)
    return spread(b, value) if bound.static_shape else value


def _number(bound: tensor) -> int | None:
    """A bound that is a constant."""
    assert isinstance(bound.handle, SSAValue)
    number = constant_of(bound.handle)
    return None if number is None else int(number)


def _fits(number: int, type_: dtype) -> bool:
    return number <= type_.get_int_max_value()


def _checked_end(b: Builder, name: str, lower: tensor, upper: tensor, step: tensor) -> tensor:
    """The end of a range whose step is asserted to be positive: its start where it is not.

    By 0 the loop would not end, and an assertion alone does not stop it.
    """
    if step.static_shape:  # lanes that do not run may hold any step
        return upper
    positive = binary(b, "Gt", step, constexpr(0))
    device_assert(b, positive, f"{name}(): a step that only the run knows must be positive")
    return select(b, positive, upper, lower)


def _checked_step(name: str, step: object) -> int | None:
    """The step when it is known at compile time."""
    known = plain(step)
    if not is_constant(step) or not isinstance(known, int):
        return None
    if known == 0:
        raise LoopBoundsError(f"{name}(): the step is 0")
    return known


def _needs_64_bits(type_: dtype) -> bool:
    return type_.primitive_bitwidth > 32 or type_ == uint32


def _integer(frame: Frame, name: str, value: object) -> tensor:
    """A bound as a scalar integer."""
    known = plain(value)
    if is_constant(value) and (isinstance(known, bool) or not isinstance(known, int)):
        raise LoopBoundsError(f"{name}(): a bound is {describe(value)}; integers are needed")
    scalar = to_tensor(frame.builder, value)
    is_scalar = not scalar.static_shape or is_divergent(frame.builder, scalar)
    if not is_scalar or not scalar.dtype.is_int():
        raise LoopBoundsError(
            f"{name}(): a bound is {describe(value)}; scalar integers are needed",
        )
    return scalar


def _hints(bound: Mapping[str, object]) -> dict[str, Attribute]:
    """The hints of `tl.range` as attributes of the loop; those left out or off are absent."""
    hints: dict[str, Attribute] = {}
    for name in RANGE_HINTS:
        value = bound.get(name, constexpr(None))
        known = plain(value)
        is_text = name == "schedule"
        if not is_constant(value) or not isinstance(known, (str if is_text else int) | None):
            what = "it is a text" if is_text else "hints are integers, True or False"
            raise NotConstexpr(
                f"tl.range(): the hint `{name}` is {describe(value)}",
                hint=f"{what} known at compile time",
            )
        if isinstance(known, int) and not 0 <= known < 1 << 31:
            summary = f"tl.range(): the hint `{name}` is {known}"
            raise InvalidOption(summary, hint="hints are not negative, and fit 32 bits")
        if known:
            hints[f"tt.{name}"] = _hint_attribute(known)
    return hints


def _hint_attribute(known: object) -> Attribute:
    if isinstance(known, str):
        return StringAttr(known)
    return UnitAttr() if known is True else integer_property(int(str(known)))


def loop_condition(frame: Frame, node: ast.expr) -> tuple[ast.expr, dict[str, Attribute]]:
    """The test of a `while` without its `tl.condition(…)`, and the hints given there."""
    if not isinstance(node, ast.Call):
        return node, {}
    if not isinstance(node.func, ast.Name | ast.Attribute):
        return node, {}
    if frame.evaluate(node.func) != OpRef("condition"):
        return node, {}
    keywords = {k.arg or "**": k.value for k in node.keywords}
    bound = bind("tl.condition", _CONDITION, node.args, keywords, lambda p: None)
    hint = bound["disable_licm"]
    is_set = isinstance(hint, ast.expr) and bool(plain(frame.evaluate(hint)))
    test = bound["arg1"]
    assert isinstance(test, ast.expr)
    return test, {"tt.disable_licm": UnitAttr()} if is_set else {}
