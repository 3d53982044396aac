"""What people compile with torch on a GPU, in a process of its own, with our kernels.

    python torch_models.py RESULTS [GROUP …]

RESULTS gets a line of JSON when a model starts and one when it ends: its group, its name, what
went wrong, and the seconds that it took. A model is right when it is as near to float64 as eager.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALIAS = ROOT / "src/tilewright/_alias"
sys.path[:0] = [str(ALIAS), str(ROOT), str(ROOT / "src")]

import torch._inductor.config as config  # noqa: E402
from torch.nn.attention.flex_attention import (  # noqa: E402
    create_block_mask,
    flex_attention,
)

import torch  # noqa: E402 - the path comes first

DEVICE = "cuda"
# How much further from float64 than eager a result may be, and the least that is allowed.
_FACTOR = 3.0
_LEAST = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 2e-4}
Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True)
class Model:
    """A function of tensors to compile, with what goes to `torch.compile` and to Inductor.

    `is_trained` compares the gradients of the sum of its results, weighted, as well.
    """

    group: str
    name: str
    function: Callable[..., object]
    inputs: Callable[[], Tensors]
    is_trained: bool = False
    is_dynamic: bool | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    def run(self) -> None:
        """Compile, run and compare. Raises: AssertionError."""
        torch._dynamo.reset()
        torch.manual_seed(0)
        inputs = list(self.inputs())
        with ExitStack() as stack:
            stack.enter_context(config.patch(known_options(self.options)))
            compiled = torch.compile(self.function, dynamic=self.is_dynamic)
            got = self.results(compiled, inputs)
        expected = self.results(self.function, inputs)
        exact = self.results(self.function, [widened(x) for x in inputs])
        torch.cuda.synchronize()
        for index, found in enumerate(zip(got, expected, exact, strict=True)):
            require_near(f"result {index}", *found)

    def results(self, function: Callable[..., object], inputs: Tensors) -> list[torch.Tensor]:
        """What a function gives, and its gradients where they are wanted."""
        wanted = [
            x.detach().clone().requires_grad_(self.is_trained and x.is_floating_point())
            for x in inputs
        ]
        out = function(*wanted)
        outs = list(out) if isinstance(out, tuple | list) else [out]
        if not self.is_trained:
            return outs
        generator = torch.Generator(DEVICE).manual_seed(1)
        loss = sum(
            (o * torch.randn(o.shape, generator=generator, device=DEVICE).to(o.dtype)).sum()
            for o in outs
        )
        gradients = torch.autograd.grad(loss, [x for x in wanted if x.requires_grad])
        return [*(o.detach() for o in outs), *gradients]


def known_options(options: Mapping[str, object]) -> dict[str, object]:
    """The options that this torch has; versions differ."""
    names = config.get_config_copy()
    return {name: value for name, value in options.items() if name in names}


def widened(x: torch.Tensor) -> torch.Tensor:
    """A tensor in float64."""
    return x.double() if x.is_floating_point() else x


def require_near(what: str, got: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor) -> None:
    """Assert that a result is as near to what is exact as eager's. Raises: AssertionError."""
    assert got.shape == expected.shape and got.dtype == expected.dtype, what
    if not got.is_floating_point():
        assert torch.equal(got, expected), f"{what} differs"
        return
    assert torch.equal(got.isnan(), expected.isnan()), f"{what}: NaN elsewhere"
    mine = (got.double() - exact).abs().nan_to_num().max().item()
    theirs = (expected.double() - exact).abs().nan_to_num().max().item()
    size = exact.abs().nan_to_num(posinf=0.0).max().item()
    allowed = _FACTOR * theirs + _LEAST.get(got.dtype, 1e-9) * max(size, 1e-6)
    assert mine <= allowed, f"{what}: off by {mine:.3g}, eager by {theirs:.3g}, of {size:.3g}"


