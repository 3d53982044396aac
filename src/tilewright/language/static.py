"""What kernels check and print while they are compiled."""

from __future__ import annotations

from tilewright.language.stubs import op


@op("static_print")
def static_print(
    *values: object,
    sep: str = " ",
    end: str = "\n",
    file: object = None,
    flush: bool = False,
) -> None:
    """Print compile-time values, and the types of runtime ones, when the kernel is compiled.

    What is printed goes to the standard output once the kernel is lowered; `file` and `flush` are
    taken for the sake of programs that pass them, `file` as None only.
    """


@op("static_assert")
def static_assert(cond: object, msg: object = "") -> None:
    """Stop the compilation unless `cond`, which must be known at compile time, holds.

    Raises: StaticAssertionFailed with `msg`.
    """
