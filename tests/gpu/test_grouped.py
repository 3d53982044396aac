"""Products of a group in one launch, in roles, as one program, and by pointers, on a real GPU."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import pytest

from tests.unit.grouped_programs import Shape, by_descriptors, by_pointers

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

GROUPS: tuple[tuple[Shape, ...], ...] = (
    ((300, 200, 136),),
    ((130, 72, 256), (1, 8, 64), (257, 520, 0), (300, 264, 1032)),
    tuple((40 + 96 * (i % 5), 64 + 136 * (i % 3), 64 * (i % 6)) for i in range(16)),
)
WAYS = {
    "one group": {"num_consumer_groups": 1, "M": 64},
    "two groups": {"num_consumer_groups": 2},
    "three groups": {"num_consumer_groups": 3, "M": 192},
    "programs": {"num_consumer_groups": 0, "num_stages": 4},
}


def launch(torch: ModuleType, kernel, shapes: Sequence[Shape], programs: int, **options: int):
    """Run a kernel three times over; the products, and those of float64."""
    halves = {"device": "cuda", "dtype": torch.float16}
    a = [torch.randint(-3, 4, (m, k), **halves) for m, _, k in shapes]
    b = [torch.randint(-3, 4, (n, k), **halves) for _, n, k in shapes]
    c = [torch.empty(m, n, **halves) for m, n, _ in shapes]
    addresses = [torch.tensor([x.data_ptr() for x in xs], device="cuda") for xs in (a, b, c)]
    rows = [(k, k, n) for _, n, k in shapes]
    numbers = [torch.tensor(v, device="cuda", dtype=torch.int32) for v in (shapes, rows)]
    tiles = {"M": 128, "N": 128, "K": 64, **options}
    for _ in range(3):
        for product in c:
            product.fill_(float("nan"))
        kernel[(programs,)](*addresses, *numbers, len(shapes), P=programs, **tiles)
    return [(z, (x.double() @ y.double().T).half()) for x, y, z in zip(a, b, c, strict=True)]


@pytest.mark.parametrize("programs", [1, 7, 132])
@pytest.mark.parametrize("shapes", GROUPS, ids=["1", "4", "16"])
@pytest.mark.parametrize("way", WAYS)
def test_a_group_by_descriptors(way: str, shapes: Sequence[Shape], programs: int) -> None:
    torch = pytest.importorskip("torch")
    for found, expected in launch(torch, by_descriptors, shapes, programs, **WAYS[way]):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("shapes", GROUPS, ids=["1", "4", "16"])
def test_a_group_by_pointers(shapes: Sequence[Shape]) -> None:
    torch = pytest.importorskip("torch")
    for found, expected in launch(torch, by_pointers, shapes, 132, num_stages=3):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("groups", [1, 2])
def test_each_product_is_the_left_side_of_the_next_one(groups: int) -> None:
    """One program computes them in order; its loads wait for what it has stored."""
    torch = pytest.importorskip("torch")
    size, count = 256, 6
    chain = [torch.randint(-3, 4, (size, size), device="cuda", dtype=torch.float16)]
    chain += [torch.full_like(chain[0], float("nan")) for _ in range(count)]
    turns = [torch.eye(size, device="cuda").half()[torch.randperm(size)] for _ in range(count)]
    parts = (chain[:-1], turns, chain[1:])
    addresses = [torch.tensor([x.data_ptr() for x in xs], device="cuda") for xs in parts]
    numbers = torch.full((count, 3), size, device="cuda", dtype=torch.int32)
    tiles = {"M": 64 * groups, "N": 256, "K": 64}
    by_descriptors[(1,)](
        *addresses, numbers, numbers, count, P=1, **tiles, num_consumer_groups=groups
    )
    for before, turn, after in zip(*parts, strict=True):
        assert torch.equal(after, (before.double() @ turn.double().T).half())