def normal(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
    """Random numbers."""
    return (torch.randn(*shape, device=DEVICE) * scale).to(dtype)


# --- flex attention ---------------------------------------------------------------------------


def causal(b, h, q, k):
    """Each row sees the rows before it."""
    return q >= k


def sliding(b, h, q, k):
    """Each row sees the 100 rows before it."""
    return (q >= k) & (q - k <= 100)


def qkv(
    dtype: torch.dtype, rows: int = 512, depth: int = 64, heads: int = 4, kv_heads: int = 0
) -> Tensors:
    """Two batches of queries, keys and values."""
    others = kv_heads or heads
    shapes = ((2, heads, rows, depth), (2, others, rows, depth), (2, others, rows, depth))
    return [normal(*shape, dtype=dtype) for shape in shapes]


def masked(mask, rows: int, **options: bool) -> Callable[..., object]:
    """Attention under a mask, which is made once."""
    block_mask = create_block_mask(mask, None, None, rows, rows, device=DEVICE)

    def attend(q, k, v):
        return flex_attention(q, k, v, block_mask=block_mask, **options)

    return attend


def grouped_heads(q, k, v):
    """Several heads of queries to one of keys."""
    return flex_attention(q, k, v, enable_gqa=True)


def with_sums(q, k, v):
    """The log of each row's sum as well."""
    return flex_attention(q, k, v, return_lse=True)


def with_documents(q, k, v):
    """Rows of several documents of uneven length, each causal by itself."""
    rows = q.shape[2]
    ends = torch.tensor([37, 150, 151, 400, rows], device=q.device)
    document = torch.searchsorted(ends, torch.arange(rows, device=q.device), right=True)

    def mask(b, h, i, j):
        return (document[i] == document[j]) & (i >= j)

    return flex_attention(
        q, k, v, block_mask=create_block_mask(mask, None, None, rows, rows, device=q.device)
    )


def with_alibi(q, k, v, slopes):
    """Scores that fall with the distance, by a captured slope of each head."""

    def score(s, b, h, i, j):
        return s + slopes[h] * (j - i)

    return flex_attention(q, k, v, score_mod=score)


def with_bias(q, k, v, bias):
    """Scores with a captured table of relative places, which is trained as well."""

    def score(s, b, h, i, j):
        return s + bias[h, i - j + q.shape[2]]

    return flex_attention(q, k, v, score_mod=score)


def with_cap(q, k, v):
    """Scores under a soft cap, causal."""

    def score(s, b, h, i, j):
        return torch.where(i >= j, torch.tanh(s / 20) * 20, float("-inf"))

    return flex_attention(q, k, v, score_mod=score)


def decode_inputs(rows: int, dtype: torch.dtype = torch.float16) -> Tensors:
    """A few rows of queries and many keys."""
    q = normal(2, 8, rows, 64, dtype=dtype)
    return [q, normal(2, 2, 1000, 64, dtype=dtype), normal(2, 2, 1000, 64, dtype=dtype)]


def flex_models() -> list[Model]:
    """Forms of flex attention, forward and backward."""
    half, brain, single = torch.float16, torch.bfloat16, torch.float32
    flex = partial(Model, "flex", is_trained=True)
    return [
        *(flex(f"full-{t}", flex_attention, partial(qkv, t)) for t in (half, brain, single)),
        *(flex(f"causal-{t}", masked(causal, 512), partial(qkv, t)) for t in (half, brain, single)),
        flex("causal-odd-rows", masked(causal, 700), partial(qkv, half, 700)),
        flex("causal-depth-128", masked(causal, 512), partial(qkv, brain, 512, 128)),
        flex("causal-depth-256", masked(causal, 256), partial(qkv, brain, 256, 256, 2)),
        flex("causal-depth-80", masked(causal, 512), partial(qkv, half, 512, 80)),
        flex("sliding", masked(sliding, 1024), partial(qkv, brain, 1024)),
        flex("documents", with_documents, partial(qkv, half)),
        flex("grouped", masked(causal, 512, enable_gqa=True), partial(qkv, brain, 512, 64, 8, 2)),
        flex("alibi", with_alibi, lambda: [*qkv(half), normal(4, scale=0.1)]),
        flex("trained-bias", with_bias, lambda: [*qkv(single, 256), normal(4, 513)]),
        flex("soft-cap", with_cap, partial(qkv, brain)),
        flex("sums", with_sums, partial(qkv, half)),
        Model("flex", "decode-1", grouped_heads, partial(decode_inputs, 1)),
        Model("flex", "decode-7", grouped_heads, partial(decode_inputs, 7)),
        flex("dynamic", flex_attention, partial(qkv, half, 384), is_dynamic=True),
    ]


# --- matrix products --------------------------------------------------------------------------

_TRITON_ONLY = {
    "max_autotune": True,
    "max_autotune_gemm_backends": "TRITON",
    "test_configs.max_mm_configs": 5,
    "autotune_in_subproc": False,
}
_WITH_TMA = {**_TRITON_ONLY, "triton.enable_persistent_tma_matmul": True}


def epilogue(a, b, bias):
    """A product with what is fused behind it."""
    return torch.nn.functional.gelu(torch.mm(a, b) + bias)


def prologue(a, b):
    """A product of what is computed on the way."""
    return torch.mm((a.float() * 2).to(a.dtype), b)


def grouped(a, b, ends):
    """Products of groups of rows."""
    if a.dtype == torch.float64:
        first = [0, *ends.tolist()]
        parts = zip(first, first[1:], b, strict=False)
        return torch.cat([a[start:end] @ matrix.T for start, end, matrix in parts])
    return torch._grouped_mm(a, b.transpose(-2, -1), offs=ends)


def grouped_inputs() -> Tensors:
    """Four groups of rows of uneven length."""
    ends = torch.tensor([64, 80, 256, 384], device=DEVICE, dtype=torch.int32)
    brain = torch.bfloat16
    return [normal(384, 256, dtype=brain), normal(4, 128, 256, dtype=brain), ends]


def scaled(a, b, x, y):
    """A product of 8-bit numbers with a scale on each side."""
    wide = a.dtype == torch.float64
    if wide:
        return (a * x) @ (b * y).T
    kind = torch.float8_e4m3fn
    return torch._scaled_mm(a.to(kind), b.to(kind).T, x, y.T, out_dtype=torch.bfloat16)


def gemm_models() -> list[Model]:
    """Products by the templates alone."""
    half, brain, single = torch.float16, torch.bfloat16, torch.float32
    gemm = partial(Model, "gemm", options=_TRITON_ONLY)

    def pair(m: int, k: int, n: int, dtype: torch.dtype) -> Callable[[], Tensors]:
        return lambda: [normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)]

    def batch(dtype: torch.dtype) -> Tensors:
        return [normal(5, 96, 200, dtype=dtype), normal(5, 200, 130, dtype=dtype)]

    return [
        *(gemm(f"mm-{t}", torch.mm, pair(512, 384, 256, t)) for t in (half, brain, single)),
        gemm("mm-odd", torch.mm, pair(1000, 129, 777, half)),
        gemm("mm-thin", torch.mm, pair(16, 2048, 512, brain)),
        gemm("mm-tall-k", torch.mm, pair(64, 16384, 64, brain)),
        gemm(
            "mm-transposed",
            lambda a, b: a.T @ b.T,
            lambda: [normal(256, 512, dtype=half), normal(384, 256, dtype=half)],
        ),
        gemm("epilogue", epilogue, lambda: [*pair(512, 256, 384, brain)(), normal(384).to(brain)]),
        gemm("prologue", prologue, pair(256, 256, 256, half)),
        gemm("addmm", torch.addmm, lambda: [normal(300).to(half), *pair(200, 128, 300, half)()]),
        *(gemm(f"bmm-{t}", torch.bmm, partial(batch, t)) for t in (half, brain)),
        gemm(
            "baddbmm",
            torch.baddbmm,
            lambda: [normal(5, 96, 130, dtype=half), *batch(half)],
        ),
        gemm("mm-trained", torch.mm, pair(256, 128, 192, brain), is_trained=True),
        gemm("mm-dynamic", torch.mm, pair(300, 256, 128, half), is_dynamic=True),
        gemm("mm-tma", torch.mm, pair(1024, 512, 768, brain), options=_WITH_TMA),
        gemm(
            "epilogue-tma",
            epilogue,
            lambda: [*pair(1024, 512, 768, brain)(), normal(768).to(brain)],
            options=_WITH_TMA,
        ),
        gemm("grouped", grouped, grouped_inputs, options=_WITH_TMA),
        gemm(
            "scaled",
            scaled,
            lambda: [
                normal(256, 512),
                normal(384, 512),
                normal(256, 1).abs(),
                normal(384, 1).abs(),
            ],
        ),
        gemm(
            "int8",
            lambda a, b: torch._int_mm(a, b),
            lambda: [
                torch.randint(-9, 9, (256, 128), device=DEVICE, dtype=torch.int8),
                torch.randint(-9, 9, (128, 192), device=DEVICE, dtype=torch.int8),
            ],
        ),
        gemm(
            "convolution",
            torch.conv2d,
            lambda: [normal(4, 32, 20, 20, dtype=half), normal(48, 32, 3, 3, dtype=half)],
            options={**_TRITON_ONLY, "max_autotune_conv_backends": "TRITON"},
        ),
    ]


