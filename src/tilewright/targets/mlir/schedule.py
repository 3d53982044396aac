"""A schedule for a CPU with AVX-512: a script of the transform dialect beside the kernel.

    %op = transform.structured.match ops{["linalg.matmul"]} attributes {schedule = 0 : i64} …
    %tiled, %loops:3 = transform.structured.tile_using_for %op tile_sizes [8, 32, 1] : …
    transform.structured.vectorize %tiled : !transform.any_op

Stock mlir-opt runs it on the tensors, by `--transform-interpreter`. A product becomes outer
products that are summed in registers, a chain of elementwise ops one of vectors. Reductions stay
as they are: the order of their sums is part of their meaning. Tiles of the language have powers
of two as extents, so no vector is partial.
"""

from __future__ import annotations

import re

from tilewright.support.dataclass import dataclass
from tilewright.targets.mlir.text import width_text

SCHEDULES = ("cpu",)
"""The names of schedules that a module may be given."""
_INTERPRET = ("transform-interpreter", "symbol-dce")
# By definition: the bits of an AVX-512 register.
_REGISTER_BITS = 512
# Measured: 512³ in f32, 2 threads of an EPYC with AVX-512, 2026-11-22, tiles of 64×64×32 to
# 128×128×64: 8 rows of two registers 346 GF/s, 16 of one 315, 12 of two 314, 8 of one 291.
_ROWS, _REGISTERS = 8, 2
_SHAPE = re.compile(r"tensor<((?:\d+x)*)(\w+)>")
_PRODUCT = re.compile(r"(linalg\.(?:batch_)?matmul) (ins\(.*\) outs\(%\S+ : (\S+)\) -> .*)$", re.M)
_GENERIC = re.compile(
    r"(linalg\.generic) \{indexing_maps = \[(.*)\], iterator_types = \[(.*)\]\} ?(.*) "
    r"(\{\n *\^bb0\(.*\):\n((?:.*\n)*?) *\} -> (\S+)\n)"
)
# What has a form on vectors; a call, a lookup or a place in the loop is left as it is.
_LINE = re.compile(r" *(?:%\S+ = (?:arith|math)\.\w+ .*|linalg\.yield %\S+ : \w+)")
_PLACED = re.compile(
    r" *(%\d+) = bufferization\.materialize_in_destination (%\S+) in %\S+ : "
    r"\(tensor\S+ tensor\S+\) -> tensor.*\n"
)
_NAME = re.compile(r"%\d+(?:#\d+)?")
_MAP = re.compile(r"affine_map<\(.*?\) -> \((.*?)\)>")
_ANY = "!transform.any_op"
# For each function: products as `vector.contract`, their sums in registers over the loop of k, and
# reads and writes of the tensor itself, so that no part of it is a buffer of its own.
_FUNCTIONS = f"""\
    %functions = transform.structured.match ops{{["func.func"]}} in %module : ({_ANY}) -> {_ANY}
    transform.foreach %functions : {_ANY} {{
    ^bb0(%function: {_ANY}):
      transform.apply_patterns to %function {{
        transform.apply_patterns.vector.reduction_to_contract
        transform.apply_patterns.vector.transfer_permutation_patterns
        transform.apply_patterns.vector.cast_away_vector_leading_one_dim
        transform.apply_patterns.canonicalization
      }} : {_ANY}
      transform.apply_cse to %function : {_ANY}
      %loops = transform.structured.match ops{{["scf.for"]}} in %function : ({_ANY}) -> {_ANY}
      transform.foreach %loops : {_ANY} {{
      ^bb0(%loop: {_ANY}):
        transform.loop.hoist_loop_invariant_subsets %loop : {_ANY}
      }}
      transform.apply_patterns to %function {{
        transform.apply_patterns.tensor.fold_tensor_subset_ops_into_vector_transfers
        transform.apply_patterns.canonicalization
      }} : {_ANY}
    }}
    transform.yield
"""


@dataclass(frozen=True)
class Tiled:
    """One op of linalg as the script names it: its label, its name and the tile of one vector op.

    A product's tile comes by two sets of loops, so that the sum stays in registers.
    """

    label: int
    name: str
    sizes: tuple[int, ...]

    def script(self) -> str:
        """The lines that find the op, tile and vectorize it."""
        op, tile = f"%op{self.label}", f"%tile{self.label}"
        num_loops = sum(size > 0 for size in self.sizes)
        types = ", ".join([_ANY] * (num_loops + 1))
        sizes = ", ".join(map(str, self.sizes))
        return (
            f'    {op} = transform.structured.match ops{{["{self.name}"]}} '
            f"attributes {{schedule = {self.label} : i64}} in %module : ({_ANY}) -> {_ANY}\n"
            f"    {tile}, {tile}_loops:{num_loops} = transform.structured.tile_using_for {op} "
            f"tile_sizes [{sizes}] : ({_ANY}) -> ({types})\n"
            f"    transform.structured.vectorize {tile} : {_ANY}\n"
        )


