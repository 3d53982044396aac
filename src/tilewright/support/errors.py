"""The catalogue of errors: one class per error that a user can see.

Families, by whose fault it is: `CompileError` (the kernel or the call is wrong),
`UnsupportedError` (a right program on a target that cannot run it), `ExtensionError` (a package
that adds ops is wrong), `InternalError` (ours). One more, `KernelFault`, is for what a kernel did
while it ran (interpreter, checked mode).
A message has four parts: what is wrong with the values; where, with caret and call chain;
the types; what to do.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tilewright.support.source import Span, caret_excerpt, source_line

if TYPE_CHECKING:
    import ast


class TilewrightError(Exception):
    """The root of every error of this package.

    `summary` says what is wrong in the user's words, `argument` names the argument at fault
    (the frontend finds its columns), `types` maps names to printed types, `hint` says what
    to do. `span` and `chain` (outermost call last) are filled in where they are known.
    `known_as` is what Triton says there, for programs that match it; its alias shows it.
    """

    help: str = ""
    # Whether another configuration of the same kernel may well work: a tuner goes on.
    is_of_configuration: bool = False
    # The launch that was refused, and whether `span` is a parameter of its kernel.
    launch: Span | None = None
    is_about_parameter: bool = False
    # A line above the message, for programs that read positions in the words of another compiler.
    preface: str = ""

    def __init__(
        self,
        summary: str,
        *,
        hint: str = "",
        argument: str | None = None,
        types: Mapping[str, str] | None = None,
        span: Span | None = None,
        chain: tuple[Span, ...] = (),
        source: str | None = None,
        known_as: str = "",
    ) -> None:
        super().__init__(summary)
        self.summary = summary
        self.hint = hint or type(self).help
        self.argument = argument
        self.types = dict(types or {})
        self.span = span
        self.chain = chain
        self.source = source
        self.known_as = known_as

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.summary, self.__dict__.copy()))

    @property
    def code(self) -> str:
        """The name shown in brackets: the class name."""
        return type(self).__name__

    def __str__(self) -> str:
        parts = [self.preface] if self.preface else []
        parts.append(f"error[{self.code}]: {self.summary}")
        if self.span is not None:
            called = "".join(f" (called from {c.file}:{c.line})" for c in self.chain)
            if self.launch is not None:
                called += f" (launched from {self.launch.file}:{self.launch.line})"
            parts += _shown(self.span, called, self.source)
        elif self.launch is not None:
            parts += _shown(self.launch)
        if self.types:
            parts.append("  " + "   ".join(f"{name}: {text}" for name, text in self.types.items()))
        if self.hint:
            parts.append(f"  help: {self.hint}")
        return "\n".join(parts)


def _shown(span: Span, called: str = "", source: str | None = None) -> list[str]:
    """The lines of a message that say where."""
    excerpt = caret_excerpt(span, source)
    position = f"  {span.position()}{called}"
    return [position, excerpt] if excerpt else [position]


def _rebuild(cls: type[TilewrightError], summary: str, state: dict[str, object]) -> TilewrightError:
    error = cls.__new__(cls)
    Exception.__init__(error, summary)
    error.__dict__.update(state)
    return error


class CompileError(TilewrightError):
    """The kernel, its arguments or its launch are wrong.

    `error_message`, `src` and `node` are what programs for Triton read of its class.
    """

    @property
    def error_message(self) -> str:
        """What is wrong, without the place; first in Triton's words where it has some."""
        return f"{self.known_as}: {self.summary}" if self.known_as else self.summary

    @property
    def src(self) -> str | None:
        """The source line at fault, where it is known; in the kernel, where it calls another."""
        span = self._place
        if (self.source is not None and not self.chain) or span is None:
            return self.source
        return source_line(span.file, span.line) or None

    @property
    def node(self) -> ast.AST | None:
        """A node of the syntax tree with the line and the column in the file, as in `src`."""
        place = self._place
        if place is None:
            return None
        node = importlib.import_module("ast").Pass()
        node.lineno, node.col_offset = place.line, place.column - 1
        return node

    @property
    def _place(self) -> Span | None:
        return self.chain[-1] if self.chain else self.span


class UnsupportedError(TilewrightError):
    """A right program that this target or version cannot run."""

    is_of_configuration = True


class ExtensionError(TilewrightError):
    """A package that adds to the compiler says something that cannot be."""


class InternalError(TilewrightError):
    """A defect of Tilewright itself."""

    is_of_configuration = True
    help = "this is a defect of the compiler; please report it with the reproducer"


# --- types, shapes and values of tile expressions -------------------------------------------


class DtypeMismatch(CompileError):
    """The operands' dtypes do not go together."""


class DtypeNotAllowed(CompileError):
    """The function does not take this dtype."""


class BroadcastMismatch(CompileError):
    """Two shapes cannot be broadcast together."""


