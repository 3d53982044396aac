"""The operations of the network as launches of the kernels."""

from __future__ import annotations

import math

import numpy as np

import tilewright
from examples.demo import kernels
from examples.demo.model import EPSILON, HEAD_DIM, HEADS, Batch, Embeddings, Floats, Linear, Norm

# A block's panels of `a` and `b` fit the second-level cache of any current core.
MATMUL_BLOCKS = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
SMALL_MATMUL_BLOCKS = {"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 64}
ATTENTION_BLOCKS = {"BLOCK_M": 32, "BLOCK_N": 32}
POOL_BLOCKS = {"TOKENS": 16, "BLOCK": 128}


class KernelOperations:
    """`Operations` by Tilewright kernels on NumPy arrays; NumPy itself only allocates."""

    def embed(self, tables: Embeddings, batch: Batch) -> Floats:
        """One launch, one program a token."""
        width = tables.word.shape[1]
        out = np.empty((batch.ids.size, width), dtype=np.float32)
        kernels.embed_tokens[(batch.ids.size,)](
            batch.ids,
            tables.word,
            tables.position,
            tables.token_type,
            tables.norm.gamma,
            tables.norm.beta,
            out,
            batch.ids.shape[1],
            width,
            EPSILON=EPSILON,
            BLOCK=tilewright.next_power_of_2(width),
        )
        return out

    def linear(self, x: Floats, layer: Linear, gelu: bool = False) -> Floats:
        """Matrix product with bias and optional GELU in its epilogue."""
        return matmul(x, layer.weight, layer.bias, gelu, MATMUL_BLOCKS)

    def attention(self, qkv: Floats, batch: Batch) -> Floats:
        """Fused attention, one program a head and block of queries."""
        sentences, tokens = batch.ids.shape
        width = HEADS * HEAD_DIM
        out = np.empty((qkv.shape[0], width), dtype=np.float32)
        kernels.attention[
            lambda meta: (tilewright.cdiv(tokens, meta["BLOCK_M"]), sentences * HEADS)
        ](
            qkv,
            batch.lengths,
            out,
            tokens,
            3 * width,
            width,
            1.0 / math.sqrt(HEAD_DIM),
            HEADS=HEADS,
            HEAD_DIM=HEAD_DIM,
            **ATTENTION_BLOCKS,
        )
        return out

    def add_norm(self, x: Floats, residual: Floats, norm: Norm) -> Floats:
        """Residual and layer norm in one pass, one program a row."""
        rows, width = x.shape
        out = np.empty_like(x)
        kernels.add_layer_norm[(rows,)](
            x,
            residual,
            norm.gamma,
            norm.beta,
            out,
            width,
            EPSILON=EPSILON,
            BLOCK=tilewright.next_power_of_2(width),
        )
        return out

    def mean_pool(self, x: Floats, batch: Batch) -> Floats:
        """Masked mean, one program a sentence and block of columns."""
        sentences, tokens = batch.ids.shape
        width = x.shape[1]
        out = np.empty((sentences, width), dtype=np.float32)
        kernels.mean_pool[lambda meta: (tilewright.cdiv(width, meta["BLOCK"]), sentences)](
            x, batch.lengths, out, tokens, width, **POOL_BLOCKS
        )
        return out

    def l2_normalize(self, x: Floats) -> Floats:
        """One program a row."""
        rows, width = x.shape
        out = np.empty_like(x)
        kernels.l2_normalize[(rows,)](x, out, width, BLOCK=tilewright.next_power_of_2(width))
        return out

    def similarity(self, queries: Floats, sentences: Floats) -> Floats:
        """The same matmul kernel on a transposed view, without bias."""
        return matmul(queries, sentences.T, None, False, SMALL_MATMUL_BLOCKS)


def matmul(a: Floats, b: Floats, bias: Floats | None, gelu: bool, blocks: dict[str, int]) -> Floats:
    """`a @ b` with its epilogue; `b` may be a transposed view, strides tell the kernel."""
    (m, k), n = a.shape, b.shape[1]
    out = np.empty((m, n), dtype=np.float32)
    stride_bk, stride_bn = (stride // b.itemsize for stride in b.strides)
    kernels.matmul[
        lambda meta: (tilewright.cdiv(n, meta["BLOCK_N"]), tilewright.cdiv(m, meta["BLOCK_M"]))
    ](a, b, bias, out, m, n, k, k, stride_bk, stride_bn, n, GELU=gelu, **blocks)
    return out
