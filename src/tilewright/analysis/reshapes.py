"""Which dimensions of a reshape hold the same elements, in row-major order."""

from __future__ import annotations

from math import prod

Shape = tuple[int, ...]
Groups = list[tuple[list[int], list[int]]]
SplitGroups = list[tuple[int, list[tuple[int, int]]]]


def matching_groups(source: Shape, target: Shape) -> Groups:
    """The least groups of consecutive dimensions of equal size; dimensions of 1 stand apart."""
    before = [d for d, extent in enumerate(source) if extent > 1]
    after = [d for d, extent in enumerate(target) if extent > 1]
    groups: Groups = []
    while before:
        left, right = [before.pop(0)], [after.pop(0)]
        while (a := prod(source[d] for d in left)) != (b := prod(target[d] for d in right)):
            if a < b:
                left.append(before.pop(0))
            else:
                right.append(after.pop(0))
        groups.append((left, right))
    return groups


def split_groups(source: Shape, target: Shape) -> SplitGroups | None:
    """How each source dimension of a reshape splits into target dimensions with their scale.

    Entry (d, [(t0, s0), …]): source index d = Σ target index t × s. None where the reshape
    merges source dimensions.
    """
    groups: SplitGroups = []
    for befores, afters in matching_groups(source, target):
        if len(befores) > 1:
            return None
        scales: list[tuple[int, int]] = []
        scale = source[befores[0]]
        for dim in afters:
            scale //= target[dim]
            scales.append((dim, scale))
        groups.append((befores[0], scales))
    return groups
