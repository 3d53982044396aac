"""The LLVM back end: compilation, the whitelist, linking, the host's description."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tilewright.codegen import optimize
from tilewright.codegen.link import load_object
from tilewright.codegen.optimize import (
    SHORT_PIPELINE,
    CompiledModule,
    compile_module,
    create_target_machine,
    optimized_module,
)
from tilewright.codegen.whitelist import (
    CPU_WHITELIST,
    NVPTX_WHITELIST,
    check_module,
    split_intrinsic,
)
from tilewright.support.errors import InternalError
from tilewright.targets.cpu import host as host_module
from tilewright.targets.cpu.host import describe_machine, host_machine
from tilewright.targets.cpu.runtime.native import NativeRuntime, native_runtime

ADD = """
define i64 @add(i64 %a, i64 %b) {
entry:
  %slot = alloca i64
  store i64 %a, ptr %slot
  %x = load i64, ptr %slot
  %sum = add i64 %x, %b
  ret i64 %sum
}
"""

HOSTS = {
    "x86_64-unknown-linux-gnu": b"\x3e\x00",
    "aarch64-unknown-linux-gnu": b"\xb7\x00",
    "riscv64-unknown-linux-gnu": b"\xf3\x00",
}


def compile_here(text: str, **options: bool) -> CompiledModule:
    host = host_machine()
    return compile_module(text, host.arch, host.features, whitelist=CPU_WHITELIST, **options)


def optimized_here(text: str, passes: tuple[str, ...] = SHORT_PIPELINE) -> str:
    host = host_machine()
    machine = create_target_machine(host.arch, host.features)
    return str(optimized_module(text, machine, host.features, passes))


def test_a_function_is_compiled_linked_and_called():
    code = load_object(compile_here(ADD).object, "add")
    add = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(code.address)
    assert add(40, 2) == 42


@pytest.mark.parametrize("triple, machine", HOSTS.items())
def test_an_object_for_another_machine_is_elf_of_that_machine(triple, machine):
    compiled = compile_module(ADD, "generic" if "riscv" not in triple else "", (), triple)
    assert compiled.object.startswith(b"\x7fELF")
    assert compiled.object[18:20] == machine


def test_assembly_comes_on_request():
    assert compile_here(ADD).assembly is None
    full = compile_here(ADD, emit_assembly=True)
    assert full.assembly is not None and "add:" in full.assembly
    assert compile_here(ADD, emit_assembly=True, emit_object=False).object == b""


def test_the_pipeline_may_be_left_out():
    assert "alloca" not in optimized_here(ADD)
    assert "alloca" in optimized_here(ADD, ())


def test_small_marked_functions_are_inlined():
    text = (
        "define internal i64 @one() alwaysinline {\n  ret i64 1\n}\n"
        "define i64 @f() {\n  %x = call i64 @one()\n  ret i64 %x\n}\n"
    )
    assert "call" not in optimized_here(text)


def test_compiling_twice_gives_the_same_object():
    assert compile_here(ADD).object == compile_here(ADD).object


def test_a_parse_error_names_the_line():
    text = ADD.replace("add i64 %x, %b", "add i32 %x, %b")
    with pytest.raises(InternalError, match="LLVM rejects") as caught:
        compile_here(text)
    assert "%sum = add i32 %x, %b" in str(caught.value)


def test_a_module_that_does_not_verify_is_an_internal_error():
    text = (
        "define i64 @f(i1 %c) {\nentry:\n  br i1 %c, label %a, label %b\n"
        "a:\n  %x = add i64 1, 1\n  br label %b\nb:\n  ret i64 %x\n}\n"
    )
    with pytest.raises(InternalError, match="dominate"):
        compile_here(text)


def test_an_unknown_triple_is_an_internal_error():
    with pytest.raises(InternalError, match="no target"):
        compile_module(ADD, "", (), "nosuch-machine-none")


@pytest.mark.parametrize(
    "name, base, suffixes",
    [
        ("llvm.fma.v16f32", "llvm.fma", ("v16f32",)),
        ("llvm.masked.gather.v16f32.v16p0", "llvm.masked.gather", ("v16f32", "v16p0")),
        ("llvm.memcpy.p0.p0.i64", "llvm.memcpy", ("p0", "p0", "i64")),
        ("llvm.sadd.with.overflow.i32", "llvm.sadd.with.overflow", ("i32",)),
        ("llvm.vector.reduce.fadd.nxv4bf16", "llvm.vector.reduce.fadd", ("nxv4bf16",)),
        ("llvm.trap", "llvm.trap", ()),
    ],
)
def test_type_suffixes_are_split_off(name, base, suffixes):
    assert split_intrinsic(name) == (base, suffixes)


ALLOWED = [
    "declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)",
    "declare i32 @llvm.ctpop.i32(i32)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "declare <8 x i64> @llvm.smax.v8i64(<8 x i64>, <8 x i64>)",
    "declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, <16 x i1>, <16 x float>)",
    "declare float @expf(float)",
    "%x = call reassoc float @llvm.vector.reduce.fadd.v16f32(float 0.0, <16 x float> %v)",
]


@pytest.mark.parametrize("text", ALLOWED)
def test_listed_calls_pass(text):
    check_module(text, CPU_WHITELIST, ())


REFUSED = {
    "declare float @llvm.exp.f32(float)": "llvm.exp.f32",
    "declare half @llvm.sqrt.f16(half)": "listed for",
    "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()": "nvvm",
    "declare i32 @system(ptr)": "`system`",
    'declare i32 @"system"(ptr)': "`system`",
    "%x = call float @llvm.vector.reduce.fadd.v16f32(float 0.0, <16 x float> %v)": "reassoc",
    "%x = call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float> %a)": "avx512bf16",
    "declare ptr @llvm.returnaddress(i32)": "returnaddress",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_listed_is_refused_before_llvm_sees_it(text):
    with pytest.raises(InternalError, match=REFUSED[text]):
        check_module(text, CPU_WHITELIST, ("-avx512bf16", "+avx2"))


ON_HOPPER = [
    "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
    "declare float @llvm.nvvm.ex2.approx.ftz.f32(float)",
    "declare half @llvm.fma.f16(half, half, half)",
    "declare i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3), i32)",
    "declare i32 @vprintf(ptr, ptr)",
    "%x = call afn float @llvm.sin.f32(float %v)",
]


@pytest.mark.parametrize("text", ON_HOPPER)
def test_what_hopper_selects_is_listed(text):
    check_module(text, NVPTX_WHITELIST, ("+ptx88",))


NOT_ON_HOPPER = [
    "declare float @llvm.exp.f32(float)",
    "declare double @llvm.exp2.f64(double)",
    "%x = call float @llvm.sin.f32(float %v)",
    "declare float @llvm.pow.f32(float, float)",
    "declare void @llvm.nvvm.tcgen05.fence.before.thread.sync()",
    "declare float @llvm.nvvm.redux.sync.fmax(float, i32)",
    "declare double @pow(double, double)",
]


@pytest.mark.parametrize("text", NOT_ON_HOPPER)
def test_what_would_end_the_process_on_hopper_is_refused(text):
    with pytest.raises(InternalError):
        check_module(text, NVPTX_WHITELIST, ("+ptx88",))


def test_a_feature_of_the_machine_allows_its_intrinsics():
    text = "declare <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>)"
    check_module(text, CPU_WHITELIST, ("+avx512bf16",))


def test_compilation_checks_the_list_first(monkeypatch):
    monkeypatch.setattr(optimize, "create_target_machine", lambda *_: pytest.fail("LLVM was asked"))
    with pytest.raises(InternalError, match="not on the list"):
        compile_here("declare float @llvm.exp.f32(float)")


def call_double(text: str, value: float) -> float:
    code = load_object(compile_here(text).object, "f")
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address)(value)


def test_functions_of_the_mathematics_library_resolve():
    text = (
        "declare double @tgamma(double)\ndefine double @f(double %x) {\n"
        "  %y = call double @tgamma(double %x)\n  ret double %y\n}\n"
    )
    assert call_double(text, 5.0) == pytest.approx(math.gamma(5.0))


def test_wide_integer_division_resolves():
    text = (
        "define double @f(double %x) {\n  %a = fptosi double %x to i128\n"
        "  %b = mul i128 %a, %a\n  %c = mul i128 %b, %a\n  %d = sdiv i128 %c, %b\n"
        "  %y = sitofp i128 %d to double\n  ret double %y\n}\n"
    )
    assert call_double(text, 1e9) == 1e9


def test_an_unknown_symbol_is_an_internal_error():
    text = "declare void @nosuch()\ndefine void @f() {\n  call void @nosuch()\n  ret void\n}\n"
    host = host_machine()
    with pytest.raises(InternalError, match="cannot link f"):
        load_object(compile_module(text, host.arch, host.features).object, "f")


def test_a_damaged_object_is_an_internal_error():
    for damaged in (b"", b"not an object", compile_here(ADD).object[:100]):
        with pytest.raises(InternalError, match="cannot link"):
            load_object(damaged, "add")


def test_one_object_may_be_loaded_more_than_once():
    compiled = compile_here(ADD)
    first, second = load_object(compiled.object, "add"), load_object(compiled.object, "add")
    assert first.address != second.address


def features(*names: str) -> Mapping[str, bool]:
    every = ("sse2", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl",
             "avx512bf16", "avx512vnni", "neon")  # fmt: skip
    return {name: name in names for name in every}


AVX512 = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl")


@pytest.mark.parametrize(
    "triple, names, expected",
    [
        ("x86_64-linux", ("sse2",), (16, 16)),
        ("x86_64-linux", ("avx2", "fma", "f16c"), (32, 16)),
        ("x86_64-linux", AVX512, (64, 32)),
        ("x86_64-linux", ("avx2", "fma", "avx512f"), (32, 16)),
        ("aarch64-linux", ("neon",), (16, 32)),
    ],
)
def test_the_machine_follows_from_its_features(triple, names, expected):
    machine = describe_machine(triple, "any-name", features(*names))
    assert (machine.vector_bytes, machine.num_registers) == expected
    assert machine.enabled_features == set(names)
    assert machine.has_feature("avx2") == ("avx2" in names)


def test_the_host_is_described_once_and_has_sane_caches():
    host = host_machine()
    assert host is host_machine()
    assert host.vector_bytes in (16, 32, 64)
    assert 8 << 10 <= host.l1_bytes <= host.l2_bytes


@pytest.mark.parametrize(
    "content, quota",
    [("150000 100000\n", 1.5), ("max 100000\n", None), ("", None), ("100000 0\n", None)],
)
def test_the_cpu_quota_is_read_from_the_cgroup(tmp_path, monkeypatch, content, quota):
    (tmp_path / "cpu.max").write_text(content)
    monkeypatch.setattr(host_module, "_CGROUP", Path(tmp_path))
    assert host_module.cgroup_cpu_quota() == quota


def test_a_quota_below_one_cpu_leaves_one_thread(tmp_path, monkeypatch):
    (tmp_path / "cpu.max").write_text("20000 100000\n")
    monkeypatch.setattr(host_module, "_CGROUP", Path(tmp_path))
    assert host_module.available_parallelism() == 1


class MemoryCache:
    """A section cache in memory that counts what is stored."""

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, bytes]] = {}
        self.num_puts = 0

    def get(self, key: str) -> Mapping[str, bytes] | None:
        return self.entries.get(key)

    def put(self, key: str, sections: Mapping[str, bytes]) -> None:
        self.num_puts += 1
        self.entries[key] = dict(sections)


def test_the_native_runtime_is_compiled_once_and_then_read_from_the_cache(monkeypatch):
    cache = MemoryCache()
    NativeRuntime(cache, num_threads=1)
    assert cache.num_puts == 1
    monkeypatch.setattr(optimize, "run_short_pipeline", lambda *_: pytest.fail("compiled again"))
    NativeRuntime(cache, num_threads=1)
    assert cache.num_puts == 1


@pytest.mark.parametrize("sections", [{}, {"object": b""}, {"object": b"damaged"}])
def test_a_damaged_cache_entry_is_compiled_anew(sections):
    cache = MemoryCache()
    NativeRuntime(cache, num_threads=1)
    (key,) = cache.entries
    cache.entries[key] = sections
    assert NativeRuntime(cache, num_threads=1).pool.num_threads == 1
    assert cache.num_puts == 2


def test_the_process_has_one_native_runtime():
    assert native_runtime() is native_runtime()
    assert 1 <= native_runtime().pool.num_threads <= (os.cpu_count() or 1)


NARROW_STORE = """
define void @f(ptr %p, ptr %q) {{
  %wide = load <{lanes} x i32>, ptr %q
  %narrow = trunc <{lanes} x i32> %wide to <{lanes} x i8>
  call void @llvm.masked.store.v{lanes}i8.p0(<{lanes} x i8> %narrow, ptr align 1 %p, {mask})
  ret void
}}
declare void @llvm.masked.store.v{lanes}i8.p0(<{lanes} x i8>, ptr, <{lanes} x i1>)
"""
AVX512 = ("+avx512f", "+avx512bw", "+avx512vl", "+avx512dq")


@pytest.mark.parametrize(("lanes", "lane"), [(16, 0), (16, 15), (8, 3), (4, 1), (32, 20)])
def test_one_narrowed_lane_is_stored_in_its_own_width(lanes: int, lane: int):
    bits = ", ".join(f"i1 {str(k == lane).lower()}" for k in range(lanes))
    text = NARROW_STORE.format(lanes=lanes, mask=f"<{lanes} x i1> <{bits}>")
    host = "x86_64-unknown-linux-gnu"
    compiled = compile_module(
        text, "skylake-avx512", AVX512, host, emit_object=False, emit_assembly=True
    )
    assert compiled.assembly is not None
    stores = [line for line in compiled.assembly.splitlines() if "(%rdi)" in line]
    assert stores and all("{%k" in line for line in stores), stores


def test_a_host_without_the_instruction_keeps_its_masks():
    mask = "<16 x i1> <i1 true" + ", i1 false" * 15 + ">"
    text = NARROW_STORE.format(lanes=16, mask=mask)
    features = ("+avx2",)
    machine = create_target_machine("haswell", features, "x86_64-unknown-linux-gnu")
    assert "asm" not in str(optimized_module(text, machine, features))
