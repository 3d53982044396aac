"""The rules of expressions, but for calls."""

from __future__ import annotations

import ast
from collections.abc import Callable

from xdsl.ir import Block

from tilewright.frontend.aggregates import call_method, operator_method
from tilewright.frontend.attributes import attribute_of
from tilewright.frontend.constexpr import evaluate, fold_binary, fold_unary
from tilewright.frontend.control_flow import condition, emit_branch, side_values, truth
from tilewright.frontend.frame import EXPRESSIONS, Frame
from tilewright.frontend.lanes import off_path, on_path, safe_divisor
from tilewright.frontend.parsing import chain_of
from tilewright.frontend.phi import Mismatch, fill, join, materialize
from tilewright.frontend.sequences import index_value, iterate, unpack
from tilewright.frontend.subset import reject, reject_as, starred_target
from tilewright.frontend.values import AggregateMethod, describe, is_constant, plain, type_text
from tilewright.language.core import constexpr, dtype, tensor, tuple_
from tilewright.ops.elementwise.logical import logical, unary
from tilewright.ops.elementwise.operators import binary
from tilewright.support.errors import (
    BranchTypeMismatch,
    DtypeNotAllowed,
    NotConstexpr,
    UndefinedName,
)


@EXPRESSIONS.register(ast.Constant)
def _constant(frame: Frame, node: ast.Constant) -> object:
    if isinstance(node.value, bool | int | float | str | None):
        return constexpr(node.value)
    raise reject_as(f"the literal {node.value!r}", "use numbers, strings, True, False and None")


@EXPRESSIONS.register(ast.Name)
def _name(frame: Frame, node: ast.Name) -> object:
    return frame.read(node.id)


@EXPRESSIONS.register(ast.Attribute)
def _attribute(frame: Frame, node: ast.Attribute) -> object:
    chain = chain_of(node)
    if chain is not None and chain[0] not in frame.variables:
        path = ".".join(chain)
        if path in frame.code.source.captures:
            return frame.captured(path)
    value = frame.evaluate(node.value)
    frame.at(node)
    return attribute_of(frame, value, node.attr)


@EXPRESSIONS.register(ast.NamedExpr)
def _named(frame: Frame, node: ast.NamedExpr) -> object:
    value = assignable(frame, frame.evaluate(node.value), node, node.target.id)
    frame.assign(node.target.id, value, node)
    return value


def assignable(frame: Frame, value: object, node: ast.AST, name: str = "") -> object:
    """What a variable holds after `name = value`.

    A plain number becomes a runtime scalar of its natural type, as in every implementation of
    the language: `x = 2.0` then promotes like an fp32 argument; `x: tl.constexpr = 2.0` does not,
    and neither does `x = 2.0` after a bare `x: tl.constexpr`.
    """
    if name in frame.constant_names:
        return value
    if isinstance(value, constexpr) and isinstance(value.value, bool | int | float):
        return materialize(frame.at(node), value)
    return value


@EXPRESSIONS.register(ast.BinOp)
def _binary(frame: Frame, node: ast.BinOp) -> object:
    lhs, rhs = frame.evaluate(node.left), frame.evaluate(node.right)
    return apply_binary(frame, node, node.op, lhs, rhs)


def apply_binary(
    frame: Frame, node: ast.AST, operator: ast.operator, lhs: object, rhs: object
) -> object:
    """`lhs operator rhs`: folded when both are known, else an op."""
    name = type(operator).__name__
    method, arguments = _operator_call(frame, _METHODS.get(name, name), lhs, rhs)
    if method is not None:
        return call_method(frame, node, method, arguments, {})
    if isinstance(operator, ast.MatMult):
        raise reject(operator)
    if is_constant(lhs) and is_constant(rhs):
        return fold_binary(name, lhs, rhs)
    if isinstance(lhs, tuple_) and isinstance(rhs, tuple_) and name == "Add":
        return lhs + rhs
    if isinstance(lhs, tuple_) and isinstance(rhs, constexpr) and name == "Mult":
        return tuple_(lhs.values * rhs.__index__())
    _require_operand(lhs, name)
    _require_operand(rhs, name)
    if name == "Pow":
        raise DtypeNotAllowed(
            "tiles have no operator `**`",
            hint="multiply, or use tl.exp2(y * tl.log2(x)); constants may use `**`",
        )
    if name in ("FloorDiv", "Mod"):
        rhs = safe_divisor(frame.at(node), rhs)
    return binary(frame.at(node), name, lhs, rhs)


