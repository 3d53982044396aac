"""How often the sources ask for concrete classes of ops, where a facet would serve more ops."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import tilewright

SOURCES = Path(tilewright.__file__).parent
# Where classes are what a function is for: definitions of ops, and the rules for them.
_DEFINITIONS = ("rules", "ops")
SUBJECTS = {
    "analysis/affine/choice": ("ops/elementwise/ir", "ops/elementwise/comparisons"),
    "analysis/axis_conditions": (
        "ops/control_flow",
        "ops/elementwise/ir",
        "ops/elementwise/comparisons",
    ),
    "analysis/computed_loads": ("ops/memory/ir",),
    "compiler/interpreted": ("ops/elementwise/ir",),
    "passes/fold_additions": ("ops/matmul/ir",),
    "passes/insert_checks": ("ops/memory/ir",),
    "passes/branch_masks": (
        "ops/creation/ir",
        "ops/elementwise/ir",
        "ops/elementwise/comparisons",
    ),
    "passes/conjoin_masks": ("ops/elementwise/ir", "ops/elementwise/comparisons"),
    "passes/describe_accesses": ("ops/memory/ir",),
    "passes/lower_block_pointers": ("ops/block_pointers/ir",),
    "passes/lower_descriptors": ("ops/descriptors/ir",),
    "passes/narrow_repeats": ("ops/creation/ir", "ops/matmul/ir", "ops/memory/ir"),
    "passes/persist": ("ops/program/ir",),
    "passes/split_carried_pointers": ("ops/memory/ir",),
    "passes/split_products": ("ops/matmul/ir",),
    "schedule/async_copy": ("ops/memory/ir", "ops/staging"),
    "schedule/delay_conversions": ("ops/staging",),
    "schedule/layout/stage_products": ("ops/channels", "ops/staging"),
    "schedule/partition": ("ops/roles", "ops/rings", "ops/channels"),
    "schedule/partition/conditions": ("ops/memory/ir",),
    "schedule/partition/apart": ("ops/descriptors/ir",),
    "schedule/partition/early_products": ("ops/staging", "ops/memory/ir"),
    "schedule/partition/lifted_reads": ("ops/memory/ir", "ops/control_flow"),
    "schedule/partition/release_late": ("ops/staging",),
    "schedule/partition/wait_in_loops": ("ops/staging",),
    "schedule/partition/wait_late": ("ops/staging",),
    "schedule/partition/waiting": ("ops/staging",),
    "schedule/pipeline/stage_operands": ("ops/memory/ir", "ops/staging"),
    "schedule/plan/computed_operands": ("ops/memory/ir",),
    "schedule/protocol/check_slots": ("ops/staging",),
    "schedule/protocol/scalars": ("ops/elementwise/ir", "ops/memory/ir"),
    "targets/nvidia/tma/narrow_blocks": ("ops/shape/ir",),
    "targets/cpu/emit": ("targets/cpu/ops", "targets/cpu/launch_ops"),
    "targets/cpu/dot/kept_panels": ("ops/control_flow", "targets/cpu/ops"),
    "targets/cpu/interpret": ("targets/cpu/ops",),
    "targets/cpu/interpret_launch": ("targets/cpu/launch_ops",),
    "targets/cpu/nests/alone": ("ops/atomics/ir", "ops/control_flow"),
    "targets/cpu/nests/masked_values": ("ops/memory/ir", "ops/elementwise/ir"),
    "targets/cpu/nests/written": ("ops/elementwise/ir",),
    "targets/cpu/schedule/count_cycles": ("targets/cpu/ops", "targets/cpu/launch_ops"),
    "targets/cpu/schedule/direct_stores": ("ops/memory/ir", "ops/matmul/ir"),
    "targets/cpu/schedule/lengthen_counters": ("ops/control_flow", "ops/matmul/ir"),
    "targets/cpu/schedule/round_early": ("ops/matmul/ir",),
    "targets/nvidia/address_ranges": (
        "ops/memory/ir",
        "ops/descriptors/ir",
        "targets/nvidia/tma_ops",
    ),
    "targets/nvidia/bound_turns": ("ops/roles",),
    "targets/nvidia/bound_waits": ("targets/nvidia/ops", "ops/rings"),
    "targets/nvidia/count_walks": (
        "ops/control_flow",
        "ops/elementwise/ir",
        "ops/elementwise/comparisons",
    ),
    "targets/nvidia/count_whiles": ("ops/control_flow", "ops/elementwise/comparisons"),
    "targets/nvidia/flat_loops": ("ops/control_flow", "ops/elementwise/comparisons"),
    "targets/nvidia/guard_overlap": ("ops/memory/ir",),
    "targets/nvidia/nest_loops": ("ops/control_flow",),
    "targets/nvidia/walk_guards": (
        "ops/program/ir",
        "ops/control_flow",
        "ops/elementwise/ir",
    ),
    "targets/nvidia/partition": ("ops/roles", "ops/rings", "ops/channels", "ops/descriptors/ir"),
    "targets/nvidia/partition/check_maps": ("targets/nvidia/tma_ops",),
    "targets/nvidia/partition/copied_loads": ("ops/memory/ir", "ops/matmul/ir"),
    "targets/nvidia/partition/copies": ("ops/memory/ir", "ops/staging"),
    "targets/nvidia/partition/share_rings": ("ops/memory/ir",),
    "targets/nvidia/partition/chunk_stores": ("targets/nvidia/tma_ops",),
    "targets/nvidia/partition/extents": ("ops/memory/ir",),
    "targets/nvidia/partition/form": ("targets/nvidia/tma_ops",),
    "targets/nvidia/partition/join_barriers": ("ops/staging", "targets/nvidia/tma_ops"),
    "targets/nvidia/partition/gradients": ("ops/matmul/ir",),
    "targets/nvidia/partition/keep_order": ("targets/nvidia/tma_ops", "ops/memory/ir"),
    "targets/nvidia/partition/share_blocks": ("ops/program/ir",),
    "targets/nvidia/partition/smaller_maps": ("targets/nvidia/tma_ops",),
    "targets/nvidia/partition/landed": ("ops/staging",),
    "targets/nvidia/partition/read_slots": ("ops/staging",),
    "targets/nvidia/partition/stage_channels": ("ops/staging",),
    "targets/nvidia/partition/stage_meets": ("targets/nvidia/tma_ops",),
    "targets/nvidia/tma": ("targets/nvidia/tma_ops", "ops/descriptors/ir"),
    "targets/nvidia/tma/bulk_access": ("ops/memory/ir",),
    "targets/nvidia/tma/stage": ("ops/staging",),
}
"""The ops that a room or a pass is for, by where they are defined; it may ask for those."""
MOST = 52
"""How many there are: lower it with each that goes, never raise it."""


@cache
def facets() -> frozenset[str]:
    """Bases that declare a facet: classes of ops that are no ops themselves."""
    return frozenset(
        node.name
        for path in sorted(SOURCES.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.name.endswith("Op") and not _is_an_op(node)
    )


def _is_an_op(node: ast.ClassDef) -> bool:
    """Whether a class is declared as an op, or has an op's name."""
    decorators = [d.id for d in node.decorator_list if isinstance(d, ast.Name)]
    targets = [t for part in node.body if isinstance(part, ast.Assign) for t in part.targets]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return "irdl_op_definition" in decorators or "name" in names


