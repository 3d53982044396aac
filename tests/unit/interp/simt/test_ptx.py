"""Inline assembly: predicates, vectors, tied operands, types, labels."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.unit.interp.simt.programs import validated
from tilewright.interp.simt.simulate import simulate
from tilewright.support.errors import OutOfBoundsAccess, UnsupportedError

THREADS = 64
TID = "  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"


def run(body: str, *arguments: np.ndarray, names: str = "x out") -> None:
    """Run a body in which every array argument has a pointer of its name."""
    parameters = ", ".join(f"ptr addrspace(1) %{name}" for name in names.split())
    text = f"define ptx_kernel void @k({parameters}) {{\nentry:\n{TID}{body}  ret void\n}}\n"
    simulate(validated(text), "k", (1, 1, 1), THREADS, list(arguments))


def element(name: str, pointer: str, kind: str = "i32") -> str:
    return f"  %{name} = getelementptr {kind}, ptr addrspace(1) %{pointer}, i32 %tid\n"


def apply(code: str, x: np.ndarray, result: np.dtype) -> np.ndarray:
    """One instruction on 32-bit inputs; `$0` is the result and `$1` the input."""
    out = np.zeros(THREADS, result)
    body = (
        element("p", "x")
        + element("q", "out", f"i{out.itemsize * 8}")
        + "  %v = load i32, ptr addrspace(1) %p\n"
        + f'  %r = call i{out.itemsize * 8} asm "{code}", '
        + f'"={ {2: "h", 4: "r", 8: "l"}[out.itemsize] },r"(i32 %v)\n'
        + f"  store i{out.itemsize * 8} %r, ptr addrspace(1) %q\n"
    )
    run(body, x, out)
    return out


def test_a_predicated_load_leaves_the_fallback_where_it_does_not_run() -> None:
    x = np.arange(4 * 40, dtype=np.int32)
    out = np.zeros(4 * THREADS, np.int32)
    run(
        element("p", "x", "<4 x i32>")
        + element("q", "out", "<4 x i32>")
        + """  %in = icmp ult i32 %tid, 40
"""
        '  %r = call {i32, i32, i32, i32} asm sideeffect "@$5 ld.global.L1::evict_last.v4.b32 '
        '{$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l,b,0,1,2,3"'
        "(ptr addrspace(1) %p, i1 %in, i32 -1, i32 -2, i32 -3, i32 -4)"
        """
  %r0 = extractvalue {i32, i32, i32, i32} %r, 0
  %r3 = extractvalue {i32, i32, i32, i32} %r, 3
  %i = insertelement <4 x i32> zeroinitializer, i32 %r0, i32 0
  %j = insertelement <4 x i32> %i, i32 %r3, i32 3
  store <4 x i32> %j, ptr addrspace(1) %q
""",
        x,
        out,
    )
    rows = out.reshape(-1, 4)
    np.testing.assert_array_equal(rows[:40, 0], np.arange(40) * 4)
    np.testing.assert_array_equal(rows[:40, 3], np.arange(40) * 4 + 3)
    assert rows[40:].tolist() == [[-1, 0, 0, -4]] * 24


@pytest.mark.parametrize("kind", ["b8", "s8"])
def test_a_byte_that_is_not_loaded_leaves_the_wider_register_as_it_was(kind: str) -> None:
    x, out = np.arange(-20, 44, dtype=np.int8), np.zeros(THREADS, np.int16)
    run(
        element("p", "x", "i8")
        + element("q", "out", "i16")
        + f"""  %in = icmp ult i32 %tid, 30
  %r = call i16 asm sideeffect "@$2 ld.global.{kind} $0, [$1];", "=h,l,b,0"(ptr addrspace(1) %p, i1 %in, i16 777)
  store i16 %r, ptr addrspace(1) %q
""",  # noqa: E501
        x,
        out,
    )
    loaded = (x if kind == "s8" else x.view(np.uint8)).astype(np.int16)
    np.testing.assert_array_equal(out, np.where(np.arange(THREADS) < 30, loaded, 777))


def test_a_load_past_the_end_is_a_fault_unless_its_predicate_is_false() -> None:
    x = np.zeros(40, np.int32)
    body = element("p", "x") + (
        '  %r = call i32 asm sideeffect "ld.global.b32 $0, [$1];", "=r,l"(ptr addrspace(1) %p)\n'
    )
    with pytest.raises(OutOfBoundsAccess, match=r"offset 252 of x, which has 160"):
        run(body, x, names="x")


def test_a_predicated_store_writes_only_where_it_holds() -> None:
    out = np.zeros(THREADS, np.int16)
    run(
        element("q", "out", "i16")
        + """  %odd = trunc i32 %tid to i1
  %h = trunc i32 %tid to i16
  %g = ptrtoint ptr addrspace(1) %q to i64
  call void asm sideeffect "@$2 st.global.b16 [$0], $1;", "l,h,b"(i64 %g, i16 %h, i1 %odd)