# --- reductions -------------------------------------------------------------------------------


def statistics(x):
    """Several reductions of one row."""
    return x.sum(-1), x.amax(-1), x.var(-1), x.argmin(-1), x.mean(-1)


def normalized(x):
    """A softmax and a layer norm."""
    return torch.softmax(x, -1), torch.nn.functional.layer_norm(x, x.shape[-1:])


def to_scalars(x):
    """Reductions of everything."""
    return x.sum(), x.max(), x.min(), x.argmax(), x.std(), (x > 0).any(), x.prod()


def reduction_models() -> list[Model]:
    """Reductions in the forms that Inductor has: persistent, looped, split, cooperative."""
    forms: dict[str, Mapping[str, object]] = {
        "default": {},
        "cooperative": {"triton.force_cooperative_reductions": True},
        "looped": {"triton.persistent_reductions": False},
        "several": {"triton.multi_kernel": 1},
        "unsplit": {"split_reductions": False},
    }
    shapes: dict[str, tuple[int, ...]] = {
        "long": (3, 1 << 18),
        "odd": (7, 50_001),
        "short": (1000, 200),
        "column": (20_000, 3),
    }
    found: list[Model] = []
    for form, options in forms.items():
        reduction = partial(Model, "reductions", options=options)
        for shape, extents in shapes.items():
            inputs = partial(lambda e: [normal(*e)], extents)
            found += [
                reduction(f"statistics-{form}-{shape}", statistics, inputs),
                reduction(f"normalized-{form}-{shape}", normalized, inputs),
            ]
        found.append(reduction(f"scalars-{form}", to_scalars, lambda: [normal(1 << 20)]))
        columns = partial(lambda e: [normal(*e)], (1 << 16, 5))
        found.append(reduction(f"columns-{form}", lambda x: (x.sum(0), x.amax(0)), columns))
    return found