# Python's names of operator methods where they differ from the syntax class.
_METHODS = {
    "Mult": "mul", "Div": "truediv", "BitAnd": "and", "BitOr": "or", "BitXor": "xor",
    "MatMult": "matmul", "Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt",
    "GtE": "ge", "USub": "neg", "UAdd": "pos",
}  # fmt: skip
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _operator_call(
    frame: Frame, name: str, lhs: object, rhs: object
) -> tuple[AggregateMethod | None, list[object]]:
    """The method of an aggregate operand that serves an operator, with its argument."""
    name = name.lower()
    method = operator_method(frame.lowering, lhs, f"__{name}__")
    if method is not None:
        return method, [rhs]
    reflected = f"__{_MIRRORED[name]}__" if name in _MIRRORED else f"__r{name}__"
    return operator_method(frame.lowering, rhs, reflected), [lhs]


def _require_operand(value: object, operator: str) -> None:
    is_number = isinstance(value, constexpr) and isinstance(value.value, bool | int | float)
    if not (isinstance(value, tensor) or is_number):
        raise DtypeNotAllowed(f"{describe(value)} is no operand of an operator on tiles")


@EXPRESSIONS.register(ast.UnaryOp)
def _unary(frame: Frame, node: ast.UnaryOp) -> object:
    return apply_unary(frame, node, node.op, frame.evaluate(node.operand))


def apply_unary(frame: Frame, node: ast.AST, operator: ast.unaryop, operand: object) -> object:
    """`operator operand`: folded when it is known, else an op."""
    name = type(operator).__name__
    method = operator_method(frame.lowering, operand, f"__{_METHODS.get(name, name).lower()}__")
    if method is not None:
        return call_method(frame, node, method, [], {})
    if is_constant(operand):
        return fold_unary(name, operand)
    _require_operand(operand, name)
    return unary(frame.at(node), name, operand)


@EXPRESSIONS.register(ast.BoolOp)
def _bool(frame: Frame, node: ast.BoolOp) -> object:
    """`and` and `or`: a constant that decides does so at once, also behind a scalar condition.

    `found and not K` with a true `K` is the constant False: what is only there for it is no part
    of the kernel. Runtime values are all evaluated.
    """
    name = type(node.op).__name__
    decides = isinstance(node.op, ast.Or)
    result: object = None
    for part in node.values:
        value = frame.evaluate(part)
        if is_constant(value):
            known = truth(frame, part, value)
            if result is None and (known is decides or part is node.values[-1]):
                return value
            if known is not decides:
                continue
            if _is_condition(result):
                return constexpr(decides)
        result = value if result is None else logical(frame.at(node), name, result, value)
    return result


def _is_condition(value: object) -> bool:
    """Whether a value of the run is a scalar int1, of which `and` and `or` make no other value."""
    return isinstance(value, tensor) and not value.static_shape and value.dtype.is_bool()


@EXPRESSIONS.register(ast.Compare)
def _compare(frame: Frame, node: ast.Compare) -> object:
    """`a < b < c` is `a < b and b < c` with `b` evaluated once."""
    left = frame.evaluate(node.left)
    result: object = None
    for operator, right_node in zip(node.ops, node.comparators, strict=True):
        right = frame.evaluate(right_node)
        one = apply_comparison(frame, node, operator, left, right)
        if is_constant(one) and not plain(one):
            return one
        if result is None or is_constant(result):
            result = one
        elif not is_constant(one):
            result = binary(frame.at(node), "BitAnd", result, one)
        left = right
    return result