""",
        out,
        names="out",
    )
    ids = np.arange(THREADS)
    np.testing.assert_array_equal(out, np.where(ids % 2, ids, 0))


def test_local_registers_and_predicates_of_a_block() -> None:
    x = np.arange(THREADS, dtype=np.int32)
    code = (
        "{ .reg .pred p; .reg .b32 t<2>; setp.gt.s32 p, $1, 31; add.s32 t0, $1, 100; "
        "mov.b32 t1, 7; @p mov.b32 t1, t0; mov.b32 $0, t1; }"
    )
    got = apply(code, x, np.dtype(np.int32))
    np.testing.assert_array_equal(got, np.where(x > 31, x + 100, 7))


def test_labels_of_a_block_loop_per_thread() -> None:
    x = np.arange(THREADS, dtype=np.int32)
    code = (
        "{ .reg .pred p; .reg .b32 n; mov.b32 n, 0; mov.b32 $0, 0; L${:uid}: "
        "add.s32 $0, $0, n; add.s32 n, n, 1; setp.le.s32 p, n, $1; @p bra L${:uid}; }"
    )
    # `$0` doubles as a register: PTX allows that of an output.
    got = apply(code, x, np.dtype(np.int32))
    np.testing.assert_array_equal(got, x * (x + 1) // 2)


@pytest.mark.parametrize(
    ("code", "reference"),
    [
        ("not.b32 $0, $1;", lambda x: ~x),
        ("brev.b32 $0, $1;", lambda x: np.array([int(f"{v:032b}"[::-1], 2) for v in x])),
        ("popc.b32 $0, $1;", lambda x: np.bitwise_count(x)),
        ("clz.b32 $0, $1;", lambda x: np.array([32 - int(v).bit_length() for v in x])),
        ("prmt.b32 $0, $1, $1, 0x0123;", lambda x: x.byteswap()),
        ("lop3.b32 $0, $1, 255, $1, 0xc0;", lambda x: x & 255),
        ("shf.l.wrap.b32 $0, $1, $1, 8;", lambda x: (x << 8) | (x >> 24)),
        ("bfe.u32 $0, $1, 4, 8;", lambda x: (x >> 4) & 0xFF),
        ("shr.s32 $0, $1, 40;", lambda x: x.view(np.int32) >> 31),
        ("mul.hi.u32 $0, $1, $1;", lambda x: (x.astype(np.uint64) ** 2) >> np.uint64(32)),
    ],
)
def test_integer_instructions(code: str, reference: object) -> None:
    x = np.random.default_rng(1).integers(0, 1 << 32, THREADS, np.uint32)
    got = apply(code, x, np.dtype(np.uint32))
    assert callable(reference)
    np.testing.assert_array_equal(got, np.asarray(reference(x)).astype(np.int64) & 0xFFFFFFFF)


def test_conversions_round_as_they_say() -> None:
    x = np.random.default_rng(2).standard_normal(THREADS).astype(np.float32)
    half = apply("cvt.rn.f16.f32 $0, $1;", x, np.dtype(np.uint16)).view(np.float16)
    np.testing.assert_array_equal(half, x.astype(np.float16))
    pair = apply("cvt.rn.bf16x2.f32 $0, $1, 0f3F800000;", x, np.dtype(np.uint32))
    high = (pair >> 16).astype(np.uint16).view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(high, x.astype(ml_dtypes.bfloat16))
    assert set((pair & 0xFFFF).tolist()) == {0x3F80}
    toward_zero = apply("cvt.rz.f16.f32 $0, $1;", x, np.dtype(np.uint16)).view(np.float16)
    assert (np.abs(toward_zero.astype(np.float32)) <= np.abs(x)).all()
    fp8 = apply("cvt.rn.satfinite.e4m3x2.f32 $0, $1, $1;", x * 1000, np.dtype(np.uint16))
    expected = np.clip(x * 1000, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal((fp8 >> 8).astype(np.uint8), expected.view(np.uint8))


def test_packed_arithmetic_works_on_both_halves() -> None:
    halves = np.random.default_rng(3).standard_normal(2 * THREADS).astype(np.float16)
    got = apply("add.f16x2 $0, $1, $1;", halves.view(np.uint32), np.dtype(np.uint32))
    np.testing.assert_array_equal(got.view(np.float16), halves + halves)


def test_an_unknown_instruction_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"tcgen05\.mma x"):
        run('  call void asm sideeffect "tcgen05.mma x;", ""()\n', np.zeros(1, np.int32), names="x")


def test_atomics_return_the_old_value_and_count_every_thread() -> None:
    x, out = np.zeros(1, np.uint32), np.zeros(THREADS, np.uint32)
    run(
        element("q", "out")
        + '  %old = call i32 asm sideeffect "atom.acq_rel.gpu.global.add.u32 $0, [$1], $2;", '
        + """"=r,l,r"(ptr addrspace(1) %x, i32 2)
  store i32 %old, ptr addrspace(1) %q
""",
        x,
        out,
    )
    assert x[0] == 2 * THREADS
    assert sorted(out.tolist()) == list(range(0, 2 * THREADS, 2))


def test_packed_float_reductions_add_each_half() -> None:
    x = np.zeros(2, np.float16)
    run(
        '  call void asm sideeffect "red.relaxed.gpu.global.add.noftz.f16x2 [$0], $1;", "l,r"'
        "(ptr addrspace(1) %x, i32 1006632960)\n",  # 1.0 above 0.0 in halves: 0x3C000000
        x,
        names="x",
    )
    assert x.tolist() == [0.0, 64.0]


def test_a_vector_is_one_atomic_for_each_element() -> None:
    x, out = np.zeros(2, np.float32), np.zeros(THREADS, np.float32)
    run(
        element("q", "out")
        + "  %old = call {float, float} asm sideeffect "
        + """"atom.relaxed.gpu.global.add.v2.f32 {$0, $1}, [$2], {$3, $4};", "=f,=f,l,f,f"(
  ptr addrspace(1) %x, float 1.0, float 2.0)
  %second = extractvalue {float, float} %old, 1
  store float %second, ptr addrspace(1) %q
""".replace("(\n  ", "("),
        x,
        out,
    )
    assert x.tolist() == [THREADS, 2 * THREADS]
    assert sorted(out.tolist()) == list(range(0, 2 * THREADS, 2))
