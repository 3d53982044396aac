"""Large products of 8-bit floats, scaled as one or by rows and columns, under each schedule.

The peer is torch's scaled product.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.gpu_schedules import FLOAT8, FLOAT8_SCALED, PRODUCTS, compare, product_work
from benchmarks.harness import Row

FAMILY = "gpu bytes"


def rows() -> Iterator[Row]:
    """A size with both scales, and one that no block divides."""
    for operands in (FLOAT8, FLOAT8_SCALED):
        for size in (PRODUCTS[0], (4000, 5008, 3008)):
            yield from compare(product_work(size, operands), FAMILY)
