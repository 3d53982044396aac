"""One use of every public name of the language: what the table of names is derived from.

An example is the body of a kernel that has, before it,

    i = tl.arange(0, 16)                          x, y: tile<16xfp32> of whole numbers
    m: tile<16x16xfp32>   h: m as fp16            n: tile<16xint32> of 0 to 15   b = n > 7
    s: int32 at run time                          x_ptr, n_ptr, wide_ptr (int64), byte_ptr (uint8)
    counts: 64 int32 elements of this program     desc: a descriptor of [64, 64] fp32, block [8, 16]

An expression stands for itself: its value is stored. Statements store what they show. A function
may bring its example along, as `@surface(example=…)`; the others are here.
"""

from __future__ import annotations

from tilewright.ops.library import SURFACE

_BINARY = "maximum minimum add sub mul fdiv"
_UNARY = "exp exp2 sin cos erf floor ceil abs sigmoid"
_POSITIVE = "log log2 sqrt rsqrt sqrt_rn"
_DTYPES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64"
_FP8 = "float8e4nv float8e5 float8e4b8 float8e5b16 float8e4b15"
_MATH_UNARY = (
    "abs asinh atan cbrt ceil cos cosh erf exp exp2 expm1 floor rint round sin sinh tan tanh trunc"
)
_MATH_POSITIVE = "log log2 log10 log1p rsqrt sqrt sqrt_rn"
_MATH_FRACTION = "acos asin atanh"
_MATH_BINARY = "atan2 copysign fdiv div_rn fmod hypot pow"