# --- training ---------------------------------------------------------------------------------


class Block(torch.nn.Module):
    """A transformer block."""

    def __init__(self, width: int, heads: int, is_flexible: bool) -> None:
        super().__init__()
        self.heads, self.is_flexible = heads, is_flexible
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.RMSNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor, mask: object) -> torch.Tensor:
        """Attention and a perceptron, each beside a way around it."""
        batch, rows, width = x.shape
        parts = self.qkv(self.first(x)).view(batch, rows, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        if self.is_flexible:
            y = flex_attention(q, k, v, block_mask=mask)
        else:
            scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
            hidden = torch.ones(rows, rows, device=x.device, dtype=torch.bool).triu(1)
            y = torch.softmax(scores.masked_fill(hidden, float("-inf")), -1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(batch, rows, width))
        return x + self.mlp(self.second(x))


class Net(torch.nn.Module):
    """Tokens to logits by two blocks."""

    def __init__(self, is_flexible: bool) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(256, 128)
        self.blocks = torch.nn.ModuleList(Block(128, 2, is_flexible) for _ in range(2))
        self.head = torch.nn.Linear(128, 256)

    def forward(self, tokens: torch.Tensor, mask: object) -> torch.Tensor:
        """The loss of the next token."""
        x = self.embedding(tokens[:, :-1])
        for block in self.blocks:
            x = block(x, mask)
        logits = self.head(x).float()
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


@dataclass(frozen=True)
class Training:
    """Five steps of training, compiled and eager: the losses and the weights agree."""

    group: str
    name: str
    is_flexible: bool = False
    is_autocast: bool = False
    mode: str | None = None

    def run(self) -> None:
        """Train twice and compare. Raises: AssertionError."""
        torch._dynamo.reset()
        compiled, eager = self.train(is_compiled=True), self.train(is_compiled=False)
        tolerance = 3e-2 if self.is_autocast else 2e-3
        torch.testing.assert_close(compiled, eager, rtol=tolerance, atol=tolerance)
        assert compiled[-1] < compiled[0]

    def train(self, *, is_compiled: bool) -> list[float]:
        """The loss of each step."""
        torch.manual_seed(0)
        net = Net(self.is_flexible).to(DEVICE)
        rows = 128
        mask = create_block_mask(causal, None, None, rows, rows, device=DEVICE)
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)

        def update() -> None:
            optimizer.step()

        forward = torch.compile(net, mode=self.mode) if is_compiled else net
        step = torch.compile(update) if is_compiled else update
        tokens = torch.randint(0, 256, (4, rows + 1), device=DEVICE)
        losses: list[float] = []
        for _ in range(5):
            with torch.autocast(DEVICE, torch.bfloat16, enabled=self.is_autocast):
                loss = forward(tokens, mask)
            optimizer.zero_grad()
            loss.backward()
            step()
            losses.append(loss.item())
        return losses