def with_schedule(text: str) -> str:
    """A module with the script that tiles and vectorizes it for AVX-512.

    The module is one that `emit_module` wrote. Every op that the script changes is labelled.
    """
    found: list[Tiled] = []

    def label(name: str, sizes: tuple[int, ...]) -> str:
        found.append(Tiled(len(found), name, sizes))
        return f"{{schedule = {found[-1].label} : i64}}"

    def product(match: re.Match[str]) -> str:
        name, rest, total = match.groups()
        sizes = _product_sizes(total)
        return match[0] if sizes is None else f"{name} {label(name, sizes)} {rest}"

    def chain(match: re.Match[str]) -> str:
        name, maps, iterators, operands, end, body, type_ = match.groups()
        sizes = _chain_sizes(f"{operands} {type_}", maps, iterators, body, type_)
        if sizes is None:
            return match[0]
        traits = f"{{indexing_maps = [{maps}], iterator_types = [{iterators}]}}"
        return f"{name} {traits} {operands} attrs = {label(name, sizes)} {end}"

    text = _GENERIC.sub(chain, _PRODUCT.sub(product, _without_places(text)))
    start = text.replace("module {", "module attributes {transform.with_named_sequence} {", 1)
    end = start.rindex("}")
    return start[:end] + _script(found) + start[end:]


def has_schedule(text: str) -> bool:
    """Whether a module brings a script that is still to be run."""
    return "transform.with_named_sequence" in text


def interpreting(passes: tuple[str, ...]) -> tuple[str, ...]:
    """Passes behind those that run a module's script, and drop it."""
    return (*_INTERPRET, *passes)


def _product_sizes(total: str) -> tuple[int, ...] | None:
    """Rows and columns of the sum that stay in registers, one step of k at a time."""
    found = _SHAPE.fullmatch(total)
    if found is None:
        return None
    *batch, rows, columns = map(int, found[1].split("x")[:-1])
    width = _REGISTERS * _REGISTER_BITS // width_text(found[2])
    return (*[1] * len(batch), min(_ROWS, rows), min(width, columns), 1)


def _chain_sizes(
    types: str, maps: str, iterators: str, body: str, result: str
) -> tuple[int, ...] | None:
    """One register of a row, where all of a chain has a form on vectors."""
    found = _SHAPE.fullmatch(result)
    if found is None or "reduction" in iterators or not found[1]:
        return None
    if any(_LINE.fullmatch(line) is None for line in body.splitlines()):
        return None
    words = [word for at in _MAP.findall(maps) for word in at.split(", ") if word]
    if not all(re.fullmatch(r"d\d+", word) for word in words):
        return None
    if any(kind == "i1" for _, kind in _SHAPE.findall(types)):
        return None  # a vector of bits is no memory of bytes
    *outer, row = map(int, found[1].split("x")[:-1])
    widest = max(width_text(kind) for _, kind in _SHAPE.findall(types))
    return (*[1] * len(outer), min(_REGISTER_BITS // widest, row))


def _without_places(text: str) -> str:
    """A module whose loops hand on what they made, and not in the tensor that carried it.

    MLIR 22 refuses that of an op that is tiled: it finds a conflict with the tiles' loop.
    """
    lines, made = list[str](), dict[str, str]()
    for line in text.splitlines(keepends=True):
        found = _PLACED.fullmatch(line)
        if found is not None:
            made[found[1]] = found[2]
        elif made and line.lstrip().startswith("scf.yield"):
            lines.append(_renamed(line, made))
            made = {}
        else:
            lines.append(line)
    return "".join(lines)


def _renamed(line: str, names: dict[str, str]) -> str:
    return _NAME.sub(lambda found: names.get(found[0], found[0]), line)


def _script(found: list[Tiled]) -> str:
    """The sequence: each op by itself, then what holds for all of a function."""
    head = f"@__transform_main(%module: {_ANY} {{transform.readonly}})"
    each = "".join(op.script() for op in found)
    return f"  transform.named_sequence private {head} {{\n{each}{_FUNCTIONS}  }}\n"
