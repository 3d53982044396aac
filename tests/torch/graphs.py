"""Small graphs for torch.compile: a function, its inputs, and how it is compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch.nn.functional as F

import torch

Inputs = Callable[[], tuple[torch.Tensor, ...]]


@dataclass(frozen=True)
class Graph:
    """One graph; `is_dynamic` compiles for any sizes, `is_trained` compares gradients too."""

    fn: Callable[..., object]
    inputs: Inputs
    is_dynamic: bool = False
    is_trained: bool = False

    @property
    def name(self) -> str:
        """The function's name."""
        return self.fn.__name__


GRAPHS: list[Graph] = []


def graph(
    inputs: Inputs, *, is_dynamic: bool = False, is_trained: bool = False
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Add the decorated function to `GRAPHS`."""

    def add(fn: Callable[..., object]) -> Callable[..., object]:
        GRAPHS.append(Graph(fn, inputs, is_dynamic, is_trained))
        return fn

    return add


def normal(*shape: int) -> torch.Tensor:
    """Random numbers of mean 0 and variance 1."""
    return torch.randn(*shape)


def indices(bound: int, *shape: int) -> torch.Tensor:
    """Random integers below `bound`."""
    return torch.randint(0, bound, shape)


# --- pointwise --------------------------------------------------------------------------------


@graph(lambda: (normal(1000), normal(1000)))
def pointwise(x, y):
    return torch.sin(x) + y * 2 - torch.exp(-x.abs())


@graph(lambda: (normal(64, 1), normal(1, 48)))
def broadcasting(x, y):
    return (x * y + 1).relu()


@graph(lambda: (normal(10, 30),))
def selection(x):
    return torch.where(x > 0, x, torch.full_like(x, -1.0)), x.masked_fill(x < 0, 0.5)


@graph(lambda: (normal(100).to(torch.bfloat16), normal(100).to(torch.bfloat16)))
def bfloat16(x, y):
    return (x * y).tanh() + y


@graph(lambda: (normal(100).half(),))
def float16(x):
    return torch.sigmoid(x) * x


@graph(lambda: (normal(500).double(),))
def float64(x):
    return torch.erf(x) + torch.log1p(x.abs()) + torch.atan2(x, x + 1)


@graph(lambda: (torch.randint(-100, 100, (500,)), torch.randint(1, 9, (500,))))
def integers(x, y):
    return x // y, x % y, x << 1, (x & y) ^ 3, torch.div(x, y, rounding_mode="trunc")


@graph(lambda: (torch.rand(1000) > 0.5, torch.rand(1000) > 0.5))
def booleans(x, y):
    return x & y, x | ~y, x.logical_xor(y), x.sum()


@graph(lambda: (normal(1000),))
def not_a_number(x):
    return torch.isnan(x / x.trunc()), x.clamp(-1, 1), (x / x.trunc()).nan_to_num(), x.frac()


@graph(lambda: (normal(1000), normal(1000)))
def mutation(x, y):
    x = x.clone()
    x.add_(y)
    x.mul_(2)
    return x


# --- views ------------------------------------------------------------------------------------


@graph(lambda: (normal(30, 40),))
def transposed_copy(x):
    return x.t().contiguous() + 1


@graph(lambda: (normal(30, 40), normal(30, 20)))
def concatenation(x, y):
    return torch.cat([x, y], 1), F.pad(x, (1, 2))


@graph(lambda: (normal(64, 64),))
def flips(x):
    return x.flip(0), x.roll(3, 1), x.tril()


@graph(lambda: (normal(4, 3, 16, 16),))
def pooling(x):
    return F.max_pool2d(x, 2), F.avg_pool2d(x, 2)


@graph(lambda: (normal(4, 3, 8, 8),))
def interpolation(x):
    return F.interpolate(x, scale_factor=2, mode="bilinear")


# --- reductions and norms ---------------------------------------------------------------------


@graph(lambda: (normal(33, 77),))
def sums(x):
    return x.sum(1), x.sum(0), x.mean()


@graph(lambda: (normal(32, 200),))
def extremes(x):
    return x.amax(1), x.argmax(1), x.argmin(0)


@graph(lambda: (normal(32, 200),))
def products(x):
    return (x * 0.1 + 1).prod(1), (x > 2).any(1), (x > -9).all(0)


@graph(lambda: (normal(8, 1024),))
def deviations(x):
    return x.std(1), x.norm(dim=1), x.var(0), torch.logsumexp(x, 1)


@graph(lambda: (normal(16, 300), normal(300), normal(300)))
def layer_norm(x, w, b):
    return F.layer_norm(x, (300,), w, b)


@graph(lambda: (normal(4, 8, 10, 10), normal(8), normal(8)))
def batch_norm(x, w, b):
    return F.batch_norm(x, None, None, w, b, training=True)


@graph(lambda: (normal(4, 8, 10, 10), normal(8), normal(8)))
def group_norm(x, w, b):
    return F.group_norm(x, 2, w, b)


@graph(lambda: (normal(16, 300), normal(300)))
def rms_norm(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w


@graph(lambda: (normal(64, 64), normal(64)), is_trained=True)
def trained_norm(x, w):
    return F.layer_norm(x, (64,), w).pow(2).sum()


@graph(lambda: (normal(32, 100),))
def softmax(x):
    return F.softmax(x, -1)


@graph(lambda: (normal(8, 5000),))
def online_softmax(x):
    return F.softmax(x, -1)


@graph(lambda: (normal(32, 100), indices(100, 32)))
def cross_entropy(x, t):
    return F.cross_entropy(x, t), F.log_softmax(x, -1)


# --- scans, sorting, searching ----------------------------------------------------------------


@graph(lambda: (normal(20, 100),))
def scans(x):
    return x.cumsum(1), x.cumsum(0), (x * 0.1 + 1).cumprod(1)


@graph(lambda: (normal(50_000),))
def split_scan(x):
    return x.cumsum(0)


@graph(lambda: (normal(20, 32),))
def sorting(x):
    return torch.sort(x, dim=1, stable=True)


@graph(lambda: (normal(64), torch.linspace(-2, 2, 9)))
def bucketize(x, b):
    return torch.bucketize(x, b)


# --- indexing and atomics ---------------------------------------------------------------------


@graph(lambda: (normal(50, 16), indices(50, 37)))
def embedding(w, i):
    return F.embedding(i, w), w[i] + 1, torch.index_select(w, 0, i)


@graph(lambda: (torch.zeros(50, 16), indices(50, 37), normal(37, 16)))
def index_add(z, i, v):
    return z.index_add(0, i, v)


@graph(lambda: (torch.zeros(50, 16), indices(50, 37, 16), normal(37, 16)))
def scatter_add(z, i, v):
    return z.scatter_add(0, i, v)


@graph(lambda: (torch.zeros(64), torch.randperm(64)[:32], normal(32)))
def index_put(z, i, v):
    return z.index_put((i,), v)


# --- products ---------------------------------------------------------------------------------


@graph(lambda: (normal(2, 4, 64, 32), normal(2, 4, 64, 32), normal(2, 4, 64, 32)))
def attention(q, k, v):
    return F.softmax((q @ k.transpose(-1, -2)) / 32**0.5, -1) @ v


@graph(lambda: (normal(2, 4, 64, 32), normal(2, 4, 64, 32), normal(2, 4, 64, 32)))
def causal_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@graph(lambda: (normal(64, 128), normal(128, 96), normal(96)))
def matmul_epilogue(a, b, c):
    return F.gelu(a @ b + c)


@graph(lambda: (normal(16, 32), normal(64, 32), normal(64)))
def linear(x, w, b):
    return F.silu(F.linear(x, w, b))


# --- sizes that are not known -----------------------------------------------------------------


@graph(lambda: (normal(100),), is_dynamic=True)
def dynamic_pointwise(x):
    return x * 2 + x.shape[0]


@graph(lambda: (normal(37, 53),), is_dynamic=True)
def dynamic_softmax(x):
    return F.softmax(x, -1).sum(0)


# --- functions of libdevice -------------------------------------------------------------------


@graph(lambda: (normal(500),))
def special_functions(x):
    y = torch.erfinv(torch.tanh(x) * 0.9) + torch.special.i0(x)
    return torch.lgamma(x.abs() + 1), y, torch.nextafter(x, x + 1), torch.expm1(x)


# --- sizes that suit no vector, and work that outweighs a launch ------------------------------


@graph(lambda: (normal(1000, 17), normal(17)))
def narrow_rows(x, w):
    return F.softmax(x * w, -1), x.amax(1)


@graph(lambda: (normal(4097),))
def prime_length(x):
    return F.gelu(x) * torch.sigmoid(x)


@graph(lambda: (normal(1_000_003), normal(1_000_003)))
def long_pointwise(x, y):
    return torch.addcmul(y, x, y, value=0.5).clamp(min=0)


@graph(lambda: (normal(300, 1030), normal(300, 515)))
def every_second_column(x, y):
    return x[:, ::2] * y + x[:, 1::2]


@graph(lambda: (normal(511, 257), normal(257, 511)))
def transposed_operand(x, y):
    return x.t() * 2 + y


@graph(lambda: (normal(100, 1000).to(torch.bfloat16), normal(1000).to(torch.bfloat16)))
def bfloat16_norm(x, w):
    return F.layer_norm(x, (1000,), w)


@graph(lambda: (normal(4097, 33).to(torch.bfloat16),))
def bfloat16_rows(x):
    return F.softmax(x, -1)


@graph(lambda: (normal(1000, 17), normal(4097, 33)))
def outer_sums(x, y):
    return x.sum(0), y.amax(0)


@graph(lambda: (normal(257, 129),))
def outer_softmax(x):
    return F.softmax(x, 0)


@graph(lambda: (normal(8, 65, 33),))
def middle_mean(x):
    return x.mean(1), x - x.mean(1, keepdim=True)


@graph(lambda: (normal(1001, 65), indices(1001, 777), indices(65, 777, 13)))
def gathered(x, rows, columns):
    return torch.gather(x[rows], 1, columns).sum(1)


@graph(lambda: (normal(16, 9, 31, 31), normal(9)))
def channel_bias(x, b):
    return F.relu(x + b[:, None, None]).mean((2, 3))


@graph(lambda: (normal(333, 1001), normal(1001)), is_dynamic=True)
def dynamic_norm(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w


@graph(lambda: (normal(1000, 17), normal(17, 1000)), is_dynamic=True)
def dynamic_transposed(x, y):
    return (x.t() + y).sum(0), x.t().contiguous()