def training_models() -> list[Training]:
    """A small transformer in training: forward, backward, and the optimizer's step."""
    training = partial(Training, "training")
    return [
        training("plain"),
        training("plain-autocast", is_autocast=True),
        training("flexible-autocast", is_flexible=True, is_autocast=True),
        training("graphs", mode="reduce-overhead"),
    ]


GROUPS: dict[str, Callable[[], Sequence[Model | Training]]] = {
    "flex": flex_models,
    "gemm": gemm_models,
    "reductions": reduction_models,
    "training": training_models,
}


def main(results: Path, groups: Sequence[str]) -> None:
    """Run the models of some groups; stop where the device can no longer be used."""
    assert "_alias" in str(importlib.import_module("triton").__file__)
    config.compile_threads = 1
    config.fx_graph_cache = False
    with results.open("a", encoding="utf-8") as file:
        for group in groups or GROUPS:
            for model in GROUPS[group]():
                note = {"group": group, "name": model.name}
                print(json.dumps(note), file=file, flush=True)
                started = time.perf_counter()
                problem = problem_of(model)
                note |= {"problem": problem, "seconds": round(time.perf_counter() - started, 1)}
                print(json.dumps(note), file=file, flush=True)
                if "CUDA error" in problem or "DeviceFault" in problem:
                    return


def problem_of(model: Model | Training) -> str:
    """What is wrong with a model; nothing when it is right."""
    try:
        model.run()
        torch.cuda.synchronize()
    except Exception:
        return traceback.format_exc()[-3000:]
    return ""


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
