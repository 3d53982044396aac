"""Throughput of the vector math functions beside NumPy, on 2048 elements in the cache.

Run as `python -m benchmarks.cpu_math [float|double] [function…]`.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np

from tests.asm.lane_harness import host_features, loop_module, signed
from tilewright.codegen.link import load_object
from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.math import MathEmitter
from tilewright.codegen.math.emitter import vector_bits
from tilewright.codegen.optimize import compile_module

NUM_ELEMS = 2048
NUM_ROUNDS = 50
NUM_PAIRS = 31
PEERS: dict[str, Callable[..., np.ndarray]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "rint": np.rint,
    "atan2": np.arctan2,
    "pow": np.power,
}
# No function of NumPy: measured alone.
ALONE = ("erf", "rsqrt", "sigmoid")
_REPEAT = """define void @repeat(ptr %out, i64 %n, ptr %a, ptr %b, i64 %rounds) nounwind {
entry:
  br label %loop
loop:
  %round = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void asm sideeffect "", "~{memory}"()
  call void @kernel(ptr %out, i64 %n, ARGUMENTS)
  %next = add i64 %round, 1
  %more = icmp ult i64 %next, %rounds
  br i1 %more, label %loop, label %done
done:
  ret void
}"""


def compile_function(name: str, element: str, unroll: int) -> Callable[..., None]:
    """A function that applies `name` to whole arrays a number of times."""
    features = host_features()
    lanes = vector_bits(features) // (32 if element == "float" else 64)

    def body(fn: FunctionBuilder, values: Sequence[str]) -> str:
        return MathEmitter(fn.module, features).emit(fn, name, element, lanes, values)

    num_operands = 2 if name in ("atan2", "pow") else 1
    module = loop_module(lanes, [element] * num_operands, element, body, unroll)
    arguments = ", ".join(["ptr %a", "ptr %b"][:num_operands])
    module.add_function("repeat", _REPEAT.replace("ARGUMENTS", arguments))
    code = load_object(compile_module(module.text(), "", signed(features)).object, "repeat")
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    entry = ctypes.CFUNCTYPE(None, pointer, integer, pointer, pointer, integer)(code.address)

    def run(
        out: np.ndarray, a: np.ndarray, b: np.ndarray, rounds: int, _code: object = code
    ) -> None:
        entry(out.ctypes.data, len(out), a.ctypes.data, b.ctypes.data, rounds)

    return run


def seconds_of(action: Callable[[], object]) -> float:
    """The wall time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(name: str, element: str, unroll: int) -> tuple[float, float | None]:
    """The elements per second of `name`, and how many times as fast as NumPy that is."""
    rng = np.random.default_rng(0)
    dtype = np.float32 if element == "float" else np.float64
    low, high = (0.01, 0.99) if name in ("asin", "acos", "log1p") else (0.1, 20.0)
    a, b = (rng.uniform(low, high, NUM_ELEMS).astype(dtype) for _ in range(2))
    out, peer_out = np.empty_like(a), np.empty_like(a)
    run, peer = compile_function(name, element, unroll), PEERS.get(name)
    operands = (a, b) if name in ("atan2", "pow") else (a,)

    def repeat_peer() -> None:
        assert peer is not None
        for _ in range(NUM_ROUNDS):
            peer(*operands, out=peer_out)

    times, ratios = [], []
    for _ in range(NUM_PAIRS + 1):
        times.append(seconds_of(lambda: run(out, a, b, NUM_ROUNDS)))
        if peer is not None:
            ratios.append(seconds_of(repeat_peer) / times[-1])
    rate = NUM_ELEMS * NUM_ROUNDS / statistics.median(times[1:])
    return rate, statistics.median(ratios[1:]) if ratios else None


def main() -> None:
    """Print one line for each function."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("element", nargs="?", choices=("float", "double"), default="float")
    parser.add_argument("functions", nargs="*", default=[])
    parser.add_argument("--unroll", type=int, default=4, help="vectors in the loop's body")
    options = parser.parse_args()
    for name in options.functions or (*PEERS, *ALONE):
        rate, ratio = measure(name, options.element, options.unroll)
        beside = "" if ratio is None else f"{ratio:6.2f} x NumPy"
        print(f"{name:8} {options.element:6} {rate / 1e9:6.2f} G elements/s {beside}", flush=True)


if __name__ == "__main__":
    main()