class ShapeMismatch(CompileError):
    """A shape does not fit the function or the other operand."""


class NotPowerOfTwo(CompileError):
    """A tile dimension must be a power of two."""

    help = "round the size up with tilewright.next_power_of_2 and mask the rest"


class TileTooLarge(CompileError):
    """A tile has more than 2^20 elements."""

    is_of_configuration = True
    help = "use a smaller block and let more programs, or a loop, cover the data"


class NotConstexpr(CompileError):
    """A value must be known at compile time and is not."""

    help = "annotate the parameter or the variable with tl.constexpr, or pass a literal"


class LiteralOutOfRange(CompileError):
    """A Python number does not fit the dtype it would take."""


class NotAPointer(CompileError):
    """A pointer is needed."""

    help = "pass the tensor itself as kernel argument and add offsets to it"


class PointerArithmetic(CompileError):
    """Pointers only take integer offsets."""


class StoreToConst(CompileError):
    """A store through a pointer declared const."""


class DotShapeMismatch(CompileError):
    """The operands of dot do not fit together."""


class DotDtypeMismatch(CompileError):
    """dot does not take these dtypes together."""


class AxisOutOfRange(CompileError):
    """An axis is not one of the tile's dimensions."""


class InvalidOption(CompileError):
    """A keyword or option has no such value."""


# --- names, calls and the Python subset -----------------------------------------------------


class SourceNotAvailable(CompileError):
    """The source text of a kernel cannot be read."""

    help = "define the kernel with `def` in a file or a notebook cell"


class UndefinedName(CompileError):
    """A name has no value here."""

    help = "assign it before, on every path that leads here"


class GlobalNotConstexpr(CompileError):
    """A kernel reads a global variable that is not a compile-time constant."""


class NameNotUsable(CompileError):
    """A name means something that a kernel cannot use."""

    help = "kernels use tile functions, jit functions, dtypes, constexprs and NamedTuples"


class PlainFunctionCall(CompileError):
    """A kernel calls an ordinary Python function."""

    help = "decorate it with @tilewright.jit, or with @tilewright.constexpr_function to run it now"


class CombineHasEffects(CompileError):
    """A combine function of a reduction or a scan does more than compute."""

    help = "print, assert, load and store in the kernel, before or after the reduction or the scan"


class UnsupportedConstruct(CompileError):
    """A Python construct that the language does not have."""


class ResultNotUsed(CompileError):
    """A call drops a result that is the point of the call."""


class MissingArgument(CompileError):
    """A call leaves out an argument that has no default."""


class UnexpectedArgument(CompileError):
    """A call passes an argument that the function does not take."""


class DuplicateArgument(CompileError):
    """A call passes one argument twice."""


class ArgumentNotSupported(CompileError):
    """A launch passes an object that no kernel takes."""

    help = "pass arrays (NumPy, torch, DLPack), numbers, dtypes, tuples of them, or descriptors"


class NotCallable(CompileError):
    """A value that is no function is called."""


class UnknownAttribute(CompileError):
    """A value has no such attribute or method."""


class UnknownMember(CompileError):
    """A module of the language has no such function."""


class IndexNotSupported(CompileError):
    """A tile is indexed by something else than None and `:`."""

    help = "tiles index with None and `:` only; select elements with tl.where, tl.gather or masks"


class UnpackMismatch(CompileError):
    """A tuple has more or fewer elements than the names it is unpacked into."""

    help = "write one name for each element"


class ConstantEvaluation(CompileError):
    """Python raised an error while a compile-time expression was evaluated."""


class ConditionNotScalar(CompileError):
    """A condition is a tile, not a scalar."""

    help = "choose elements with tl.where, or reduce the tile to one value first"


class ConditionNotBoolean(CompileError):
    """A condition has a type without truth value."""

    help = "compare it, for example with `==` or `is not None`"


class BranchTypeMismatch(CompileError):
    """A variable has different types after the branches of an `if`."""

    help = "give the variable one type in both branches, for example with .to(dtype)"


class LoopTypeMismatch(CompileError):
    """A variable changes its type in a loop."""

    help = "give it its final type before the loop, for example with tl.zeros or .to(dtype)"


class ReturnTypeMismatch(CompileError):
    """The `return` statements of a function give different types."""


class IteratorNotSupported(CompileError):
    """A `for` loop runs over something else than a range."""

    help = "loop over range, tl.range or tl.static_range"


class LoopBoundsError(CompileError):
    """The bounds or the step of a loop are wrong."""


class TooManyIterations(CompileError):
    """A loop that is unrolled at compile time has too many iterations."""

    is_of_configuration = True
    help = "use `range` for a loop at run time"


class KernelTooLarge(CompileError):
    """A kernel lowers to too many operations."""

    is_of_configuration = True
    help = "use `range` in place of `static_range`, or split the kernel"


