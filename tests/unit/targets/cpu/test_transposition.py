"""Squares of vectors: the shuffles that transpose them, done on arrays."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.targets.cpu.transposition import transposed


def shuffled(low: np.ndarray, high: np.ndarray, pattern: list[int]) -> np.ndarray:
    return np.concatenate((low, high))[pattern]


@pytest.mark.parametrize(
    ("lanes", "part"), [(1, 1), (2, 2), (4, 4), (8, 4), (16, 4), (4, 2), (8, 8), (16, 16), (16, 8)]
)
def test_the_columns_of_a_square(lanes: int, part: int) -> None:
    square = np.arange(lanes * lanes).reshape(lanes, lanes)
    columns = transposed(lanes, part, list(square), shuffled)
    np.testing.assert_array_equal(np.stack(columns), square.T)


def test_no_pattern_crosses_parts_twice() -> None:
    patterns: list[list[int]] = []

    def noted(low: int, high: int, pattern: list[int]) -> int:
        patterns.append(pattern)
        return low

    transposed(8, 4, list(range(8)), noted)
    assert len(patterns) == 3 * 8
    unpacked, moved = patterns[:16], patterns[16:]
    assert all({i % 8 // 4 for i in each[:4]} == {0} for each in unpacked)
    assert all(each[k + 1] == each[k] + 1 for each in moved for k in (0, 1, 2, 4, 5, 6))