def apply_comparison(
    frame: Frame, node: ast.AST, operator: ast.cmpop, left: object, right: object
) -> object:
    """`left operator right`: folded when both are known, else an op."""
    if isinstance(operator, ast.In | ast.NotIn):
        return _contains(operator, left, right)
    if isinstance(operator, ast.Is | ast.IsNot):
        return constexpr(_is_same(left, right) is isinstance(operator, ast.Is))
    name = type(operator).__name__
    method, arguments = _operator_call(frame, _METHODS[name], left, right)
    if method is not None:
        return call_method(frame, node, method, arguments, {})
    if is_constant(left) and is_constant(right):
        return fold_binary(name, left, right)
    if name in ("Eq", "NotEq") and (_is_none(left) or _is_none(right)):
        return constexpr(name == "NotEq")
    _require_operand(left, name)
    _require_operand(right, name)
    return binary(frame.at(node), name, left, right)


def _contains(operator: ast.In | ast.NotIn, item: object, container: object) -> object:
    """`item in container`, where both are known at compile time."""
    if not (is_constant(item) and is_constant(container)):
        raise reject(operator)
    found = evaluate(lambda: plain(item) in plain(container))  # type: ignore[operator]
    return found if isinstance(operator, ast.In) else fold_unary("Not", found)


def _is_none(value: object) -> bool:
    return isinstance(value, constexpr) and value.value is None


def _is_same(left: object, right: object) -> bool:
    """`is`: for None, True, False and other constants by value and type; tiles by identity."""
    if is_constant(left) and is_constant(right):
        x, y = plain(left), plain(right)
        return x is y or (type(x) is type(y) and x == y)
    return left is right


@EXPRESSIONS.register(ast.IfExp)
def _ternary(frame: Frame, node: ast.IfExp) -> object:
    test = condition(frame, node.test)
    if isinstance(test, bool):
        return frame.evaluate(node.body if test else node.orelse)
    then, other = Block(), Block()
    here, elsewhere = on_path(frame.at(node), test), off_path(frame.at(node), test)
    with frame.on_path(here), frame.branch(then):
        a = frame.evaluate(node.body)
    with frame.on_path(elsewhere), frame.branch(other):
        b = frame.evaluate(node.orelse)
    pairs: list[tuple[object, object]] = []
    try:
        tree = join(a, b, pairs)
    except Mismatch as mismatch:
        raise _ternary_error(mismatch.left, mismatch.right) from None
    lefts = side_values(frame, node.body, then, [x for x, _ in pairs])
    rights = side_values(frame, node.orelse, other, [y for _, y in pairs])
    for x, y in zip(lefts, rights, strict=True):
        if x.type != y.type:
            raise _ternary_error(x, y)
    results = emit_branch(frame, node, test, (then, lefts), (other, rights))
    return fill(tree, results.__getitem__)


def _ternary_error(a: object, b: object) -> BranchTypeMismatch:
    return BranchTypeMismatch(
        f"the two sides of `… if … else …` are {type_text(a)} and {type_text(b)}",
        hint="give both sides one type, for example with .to(dtype)",
        known_as="Ternary expression with dynamic condition has inconsistent types "
        f"{type_text(a)} and {type_text(b)}",
    )


@EXPRESSIONS.register(ast.Tuple, ast.List)
def _tuple(frame: Frame, node: ast.Tuple | ast.List) -> object:
    values: list[object] = []
    for element in node.elts:
        if isinstance(element, ast.Starred):
            values.extend(iterate(frame.evaluate(element.value)))
        else:
            values.append(frame.evaluate(element))
    return tuple_(values)


