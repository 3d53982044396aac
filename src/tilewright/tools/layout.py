"""`tilewright layout`: draw a layout, or say how one becomes another."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from math import prod

import click

from tilewright.layout import build
from tilewright.layout.build import PaddedLayout
from tilewright.layout.convert import plan_conversion
from tilewright.layout.linear import LinearLayout
from tilewright.layout.show import describe, describe_conversion, draw, draw_shared
from tilewright.support.errors import LayoutError

_Layout = LinearLayout | PaddedLayout

_CONSTRUCTORS: Mapping[str, Callable[..., _Layout]] = {
    function.__name__: function
    for function in (
        build.blocked,
        build.coalesced,
        build.wgmma_accumulator,
        build.wgmma_operand_a,
        build.mma_accumulator,
        build.mma_operand,
        build.shared_linear,
        build.shared_swizzled,
        build.padded_shared,
        LinearLayout.parse,
    )
}
_METHODS: Mapping[str, Callable[..., LinearLayout]] = {
    function.__name__: function
    for function in (
        LinearLayout.slice,
        LinearLayout.expand,
        LinearLayout.permute,
        LinearLayout.shrink,
        LinearLayout.broadcast,
        LinearLayout.reshape,
        LinearLayout.flatten,
        LinearLayout.join,
        LinearLayout.split,
    )
}


@click.command()
@click.argument("layout", metavar="LAYOUT")
@click.option("--to", "target", default="", metavar="LAYOUT", help="Show the conversion to this.")
@click.option("--bytes", "element_bytes", default=2, show_default=True, help="Bytes of an element.")
@click.option("--rows", default=32, show_default=True, help="Rows to draw.")
@click.option("--columns", default=64, show_default=True, help="Columns to draw.")
def layout(layout: str, target: str, element_bytes: int, rows: int, columns: int) -> None:
    """Draw a layout: which warp, lane and register holds each element of a tile.

    LAYOUT is a call of a constructor, with tile ops after it if you like:

    \b
        blocked(shape=(32, 32), size_per_thread=(1, 4), lanes=(4, 8), warps=(4, 1), order=(1, 0))
        wgmma_accumulator((64, 64), warps=(4, 1), n=64).slice(1)
        shared_swizzled((64, 64), element_bytes=2, swizzle_bytes=128, order=(1, 0))
        parse('register(0:1) lane(1:0 2:0) warp() atom(4x2)')
    """
    source = layout_of(layout)
    linear = source.linear if isinstance(source, PaddedLayout) else source
    click.echo(describe(linear))
    if target:
        _echo_conversion(linear, layout_of(target), element_bytes)
        return
    is_shared = isinstance(source, PaddedLayout) or linear.in_dims == ("offset",)
    picture = (
        draw_shared(source, element_bytes, rows, columns)
        if is_shared
        else draw(linear, rows, columns)
    )
    click.echo("\n" + picture)


def _echo_conversion(source: LinearLayout, target: _Layout, element_bytes: int) -> None:
    if not isinstance(target, LinearLayout) or "offset" in (*source.in_dims, *target.in_dims):
        raise LayoutError("only layouts in registers convert to one another")
    click.echo(f"\nto {describe(target)}\n")
    plan = plan_conversion(source, target, element_bytes)
    click.echo(f"{prod(source.shape)} elements of {element_bytes} bytes")
    click.echo(describe_conversion(plan, source, target, element_bytes))


def layout_of(expression: str) -> _Layout:
    """The layout that a call of a constructor makes; nothing but literals is evaluated.

    *Raises*: `LayoutError` where the expression is no such call.
    """
    try:
        return _evaluate(ast.parse(expression, mode="eval").body)
    except (SyntaxError, TypeError, ValueError, IndexError) as error:
        raise LayoutError(f"`{expression}` does not make a layout: {error}") from error


def _evaluate(node: ast.expr) -> _Layout:
    if not isinstance(node, ast.Call):
        raise LayoutError(
            f"`{ast.unparse(node)}` is not a call",
            hint=f"call one of {', '.join(sorted(_CONSTRUCTORS))}",
        )
    args = [ast.literal_eval(value) for value in node.args]
    kwargs = {word.arg or "": ast.literal_eval(word.value) for word in node.keywords}
    function = node.func
    if isinstance(function, ast.Name) and function.id in _CONSTRUCTORS:
        return _CONSTRUCTORS[function.id](*args, **kwargs)
    if isinstance(function, ast.Attribute) and function.attr in _METHODS:
        return _METHODS[function.attr](_evaluate(function.value), *args, **kwargs)
    raise LayoutError(
        f"there is no `{ast.unparse(function)}`",
        hint=f"constructors: {', '.join(sorted(_CONSTRUCTORS))}; "
        f"tile ops: {', '.join(sorted(_METHODS))}",
    )
