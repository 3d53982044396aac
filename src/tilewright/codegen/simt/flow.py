"""Control flow inside of one op: code that some threads run, and loops."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.simt.context import SimtContext


@contextmanager
def only_where(ctx: SimtContext, condition: str | None) -> Generator[None]:
    """Code that runs where `condition` (i1; None: everywhere) holds.

    *Constraints*: it defines nothing that is used after it, and holds no barrier and no shuffle.
    """
    if condition is None:
        yield
        return
    fn = ctx.fn
    inside, after = fn.new_label(), fn.new_label()
    fn.branch_if(condition, inside, after)
    fn.place(inside)
    yield
    fn.branch(after)
    fn.place(after)


def repeat_while(
    fn: FunctionBuilder,
    starts: Sequence[str],
    condition: Callable[[Sequence[str]], str],
    body: Callable[[Sequence[str]], Sequence[str]],
) -> None:
    """A loop over i32 variables: `body` gives their next values while `condition` (i1) holds."""
    entry, header, inside, after = fn.block, fn.new_label(), fn.new_label(), fn.new_label()
    fn.branch(header)
    fn.place(header)
    first = len(fn.lines)
    names: list[str] = []
    for _ in starts:
        fn.counter += 1
        names.append(f"%v{fn.counter}")
        fn.lines.append("")
    fn.branch_if(condition(names), inside, after)
    fn.place(inside)
    following = body(names)
    for place, (name, start, new) in enumerate(zip(names, starts, following, strict=True)):
        incoming = f"[ {start}, %{entry} ], [ {new}, %{fn.block} ]"
        fn.lines[first + place] = f"  {name} = phi i32 {incoming}"
    fn.branch(header)
    fn.place(after)