EXAMPLES: dict[str, str] = {
    # types and values
    **{name: f"(n & 3).to(tl.{name}).to(tl.float32)" for name in _DTYPES.split()},
    **{name: f"(n & 3).to(tl.float32).to(tl.{name}).to(tl.float32)" for name in _FP8.split()},
    "int1": "n.to(tl.int1)",
    "pi32_t": "tl.load(byte_ptr.to(tl.pi32_t))",
    "void": "tl.static_assert(tl.void.is_void())",
    "dtype": "x.to(tl.dtype('fp16'))",
    "pointer_type": "x_ptr.to(tl.pointer_type(tl.int8)) == byte_ptr",
    "block_type": "tl.static_assert(x.type == tl.block_type(tl.float32, [16]))",
    "tuple_type": "tl.static_assert(tl.tuple_type is not None)",
    "constexpr_type": "tl.static_assert(tl.constexpr_type is not None)",
    "tensor_descriptor_type": "tl.static_assert(tl.tensor_descriptor_type is not None)",
    "tensor_descriptor": "tl.static_assert(isinstance(desc, tl.tensor_descriptor))",
    "const": "tl.static_assert(tl.const is not None)",
    "constexpr": "width: tl.constexpr = tl.constexpr(4) * 4\nkeep(out, tl.arange(0, width))",
    "tensor": "tl.static_assert(isinstance(x, tl.tensor))",
    "tuple": "tl.tuple((x, s))[0] + (x, y)[1]",
    "PropagateNan": "tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)",
    "TRITON_MAX_TENSOR_NUMEL": "tl.static_assert(x.numel <= tl.TRITON_MAX_TENSOR_NUMEL)",
    "MAX_TILE_ELEMS": "tl.static_assert(x.numel <= tl.MAX_TILE_ELEMS)",
    "str_to_ty": "tl.static_assert(INT64 == tl.int64)",
    "DTYPES": "tl.static_assert(len(tl.DTYPES) > 0)",
    "aggregate": "Pair(x, y).total()",
    "aggregate_replace": "tl.aggregate_replace(Pair(x, y), first=y).total()",
    "constexpr_function": "tl.arange(0, double(8))",
    "must_use_result": "successor(x)",
    # programs and loops
    "program_id": "tl.program_id(0)",
    "num_programs": "tl.num_programs(0)",
    "range": "for k in tl.range(0, 4, num_stages=2):\n    x += k\nkeep(out, x)",
    "static_range": "for k in tl.static_range(4):\n    x += k\nkeep(out, x)",
    "condition": "while tl.condition(s > 0, disable_licm=True):\n    s -= 1\nkeep(out, s)",
    "stage": "for k in range(4):\n    with tl.stage(0):\n        x += k\nkeep(out, x)",
    "async_task": "with tl.async_task([0]):\n    x = x * 2\nkeep(out, x)",
    # creation and shapes
    "arange": "tl.arange(0, 16)",
    "full": "tl.full((16,), 3, tl.int32)",
    "zeros": "tl.zeros((16, 4), tl.float32)",
    "zeros_like": "tl.zeros_like(m)",
    "cast": "tl.cast(x, tl.float16, fp_downcast_rounding='rtz')",
    "to": "x.to(tl.int32, bitcast=True)",
    "to_tensor": "tl.to_tensor(3) + s",
    "cat": "tl.cat(x, y)",
    "broadcast": "tl.broadcast(x[:, None], y[None, :])",
    "broadcast_to": "tl.broadcast_to(x[:, None], (16, 4))",
    "expand_dims": "tl.expand_dims(x, 1)",
    "squeeze": "tl.squeeze(x[None, :], 0)",
    "unsqueeze": "tl.unsqueeze(x, 0)",
    "reshape": "tl.reshape(x, (4, 4))",
    "view": "x.view(8, 2)",
    "ravel": "tl.ravel(m)",
    "item": "tl.sum(x, 0, keep_dims=True).item()",
    "permute": "tl.permute(m, (1, 0))",
    "trans": "tl.trans(m) + m.T",
    "join": "tl.join(x, y)",
    "split": "tl.split(tl.reshape(x, (8, 2)))[1]",
    "interleave": "tl.interleave(x, y)",
    "flip": "tl.flip(x, 0)",
    "swizzle2d": "tl.swizzle2d(n // 4, n % 4, 4, 4, 2)",
    # arithmetic
    **{name: f"tl.{name}(x, y)" for name in _BINARY.split()},
    **{name: f"tl.{name}(x * 0.1)" for name in _UNARY.split()},
    **{name: f"tl.{name}(x * x + 1.0)" for name in _POSITIVE.split()},
    "div_rn": "tl.div_rn(x, y * y + 1.0)",
    "clamp": "tl.clamp(x, -1.0, 1.0)",
    "fma": "tl.fma(x, y, x)",
    "umulhi": "tl.umulhi(n.to(tl.uint32) << 28, n.to(tl.uint32))",
    "cdiv": "tl.cdiv(n, 3)",
    "where": "tl.where(b, x, 0.0)",
    "softmax": "tl.softmax(m, dim=1)",
    "logical_and": "tl.logical_and(b, x > 0)",
    "logical_or": "tl.logical_or(b, x > 0)",
    "expect_zero": "tl.expect_zero(n * 0, b)",
    "map_elementwise": "tl.map_elementwise(branchy, x, y)",
    "inline_asm_elementwise": (
        "tl.inline_asm_elementwise('abs.s32 $0, $1;', '=r,r', [n], tl.int32, True, 1)"
    ),
    "extern_elementwise": "fabs(x)",
    # products
    "dot": "tl.dot(h, h, out_dtype=tl.float32)",
    "dot_scaled": (
        "a = tl.reshape(tl.load(byte_ptr + tl.arange(0, 512)) & 119, (16, 32))\n"
        "scale = tl.full((16, 1), 127, tl.uint8)\n"
        "keep(out, tl.dot_scaled(a, scale, 'e4m3', tl.trans(a), scale, 'e4m3'))"
    ),
    # memory
    "load": "tl.load(x_ptr + i, mask=b, other=0.0, cache_modifier='.ca')",
    "store": "tl.store(counts + i, n, mask=b)\nkeep(out, tl.load(counts + i))",
    "make_block_ptr": (
        "block = tl.make_block_ptr(x_ptr, (16, 60), (60, 1), (0, 50), (8, 16), (1, 0))\n"
        "keep(out, tl.load(block, boundary_check=(0, 1), padding_option='zero'))"
    ),
    "advance": (
        "block = tl.make_block_ptr(x_ptr, (900,), (1,), (0,), (16,), (0,))\n"
        "for k in range(3):\n    x += tl.load(block)\n    block = tl.advance(block, (16,))\n"
        "keep(out, x)"
    ),
    "make_tensor_descriptor": (
        "made = tl.make_tensor_descriptor(x_ptr, [16, 60], [60, 1], [8, 16])\n"
        "keep(out, made.load([12, 50]))"
    ),
    "load_tensor_descriptor": "tl.load_tensor_descriptor(desc, [60, 56])",
    "store_tensor_descriptor": "tl.store_tensor_descriptor(desc, [60, 56], desc.load([0, 0]))",
    "descriptor_gather": "row.gather(n, 8)",
    "descriptor_scatter": "row.scatter(m, n, 8)",
    "descriptor_atomic_add": "desc.atomic_add([0, 0], desc.load([8, 16]))",
    **{
        f"descriptor_atomic_{kind}": f"integers.atomic_{kind}([0, 0], integers.load([8, 16]))"
        for kind in ("min", "max", "and", "or", "xor")
    },
    # reductions, scans
    "reduce": "tl.reduce((x, n), 0, later_maximum)",
    **{name: f"tl.{name}(m, 1)" for name in ("sum", "max", "min", "argmax", "argmin")},
    "xor_sum": "tl.xor_sum(n, 0)",
    "reduce_or": "tl.reduce_or(n, 0)",
    "associative_scan": "tl.associative_scan((x, n), 0, later_maximum)",
    "cumsum": "tl.cumsum(m, 1, reverse=True)",
    "cumprod": "tl.cumprod(n, 0)",
    # atomics
    **{
        f"atomic_{kind}": f"tl.atomic_{kind}(counts + i, n, sem='relaxed')"
        for kind in ("add", "max", "min", "and", "or", "xor", "xchg")
    },
    "atomic_cas": "tl.atomic_cas(counts + i, 0, n)",
    "atomic_load": "tl.atomic_load(counts + i, sem='relaxed')",
    "atomic_store": "tl.atomic_store(counts + i, n)\nkeep(out, tl.load(counts + i))",
    "atomic_poll": "tl.atomic_poll(counts, tl.load(counts), timeout_ns=1000)",
    # random numbers
    "philox": "tl.philox(7, n, n, n, n)",
    "philox_impl": "tl.philox_impl(n, n, n, n, s, s)",
    "randint": "tl.randint(7, n)",
    "randint4x": "tl.randint4x(7, n)",
    **{name: f"tl.{name}(7, n)" for name in ("rand", "rand4x", "randn", "randn4x")},
    "uint_to_uniform_float": "tl.uint_to_uniform_float(n.to(tl.uint32) << 20)",
    "pair_uniform_to_normal": "tl.pair_uniform_to_normal(tl.rand(7, n), tl.rand(8, n))",
    # hints and debugging
    "multiple_of": "tl.load(x_ptr + tl.multiple_of(s // 16 * 16, 16) + i)",
    "max_contiguous": "tl.load(x_ptr + tl.max_contiguous(n, 16))",
    "max_constancy": "tl.max_constancy(n // 16, 16)",
    "assume": "tl.assume(s >= 0)\nkeep(out, s)",
    "debug_barrier": "tl.debug_barrier()",
    "static_print": "tl.static_assert(tl.static_print is not None)",
    "static_assert": "tl.static_assert(x.shape[0] == 16, 'sixteen')",
    "device_print": "tl.device_print('x', s)",
    "device_assert": "tl.device_assert(n < 16, 'small')",
}