class RecursionTooDeep(CompileError):
    """Functions call each other without an end that is known at compile time."""

    help = "recursion must end by a condition on a constexpr argument"


class NestingTooDeep(CompileError):
    """Branches and loops stand in one another deeper than the compiler follows."""

    help = "write arms of `elif` as tl.where or as a table in memory, and nests as one loop"


class StaticAssertionFailed(CompileError):
    """A `static_assert` does not hold."""

    is_of_configuration = True


class HostCall(CompileError):
    """A function of the language is called outside of a kernel."""

    help = "call it in a function decorated with @tilewright.jit"


class KernelFault(TilewrightError, RuntimeError):
    """The kernel did something undefined while it ran."""


class OutOfBoundsAccess(KernelFault):
    """A load or store went outside of every argument's memory."""

    help = "mask the lanes past the end, for example with mask=offsets < n"


class OffsetOverflow(KernelFault):
    """An int32 offset wrapped around before it reached a pointer."""

    help = "compute the offset in 64 bits: cast one factor with .to(tl.int64)"


class DivisionByZero(KernelFault):
    """A quotient of integers that does not exist: by zero, or of the least integer by -1."""

    help = "divide by a value that is not zero in every lane, for example tl.where(y == 0, 1, y)"


class NullAccess(KernelFault):
    """A load or store went through a null pointer."""

    help = "an argument that may be None must be tested before it is used"


class MisalignedAccess(KernelFault):
    """An address is no multiple of the element's size."""

    help = "a pointer may only be cast to a wider type where its address is aligned"


class ReadOnlyWrite(KernelFault):
    """A store went into an argument that may not be written."""


class UninitializedRead(KernelFault):
    """A load read memory that nothing has written."""


class UndefinedValue(KernelFault):
    """An undefined value reached memory, an address, a condition or a printed line."""

    help = "a masked load without `other` leaves its masked lanes undefined: pass other="


class DataRace(KernelFault):
    """Two programs access one place without an order, and one of them writes."""

    help = "order the programs with an atomic that releases and one that acquires"


class Deadlock(KernelFault):
    """Every program that is left waits for another one."""


class AssertionFailed(KernelFault):
    """A `device_assert` does not hold."""


class BrokenPromise(KernelFault):
    """A hint or assumption of the author does not hold."""

    help = "the compiler may use the promise: make it true or remove it"


class LoopStepNotPositive(KernelFault):
    """A loop has a step that never reaches its end."""


# --- launching --------------------------------------------------------------------------------


class InvalidGrid(CompileError):
    """The grid of a launch is not 1 to 3 non-negative integers."""


class NotAKernelLaunch(CompileError):
    """A kernel was called like a Python function."""


class CapturedValueChanged(CompileError):
    """A global that a kernel was compiled with has another value now."""


class MalformedText(CompileError):
    """Text that should be a module of the tile IR cannot be read as one."""


class PlanMissing(CompileError):
    """A pass reads a decision that no pass before it has taken."""


class PlanRefused(CompileError):
    """A decision that was annotated cannot be carried out, or contradicts another one."""

    is_of_configuration = True
    help = "remove the annotation, and the compiler decides"


class MalformedSchedule(CompileError):
    """Text that should be a schedule cannot be read as one, or names what is not there."""

    is_of_configuration = True


class ProtocolBroken(CompileError):
    """Roles that run at once do not keep to what their rings, turns and registers ask of them.

    It names the role, the ring or what else they share, and the line.
    """

    is_of_configuration = True


class LayoutError(CompileError):
    """A layout that was asked for cannot be."""


class UnsupportedLayout(LayoutError):
    """What was asked of a layout has no answer that is a layout."""


class SharedMemoryExceeded(UnsupportedError):
    """The tiles that a kernel keeps in shared memory do not fit there.

    *Units* bytes; both are 0 where they are not known.
    """

    required_bytes: int = 0
    limit_bytes: int = 0
    help = "use smaller blocks, fewer stages or fewer warps"


# --- ops, rules and functions of other packages -------------------------------------------------


class MissingRule(UnsupportedError):
    """An op reaches a target, or the interpreter, which has no rule for it."""

    # No other configuration of the kernel has the rule.
    is_of_configuration = False


class DuplicateRegistration(ExtensionError):
    """A rule, an op or a function is registered where there is one already."""

    help = "take one of the two away, or give the new one a name of its own"


class UnknownFacet(ExtensionError):
    """An extension names a part that no extension has."""


class InvalidExtension(ExtensionError):
    """An extension cannot be loaded, or is not what it says."""


class EffectsNotDeclared(ExtensionError):
    """An op does not declare what it does besides computing its results."""

    help = (
        "give its class the trait `Pure`, or a method `effects` that lists what it reads, writes "
        "and orders (tilewright.ir.effects)"
    )