def name_of(path: Path) -> str:
    """A source file as `SUBJECTS` names it."""
    return path.relative_to(SOURCES).with_suffix("").as_posix()


def defines_ops(path: Path) -> bool:
    """Whether a file is about single ops: their definition or their rules."""
    return any(part in _DEFINITIONS or part.endswith("_ops") for part in name_of(path).split("/"))


@cache
def homes() -> dict[str, set[str]]:
    """The files that define an op of a name: a CPU's `LoadOp` is another than that of tiles."""
    found: dict[str, set[str]] = {}
    for path in filter(defines_ops, sorted(SOURCES.rglob("*.py"))):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, set()).add(name_of(path))
    return found


def subjects_of(path: Path) -> set[str]:
    """Where the ops are defined that a file is for."""
    name = f"{name_of(path)}/"
    return {home for room, ops in SUBJECTS.items() if name.startswith(f"{room}/") for home in ops}


def questions(tree: ast.AST) -> Iterator[str]:
    """The op classes that a file asks for, once for each question; assertions ask nothing."""
    asserted = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
        for inner in ast.walk(node.test)
    }
    for node in ast.walk(tree):
        if id(node) in asserted or not isinstance(node, ast.Call) or len(node.args) != 2:
            continue
        if isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            names = [n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)]
            names += [n.attr for n in ast.walk(node.args[1]) if isinstance(n, ast.Attribute)]
            asked = [name for name in names if name.endswith("Op") and name not in facets()]
            if asked:
                yield asked[0]


def count_by_file() -> Counter[str]:
    """The questions of each file for ops that are not its subject."""
    found: Counter[str] = Counter()
    for path in sorted(SOURCES.rglob("*.py")):
        if not defines_ops(path):
            tree, own = ast.parse(path.read_text(encoding="utf-8")), subjects_of(path)
            asked = [name for name in questions(tree) if not own & homes().get(name, set())]
            found[name_of(path)] = len(asked)
    return +found


def test_fewer_and_fewer_places_ask_for_concrete_ops() -> None:
    found = count_by_file()
    total = found.total()
    most = "\n".join(f"{count:4} {name}" for name, count in found.most_common(12))
    assert total <= MOST, f"{total} questions for concrete ops, {MOST} before:\n{most}"
    assert total > MOST - 10, f"set MOST to {total}: the ratchet goes with what was won"


def test_what_counts_as_a_question() -> None:
    text = "isinstance(x, LoadOp | StoreOp)\nassert isinstance(x, LoadOp)\nisinstance(x, TileOp)"
    assert list(questions(ast.parse(text))) == ["LoadOp"]


def test_rooms_name_ops_that_there_are() -> None:
    defined = set().union(*homes().values())
    for room, subjects in SUBJECTS.items():
        assert (SOURCES / room).is_dir() or (SOURCES / f"{room}.py").is_file(), room
        assert set(subjects) <= defined, room