@EXPRESSIONS.register(ast.Dict)
def _dictionary(frame: Frame, node: ast.Dict) -> object:
    """The tables of `extern_elementwise`, from tuples of dtypes: there is nothing else."""
    table: dict[object, object] = {}
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        key = None if key_node is None else plain(frame.evaluate(key_node))
        if not (isinstance(key, tuple) and all(isinstance(part, dtype) for part in key)):
            raise reject(node)
        table[key] = plain(frame.evaluate(value_node))
    if not table:
        raise reject(node)
    return constexpr(table)


@EXPRESSIONS.register(ast.Subscript)
def _subscript(frame: Frame, node: ast.Subscript) -> object:
    value = frame.evaluate(node.value)
    index = frame.evaluate(node.slice)
    method = operator_method(frame.lowering, value, "__getitem__")
    if method is not None:
        return call_method(frame, node, method, [index], {})
    frame.at(node)
    return index_value(frame, value, index)


@EXPRESSIONS.register(ast.Slice)
def _slice(frame: Frame, node: ast.Slice) -> object:
    parts = [None if p is None else frame.evaluate(p) for p in (node.lower, node.upper, node.step)]
    for part in parts:
        if isinstance(part, tensor):
            raise NotConstexpr(f"a bound of a slice is {describe(part)}")
    return slice(*(None if part is None else plain(part) for part in parts))


@EXPRESSIONS.register(ast.JoinedStr)
def _joined(frame: Frame, node: ast.JoinedStr) -> object:
    return constexpr("".join(str(plain(frame.evaluate(part))) for part in node.values))


_CONVERSIONS: dict[int, Callable[[object], str]] = {115: str, 114: repr, 97: ascii}


@EXPRESSIONS.register(ast.FormattedValue)
def _formatted(frame: Frame, node: ast.FormattedValue) -> object:
    value = frame.evaluate(node.value)
    if not is_constant(value):
        error = NotConstexpr(
            f"an f-string shows compile-time values only, this is {describe(value)}",
            hint="print runtime values with tl.device_print",
        )
        # Until Python 3.12 the position of a part is that of the whole string.
        frame.place(error, node.value)
        raise error
    spec = "" if node.format_spec is None else plain(frame.evaluate(node.format_spec))
    shown = plain(value)
    if node.conversion in _CONVERSIONS:
        shown = _CONVERSIONS[node.conversion](shown)
    return evaluate(format, shown, spec)


@EXPRESSIONS.register(ast.ListComp)
def _comprehension(frame: Frame, node: ast.ListComp) -> object:
    if len(node.generators) != 1:
        raise reject_as("a comprehension with several loops", "write one `for` over a tuple")
    generator = node.generators[0]
    names = [n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)]
    outer = {name: frame.variables[name] for name in names if name in frame.variables}
    values: list[object] = []
    for item in iterate(frame.evaluate(generator.iter)):
        _bind(frame, generator.target, item)
        if all(_holds(frame, test) for test in generator.ifs):
            values.append(frame.evaluate(node.elt))
    for name in names:
        frame.variables.pop(name, None)
    frame.variables.update(outer)
    return tuple_(values)


def _bind(frame: Frame, target: ast.expr, value: object) -> None:
    """Give the names of a comprehension's target their parts of one element."""
    open_pairs = [(target, value)]
    while open_pairs:
        part, item = open_pairs.pop()
        if isinstance(part, ast.Name):
            frame.variables[part.id] = item
        elif isinstance(part, ast.Tuple | ast.List):
            if any(isinstance(element, ast.Starred) for element in part.elts):
                raise starred_target()
            items = unpack(item, len(part.elts))
            open_pairs += zip(part.elts, items, strict=True)
        else:
            raise starred_target()


def _holds(frame: Frame, test: ast.expr) -> bool:
    known = condition(frame, test)
    if not isinstance(known, bool):
        raise NotConstexpr("the condition of a comprehension must be known at compile time")
    return known


@EXPRESSIONS.register(ast.Starred)
def _starred(frame: Frame, node: ast.Starred) -> object:
    raise UndefinedName("a starred expression stands only in calls and tuples")
