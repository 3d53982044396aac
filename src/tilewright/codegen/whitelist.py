"""What emitted LLVM text may call: a check before LLVM sees it.

LLVM ends the process on an intrinsic that the target cannot select, and the linker fails on
a function that no library holds. So every `@llvm.*` and every declared external function of
the text must be in the target's list, on an element type and with the features listed there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field

from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError

FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
WIDE_FLOATS = frozenset({"f32", "f64"})
INTEGERS = frozenset({"i1", "i8", "i16", "i32", "i64", "i128"})

_INTRINSIC = re.compile(r"@(llvm\.[A-Za-z0-9_.]+)")
_DECLARATION = re.compile(r"^declare\b[^@]*@(?!llvm\.)\"?([A-Za-z0-9_.$]+)", re.MULTILINE)
_TYPE_SUFFIX = re.compile(r"(?:nx)?v?\d*(?:p\d+|i\d+|f\d+|bf16)")
_ELEMENT = re.compile(r"(?:p\d+|i\d+|bf16|f\d+)$")


@dataclass(frozen=True)
class Allowed:
    """The conditions under which one intrinsic may be used.

    `types` are element types (None: any); `flags` must all stand in every call;
    `features` must all be among the machine's (`avx512f`, without sign).
    """

    types: frozenset[str] | None = None
    flags: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Whitelist:
    """The intrinsics and external functions that text for one target may use.

    `families` are beginnings of names that are allowed on whatever types the name spells out.
    """

    target: str
    intrinsics: Mapping[str, Allowed]
    externals: frozenset[str] = field(default_factory=frozenset)
    families: tuple[str, ...] = ()

    def extended(self, externals: Iterable[str]) -> Whitelist:
        """The same list with more external functions."""
        more = self.externals | frozenset(externals)
        return Whitelist(self.target, self.intrinsics, more, self.families)


def check_module(text: str, whitelist: Whitelist, features: tuple[str, ...]) -> None:
    """Raise InternalError for the first thing in `text` that `whitelist` does not allow."""
    present = frozenset(feature[1:] for feature in features if feature.startswith("+"))
    for name in dict.fromkeys(_INTRINSIC.findall(text)):
        _check_intrinsic(name, text, whitelist, present)
    for name in dict.fromkeys(_DECLARATION.findall(text)):
        if name not in whitelist.externals:
            raise InternalError(
                f"the external function `{name}` is not on the list of target {whitelist.target}"
            )


def split_intrinsic(name: str) -> tuple[str, tuple[str, ...]]:
    """The base of an intrinsic's name and its type suffixes.

    Example: `llvm.fma.v16f32` is `("llvm.fma", ("v16f32",))`.
    """
    parts = name.split(".")
    cut = len(parts)
    while cut > 2 and _TYPE_SUFFIX.fullmatch(parts[cut - 1]):
        cut -= 1
    return ".".join(parts[:cut]), tuple(parts[cut:])


def _check_intrinsic(name: str, text: str, whitelist: Whitelist, present: frozenset[str]) -> None:
    # A full name wins over its base: `llvm.x86.….512` looks typed but is one intrinsic.
    base, suffixes = (name, ()) if name in whitelist.intrinsics else split_intrinsic(name)
    allowed = whitelist.intrinsics.get(base)
    if allowed is None and name.startswith(whitelist.families):
        return
    if allowed is None:
        raise InternalError(f"`{name}` is not on the list of target {whitelist.target}")
    missing = allowed.features - present
    if missing:
        raise InternalError(f"`{name}` needs the CPU features {sorted(missing)}")
    element = _ELEMENT.search(suffixes[0]) if suffixes else None
    if allowed.types is not None and element is not None and element[0] not in allowed.types:
        raise InternalError(f"`{name}` is listed for {sorted(allowed.types)} only")
    if allowed.flags:
        _check_flags(name, text, allowed.flags)


def _check_flags(name: str, text: str, flags: frozenset[str]) -> None:
    called = f"@{name}("
    for line in text.splitlines():
        if called not in line or line.lstrip().startswith("declare"):
            continue
        missing = flags - frozenset(line.split(called)[0].split())
        if missing:
            raise InternalError(f"a call of `{name}` lacks the flags {sorted(missing)}")


def _same(names: str, allowed: Allowed) -> dict[str, Allowed]:
    return {f"llvm.{name}": allowed for name in names.split()}


_ANY = Allowed()
_FLOAT = Allowed(FLOATS)
_WIDE_FLOAT = Allowed(WIDE_FLOATS)
_INTEGER = Allowed(INTEGERS)
_AVX512_VNNI_NARROW = Allowed(features=frozenset({"avx512vnni", "avx512vl"}))
_AVX512 = Allowed(features=frozenset({"avx512f"}))

CPU_INTRINSICS: dict[str, Allowed] = {
    **_same("fabs copysign canonicalize is.fpclass", _FLOAT),
    **_same("fma fmuladd sqrt floor ceil rint nearbyint roundeven round trunc ldexp", _WIDE_FLOAT),
    **_same("minnum maxnum minimum maximum minimumnum maximumnum", _WIDE_FLOAT),
    # Saturating conversion names two types, the integer first.
    **_same("fptosi.sat fptoui.sat", _INTEGER),
    **_same("ctpop ctlz cttz bswap bitreverse abs smin smax umin umax fshl fshr", _INTEGER),
    **_same("sadd.sat uadd.sat ssub.sat usub.sat sshl.sat ushl.sat", _INTEGER),
    **_same("sadd.with.overflow uadd.with.overflow ssub.with.overflow", _INTEGER),
    **_same("usub.with.overflow smul.with.overflow umul.with.overflow", _INTEGER),
    **_same("masked.load masked.store masked.gather masked.scatter", _ANY),
    **_same("masked.expandload masked.compressstore get.active.lane.mask", _ANY),
    **_same("vector.reduce.add vector.reduce.mul vector.reduce.and vector.reduce.or", _INTEGER),
    **_same("vector.reduce.xor vector.reduce.smin vector.reduce.smax", _INTEGER),
    **_same("vector.reduce.umin vector.reduce.umax", _INTEGER),
    # Without `reassoc` these two are a chain of scalar operations.
    **_same("vector.reduce.fadd vector.reduce.fmul", Allowed(WIDE_FLOATS, frozenset({"reassoc"}))),
    **_same("vector.reduce.fmin vector.reduce.fmax", _WIDE_FLOAT),
    **_same("vector.reduce.fminimum vector.reduce.fmaximum", _WIDE_FLOAT),
    **_same("vector.interleave2 vector.deinterleave2 vector.insert vector.extract", _ANY),
    **_same("vector.reverse vector.splice stepvector", _ANY),
    **_same("memcpy memmove memset prefetch assume trap debugtrap expect", _ANY),
    **_same("lifetime.start lifetime.end stacksave stackrestore experimental.noalias", _ANY),
    **_same("memcpy.inline memset.inline dbg.declare dbg.value", _ANY),
    **_same("x86.avx512.mask.scalef.ps.512 x86.avx512.mask.scalef.pd.512", _AVX512),
    **_same(
        "x86.avx512.mask.reduce.ps.512 x86.avx512.mask.reduce.pd.512 x86.avx512.fpclass.ps.512"
        " x86.avx512.mask.range.ps.512 x86.avx512.mask.range.pd.512",
        Allowed(features=frozenset({"avx512dq"})),
    ),
    **_same("x86.avx512.mask.getexp.ps.512 x86.avx512.mask.getexp.pd.512", _AVX512),
    **_same("x86.avx512.mask.getmant.ps.512 x86.avx512.mask.getmant.pd.512", _AVX512),
    **_same("x86.avx512.max.ps.512 x86.avx512.min.ps.512", _AVX512),
    **_same("x86.avx512.rcp14.ps.512 x86.avx512.rsqrt14.ps.512", _AVX512),
    **_same("x86.avx512.vpermi2var.ps.512 x86.avx512.vpermi2var.d.512", _AVX512),
    **_same("x86.avx512.permvar.sf.512 x86.avx512.permvar.si.512", _AVX512),
    **_same(
        "x86.avx512.vpdpbusd.512 x86.avx512.vpdpwssd.512",
        Allowed(features=frozenset({"avx512vnni"})),
    ),
    **_same(
        "x86.avx512bf16.dpbf16ps.512 x86.avx512bf16.cvtneps2bf16.512"
        " x86.avx512bf16.cvtne2ps2bf16.512",
        Allowed(features=frozenset({"avx512bf16"})),
    ),
    **_same("x86.vcvtps2ph.512 x86.avx512.mask.vcvtps2ph.512", _AVX512),
    **_same("x86.vcvtps2ph.256 x86.vcvtps2ph.128", Allowed(features=frozenset({"f16c"}))),
    **_same("x86.avx2.permps", Allowed(features=frozenset({"avx2"}))),
    **_same("x86.avx2.gather.d.ps.256", Allowed(features=frozenset({"avx2"}))),
    **_same("x86.avx.rcp.ps.256 x86.avx.rsqrt.ps.256", Allowed(features=frozenset({"avx"}))),
    **_same("x86.avx512.vpdpbusd.256 x86.avx512.vpdpbusd.128", _AVX512_VNNI_NARROW),
    **_same(
        "x86.avx512bf16.dpbf16ps.256 x86.avx512bf16.dpbf16ps.128",
        Allowed(features=frozenset({"avx512bf16", "avx512vl"})),
    ),
    **_same("x86.avx512.pmaddw.d.512", Allowed(features=frozenset({"avx512bw"}))),
    **_same("x86.avx2.pmadd.wd", Allowed(features=frozenset({"avx2"}))),
    **_same("x86.sse2.pmadd.wd", Allowed(features=frozenset({"sse2"}))),
    **_same(
        "x86.ldtilecfg x86.tilerelease x86.tilezero x86.tileloadd64 x86.tileloaddt164"
        " x86.tilestored64",
        Allowed(features=frozenset({"amx-tile"})),
    ),
    **_same("x86.tdpbf16ps", Allowed(features=frozenset({"amx-bf16"}))),
    **_same(
        "x86.tdpbssd x86.tdpbsud x86.tdpbusd x86.tdpbuud",
        Allowed(features=frozenset({"amx-int8"})),
    ),
    **_same(
        "aarch64.neon.sdot.v4i32.v16i8 aarch64.neon.udot.v4i32.v16i8",
        Allowed(features=frozenset({"dotprod"})),
    ),
    **_same(
        "aarch64.neon.usdot.v4i32.v16i8 aarch64.neon.smmla.v4i32.v16i8"
        " aarch64.neon.ummla.v4i32.v16i8 aarch64.neon.usmmla.v4i32.v16i8",
        Allowed(features=frozenset({"i8mm"})),
    ),
    **_same(
        "aarch64.neon.bfdot.v4f32.v8bf16 aarch64.neon.bfmmla",
        Allowed(features=frozenset({"bf16"})),
    ),
    **_same("readcyclecounter readsteadycounter", _ANY),
    **_same("x86.sse2.pause", Allowed(features=frozenset({"sse2"}))),
    **_same("aarch64.isb", Allowed(features=frozenset({"neon"}))),
}

_LIBM = tuple(
    name
    for line in (
        "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2",
        "exp10 expm1 fabs fdim floor fma fmax fmin fmod hypot j0 j1 jn ldexp lgamma log log10",
        "log1p log2 logb modf nearbyint nextafter pow remainder rint round scalbn sin sincos",
        "sinh sqrt tan tanh tgamma trunc y0 y1 yn",
    )
    for name in line.split()
)

CPU_EXTERNALS = frozenset(
    [*_LIBM, *(f"{name}f" for name in _LIBM), "memcpy", "memmove", "memset", "pool_run", "dprintf"]
    + ["clock_gettime"]
)

CPU_WHITELIST = Whitelist("cpu", CPU_INTRINSICS, CPU_EXTERNALS)

# Measured on sm_90a with LLVM 22, every type assembled by ptxas. What is missing ends the
# process: exp, exp10, log*, pow, tan, exp2 of f64, and sin, cos, tanh without `afn`.
_NVPTX_INTEGER = Allowed(frozenset({"i8", "i16", "i32", "i64", "i128"}))
NVPTX_INTRINSICS: dict[str, Allowed] = {
    **_same(
        "fabs copysign fma fmuladd sqrt floor ceil rint nearbyint roundeven trunc round", _FLOAT
    ),
    **_same("minnum maxnum minimum maximum minimumnum maximumnum is.fpclass", _FLOAT),
    **_same("canonicalize", Allowed(frozenset({"f16", "f32", "f64"}))),
    **_same("ldexp", _WIDE_FLOAT),
    **_same("exp2", Allowed(frozenset({"f32"}))),
    **_same("sin cos tanh", Allowed(frozenset({"f32"}), frozenset({"afn"}))),
    **_same("fptosi.sat fptoui.sat", _NVPTX_INTEGER),
    **_same("ctpop ctlz cttz bitreverse abs smin smax umin umax fshl fshr", _NVPTX_INTEGER),
    **_same("bswap", Allowed(frozenset({"i16", "i32", "i64", "i128"}))),
    **_same("sadd.sat uadd.sat ssub.sat usub.sat sshl.sat ushl.sat", _NVPTX_INTEGER),
    **_same("sadd.with.overflow uadd.with.overflow ssub.with.overflow", _NVPTX_INTEGER),
    **_same("usub.with.overflow smul.with.overflow umul.with.overflow", _NVPTX_INTEGER),
    **_same("memcpy memset assume trap debugtrap expect", _ANY),
    **_same("lifetime.start lifetime.end experimental.noalias dbg.declare dbg.value", _ANY),
}
# Hopper's own: the types are part of these names, so whole families are listed.
NVPTX_FAMILIES: tuple[str, ...] = tuple(
    f"llvm.nvvm.{name}"
    for line in (
        "read.ptx.sreg. shfl.sync. vote. match. activemask nanosleep exit isspacep. ptr.",
        "redux.sync.add redux.sync.min redux.sync.max redux.sync.umin redux.sync.umax",
        "redux.sync.and redux.sync.or redux.sync.xor elect.sync",
        "bar.warp.sync barrier. barrier0 fence. membar. mbarrier. cp.async. prefetch.",
        "ldmatrix.sync. stmatrix.sync. mma.m16n8k mma.m8n8k wgmma. setmaxnreg.",
        "mapa griddepcontrol. getctarank tensormap. ldu. ldg.",
        "ex2.approx lg2.approx sin.approx cos.approx rcp. sqrt. rsqrt.approx div. add. mul. fma.",
        "fmin. fmax. fabs floor. ceil. trunc. round. saturate. prmt sad. mulhi. mul24.",
        "ff2f16x2. ff2bf16x2. ff.to.e4m3x2.rn ff.to.e5m2x2.rn f16x2.to.e4m3x2. f16x2.to.e5m2x2.",
        "e4m3x2.to.f16x2. e5m2x2.to.f16x2. f2f16. f2bf16. f2tf32. f2h. bf2h. f2i. f2ui. f2ll.",
        "f2ull. d2f. d2i. d2ui. d2ll. d2ull. i2f. i2d. ui2f. ui2d. ll2f. ll2d. ull2f. ull2d. lohi.",
    )
    for name in line.split()
)
NVPTX_EXTERNALS = frozenset({"vprintf", "__assertfail"})
NVPTX_WHITELIST = Whitelist("nvidia", NVPTX_INTRINSICS, NVPTX_EXTERNALS, NVPTX_FAMILIES)
