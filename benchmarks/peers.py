"""torch as a peer, where it is installed: benchmarks run without it and say so."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType

import numpy as np

from benchmarks.harness import Row, measure_pairs, show_seconds

MISSING = "torch missing"


def load_torch(threads: int) -> ModuleType | None:
    """torch with its thread count set, or None where it is not installed."""
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError:
        return None
    torch.set_num_threads(threads)
    return torch


def fresh_like(x: np.ndarray) -> np.ndarray:
    """A new array of float32, allocated by torch where that is loaded.

    NumPy asks the system for huge pages, which are cleared at their first use: a second pass
    over the result that a peer which allocates its result does not make.
    """
    torch = sys.modules.get("torch")
    return np.empty_like(x) if torch is None else torch.empty(x.shape).numpy()


def compare_with_torch(
    family: str,
    work: str,
    threads: int,
    bar: float | None,
    ours: Callable[[], np.ndarray],
    peer: Callable[[ModuleType], Callable[[], object]],
    tolerance: float = 1e-5,
) -> Row:
    """The row of a comparison with torch.

    `ours` returns its result; `peer` makes the call that is timed, whose result must agree.
    """
    torch = load_torch(threads)
    if torch is None:
        ours()
        return Row(family, work, threads, None, bar=bar, note=MISSING)
    their_call = peer(torch)
    theirs = np.asarray(their_call())
    np.testing.assert_allclose(
        ours(), theirs, rtol=tolerance, atol=tolerance * np.abs(theirs).max()
    )
    with torch.inference_mode():
        pairs = measure_pairs(ours, their_call)
    return Row(
        *(family, work, threads, pairs.ratio),
        bar=bar,
        ours=show_seconds(pairs.ours_seconds),
        peer=f"torch {show_seconds(pairs.peer_seconds)}",
        note=pairs.note,
    )


def compare_tensors(
    torch: ModuleType,
    row: tuple[str, str, int],
    bar: float,
    tolerance: float,
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    is_of_one_dtype: bool = True,
) -> Row:
    """The row (family, work, threads) of two calls that return tensors of torch which agree.

    `is_of_one_dtype` False lets ours return another dtype than the peer.
    """
    limits = {"rtol": tolerance, "atol": tolerance}
    with torch.inference_mode():
        torch.testing.assert_close(ours(), peer(), check_dtype=is_of_one_dtype, **limits)
        pairs = measure_pairs(ours, peer)
    return Row(
        *(*row, pairs.ratio),
        bar=bar,
        ours=show_seconds(pairs.ours_seconds),
        peer=f"torch {show_seconds(pairs.peer_seconds)}",
        note=pairs.note,
    )