EXAMPLES.update(
    {
        **{f"math.{name}": f"tl.math.{name}(x * 0.1)" for name in _MATH_UNARY.split()},
        **{f"math.{name}": f"tl.math.{name}(x * x + 1.0)" for name in _MATH_POSITIVE.split()},
        **{f"math.{name}": f"tl.math.{name}(x * 0.01)" for name in _MATH_FRACTION.split()},
        **{f"math.{name}": f"tl.math.{name}(x * x + 1.0, y)" for name in _MATH_BINARY.split()},
        "math.acosh": "tl.math.acosh(x * x + 1.0)",
        "math.fma": "tl.math.fma(x, y, x)",
        "math.umulhi": "tl.math.umulhi(n, n)",
        "target_info.current_target": (
            "tl.static_assert(tl.target_info.current_target().backend != '')"
        ),
        "target_info.cuda_capability_geq": (
            "if tl.target_info.cuda_capability_geq(9):\n    keep(out, x)"
        ),
        **{
            f"target_info.{name}": f"if tl.target_info.{name}():\n    keep(out, x)"
            for name in ("is_cuda", "is_hip", "is_hip_cdna3", "is_hip_cdna4", "is_hip_gfx1250")
        },
        "extra.cuda.num_warps": "tl.zeros((tl.extra.cuda.num_warps(),), tl.float32)",
        "extra.cuda.num_threads": "tl.zeros((tl.extra.cuda.num_threads(),), tl.float32)",
        "extra.cuda.globaltimer": "tl.device_assert(tl.extra.cuda.globaltimer() != 0)",
        "extra.cuda.smid": "keep(out, tl.extra.cuda.smid())",
        "extra.cuda.gdc_wait": "tl.extra.cuda.gdc_wait()",
        "extra.cuda.gdc_launch_dependents": "tl.extra.cuda.gdc_launch_dependents()",
    }
)

EXAMPLES.update({key: entry.example for key, entry in SURFACE.items() if entry.example})

# Names of Triton that are not here, and what serves in their place.
ABSENT: dict[str, str] = {
    "dispatch": "call `tl.extern_elementwise`, which chooses the symbol by the dtypes",
    "slice": "write `a[1:3]`",
    "builtin": "`triton.language.core.builtin` (the alias) marks functions of other packages",
    "extern": "`triton.language.core.extern` (the alias) marks functions of other packages",
    "core": "`triton.language.core` exists in the alias; here its names are in `tl`",
    "standard": "`triton.language.standard` exists in the alias; here its names are in `tl`",
    "semantic": "there is no builder object: write a jit function",
}
