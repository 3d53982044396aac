"""The kernels of the network, in the Triton language.

Every array is row-major. Widths that are no power of two (384) are covered by the next power of
two and a mask, which is the idiom of the language.
"""

from __future__ import annotations

import tilewright
import tilewright.language as tl


@tilewright.jit
def normalize(x, columns, width, gamma_ptr, beta_ptr, EPSILON: tl.constexpr):
    """One row with mean 0 and variance 1, times gamma, plus beta; called by other kernels.

    `x` holds zeros where `columns >= width`.
    """
    mask = columns < width
    mean = tl.sum(x, axis=0) / width
    centered = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centered * centered, axis=0) / width
    gamma = tl.load(gamma_ptr + columns, mask=mask, other=0.0)
    beta = tl.load(beta_ptr + columns, mask=mask, other=0.0)
    return centered * tl.rsqrt(variance + EPSILON) * gamma + beta


@tilewright.jit
def embed_tokens(
    ids_ptr,
    word_ptr,
    position_ptr,
    token_type_ptr,
    gamma_ptr,
    beta_ptr,
    out_ptr,
    tokens,
    width,
    EPSILON: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Gather and sum the three embeddings of one token, then layer norm; one program a token."""
    row = tl.program_id(0)
    word = tl.load(ids_ptr + row)
    position = row % tokens
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    x = tl.load(word_ptr + word * width + columns, mask=mask, other=0.0)
    x += tl.load(position_ptr + position * width + columns, mask=mask, other=0.0)
    x += tl.load(token_type_ptr + columns, mask=mask, other=0.0)
    y = normalize(x, columns, width, gamma_ptr, beta_ptr, EPSILON)
    tl.store(out_ptr + row * width + columns, y, mask=mask)


@tilewright.jit
def add_layer_norm(
    x_ptr,
    residual_ptr,
    gamma_ptr,
    beta_ptr,
    out_ptr,
    width,
    EPSILON: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Layer norm of `x + residual`; one program a row."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    x = tl.load(x_ptr + row * width + columns, mask=mask, other=0.0)
    x += tl.load(residual_ptr + row * width + columns, mask=mask, other=0.0)
    y = normalize(x, columns, width, gamma_ptr, beta_ptr, EPSILON)
    tl.store(out_ptr + row * width + columns, y, mask=mask)


@tilewright.jit
def gelu(x):
    """The exact Gaussian error linear unit; called by `matmul`."""
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@tilewright.jit
def matmul(
    a_ptr,
    b_ptr,
    bias_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_bk,
    stride_bn,
    stride_cm,
    GELU: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """`c = a @ b`, plus a bias unless `bias_ptr` is None, then GELU on request.

    `a: [M, K]`, `b: [K, N]` with any strides (a transposed view costs nothing), `c: [M, N]`.
    `a` is rounded to the dtype of `b`; sums are float32.
    """
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + steps[None, :]
    b_ptrs = b_ptr + steps[:, None] * stride_bk + columns[None, :] * stride_bn
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        inside = steps < K - k
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & inside[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=inside[:, None] & (columns[None, :] < N), other=0.0)
        acc = tl.dot(a.to(b.dtype), b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + columns, mask=columns < N, other=0.0)[None, :]
    if GELU:
        acc = gelu(acc)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :]
    tl.store(c_ptrs, acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


@tilewright.jit
def attention(
    qkv_ptr,
    lengths_ptr,
    out_ptr,
    tokens,
    stride_qkv,
    stride_out,
    scale,
    HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Softmax(scale * q @ k.T) @ v of one head for `BLOCK_M` queries, in one pass over the keys.

    `qkv: [sentences * tokens, 3 * HEADS * HEAD_DIM]`. Keys at or beyond the sentence's length
    are padding and take no part. The softmax is online: a running maximum and sum rescale the
    accumulator, so no row of scores is ever stored.
    """
    sentence = tl.program_id(1) // HEADS
    head = tl.program_id(1) % HEADS
    length = tl.load(lengths_ptr + sentence)
    dims = tl.arange(0, HEAD_DIM)
    q_ptr = qkv_ptr + sentence * tokens * stride_qkv + head * HEAD_DIM
    k_ptr = q_ptr + HEADS * HEAD_DIM
    v_ptr = k_ptr + HEADS * HEAD_DIM

    queries = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = queries[:, None] < tokens
    q = tl.load(q_ptr + queries[:, None] * stride_qkv + dims[None, :], mask=inside, other=0.0)
    highest = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    for start in range(0, length, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        offsets = keys[:, None] * stride_qkv + dims[None, :]
        k = tl.load(k_ptr + offsets, mask=keys[:, None] < length, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(keys[None, :] < length, scores, float("-inf"))
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        rescale = tl.exp(highest - new_highest)
        weights = tl.exp(scores - new_highest[:, None])
        total = total * rescale + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + offsets, mask=keys[:, None] < length, other=0.0)
        acc = tl.dot(weights, v, acc * rescale[:, None], input_precision="ieee")
        highest = new_highest
    out_ptrs = out_ptr + (sentence * tokens + queries[:, None]) * stride_out + head * HEAD_DIM
    tl.store(out_ptrs + dims[None, :], acc / total[:, None], mask=inside)


@tilewright.jit
def mean_pool(
    x_ptr,
    lengths_ptr,
    out_ptr,
    tokens,
    width,
    TOKENS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The mean over a sentence's tokens, padding left out; one program a sentence and block."""
    sentence = tl.program_id(1)
    length = tl.load(lengths_ptr + sentence)
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = x_ptr + sentence * tokens * width + columns[None, :]
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, length, TOKENS):
        rows = start + tl.arange(0, TOKENS)
        mask = (rows[:, None] < length) & (columns[None, :] < width)
        total += tl.sum(tl.load(first + rows[:, None] * width, mask=mask, other=0.0), axis=0)
    tl.store(out_ptr + sentence * width + columns, total / length, mask=columns < width)


@tilewright.jit
def l2_normalize(x_ptr, out_ptr, width, BLOCK: tl.constexpr):
    """A row divided by its Euclidean norm; one program a row."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    x = tl.load(x_ptr + row * width + columns, mask=mask, other=0.0)
    norm = tl.sqrt(tl.sum(x * x, axis=0))
    tl.store(out_ptr + row * width + columns, x / tl.maximum(norm, 1e-12), mask=mask)


@tilewright.jit
def copy(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    """`out = x`; it measures what bandwidth the machine has."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)
