"""The graphs of `tests/torch/graphs.py` through torch.compile on a GPU, in a process of its own.

    python inductor_graphs.py RESULTS

`triton` must be Tilewright here while other tests of the run compare with Triton itself. RESULTS
gets a line of JSON for each graph: its name, and what went wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALIAS = ROOT / "src/tilewright/_alias"
sys.path[:0] = [str(ALIAS), str(ROOT), str(ROOT / "src")]

import torch._inductor.config as config  # noqa: E402

import torch  # noqa: E402 - the path comes first
from tests.torch.graphs import GRAPHS, Graph  # noqa: E402

_TOLERANCES = {torch.bfloat16: 2e-2, torch.float16: 2e-3}


def main(results: Path) -> None:
    """Run every graph; stop where the device can no longer be used."""
    assert "_alias" in __import__("triton").__file__
    config.compile_threads = 1
    with results.open("w", encoding="utf-8") as file:
        for graph in GRAPHS:
            problem = run(graph)
            print(json.dumps({"name": graph.name, "problem": problem}), file=file, flush=True)
            if "CUDA error" in problem or "DeviceFault" in problem:
                return


def run(graph: Graph) -> str:
    """What is wrong with a graph on the GPU; nothing when it gives what eager gives."""
    torch.manual_seed(0)
    inputs = [x.cuda() for x in graph.inputs()]
    compiled = torch.compile(graph.fn, dynamic=graph.is_dynamic or None, fullgraph=True)
    try:
        if graph.is_trained:
            check(with_gradients(compiled, inputs), with_gradients(graph.fn, inputs))
        else:
            expected = graph.fn(*(x.clone() for x in inputs))
            check(compiled(*(x.clone() for x in inputs)), expected)
        torch.cuda.synchronize()
    except (RuntimeError, AssertionError, torch._dynamo.exc.TorchDynamoException) as error:
        return f"{type(error).__name__}: {error}"[:2000]
    return ""


def with_gradients(fn, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The loss and its gradients."""
    wanted = [x.clone().requires_grad_() for x in inputs]
    loss = fn(*wanted)
    return (loss, *torch.autograd.grad(loss, wanted))


def check(got: object, expected: object) -> None:
    """Equal up to rounding; NaN in the same places. Raises: AssertionError."""
    if isinstance(expected, tuple | list):
        for one, other in zip(got, expected, strict=True):
            check(one, other)
        return
    tolerance = _TOLERANCES.get(expected.dtype, 1e-3)
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
