"""The host's side of `triton`: names, drivers, caches, extension modules, allocators."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextvars import Context
from pathlib import Path
from types import FunctionType, SimpleNamespace

import numpy as np
import pytest

from tests.api import alias as _alias  # noqa: F401 - puts `triton` on the path
from tilewright.support.errors import TilewrightError, UnsupportedError

import triton  # isort: skip
import triton.language as tl  # isort: skip
from triton.runtime import build, cache  # isort: skip


@pytest.fixture(autouse=True)
def on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The CPU as the device, and a cache of its own."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "own"))
    triton.runtime.driver.set_active(triton.backends.backends["cpu"].driver())
    with triton.knobs.cache.scope(), triton.knobs.build.scope():
        yield
    triton.runtime.driver.reset_active()


def make_kernel(**options):
    """A kernel of its own for each test."""

    @triton.jit(**options)
    def filled(out_ptr, value, N: tl.constexpr):
        tl.store(out_ptr + tl.arange(0, N), tl.full((N,), 0, tl.int32) + value)

    return filled


def test_a_cubin_of_more_warps_than_were_asked_for_is_not_handed_out() -> None:
    from triton.compiler.compiler import _is_launched_plainly

    def is_plain(**metadata: object) -> bool:
        options = {"num_warps": 4}
        found = {"num_warps": 4, "options": options, **metadata}
        return _is_launched_plainly(SimpleNamespace(metadata=found, sections={"cubin": b""}))

    assert is_plain() and is_plain(tensor_maps=[])
    assert not is_plain(num_warps=8)
    assert not is_plain(tensor_maps=[{}])


# --- jit functions ----------------------------------------------------------------------------


def test_repr_names_the_compiled_kernel_and_its_symbol() -> None:
    seen = []

    def name_of(proxy) -> str:
        seen.append(proxy)
        return f"filled_{proxy.constants['N']}_{proxy.signature['out_ptr']}"

    kernel = make_kernel(repr=name_of)
    out = np.zeros(8, np.int32)
    compiled = kernel[(1,)](out, 5, N=8)
    assert compiled.name == compiled.metadata.name == "filled_8__i32"
    assert 'sym_name = "filled_8__i32"' in compiled.asm["ttir"]
    assert out.tolist() == [5] * 8
    assert seen[0].constants == {"N": 8}
    assert seen[0].signature == {"out_ptr": "*i32", "value": "i32", "N": "constexpr"}
    assert kernel.warmup(out, 5, N=16, grid=(1,)).name == "filled_16__i32"


def test_repr_names_what_is_compiled_ahead_of_time() -> None:
    kernel = make_kernel(repr=lambda proxy: f"ahead_{proxy.constants['N']}")
    types = {"out_ptr": "*i32", "value": "i32", "N": "constexpr"}
    target = triton.backends.compiler.GPUTarget("cuda", 90, 32)
    compiled = triton.compile(triton.compiler.ASTSource(kernel, types, {"N": 4}), target=target)
    assert ".entry ahead_4(" in compiled.asm["ptx"]
    assert compiled.metadata.name == "ahead_4"


def test_a_kernel_without_repr_keeps_its_own_name() -> None:
    assert make_kernel().warmup(np.zeros(4, np.int32), 5, N=4, grid=(1,)).name == "filled"


def test_the_hash_can_be_assigned_and_is_found_anew_after_none() -> None:
    kernel = make_kernel()
    found = kernel.hash
    kernel.hash = "of a client"
    assert kernel.cache_key == "of a client"
    kernel.hash = None
    assert kernel.cache_key == found


def test_a_callee_that_changed_is_in_the_hash_that_is_found_anew() -> None:
    @triton.jit
    def callee(x):
        return x + 1

    @triton.jit
    def caller(out_ptr):
        tl.store(out_ptr, callee(1))

    out, found = np.zeros(1, np.int32), caller.cache_key
    caller[(1,)](out)
    callee._unsafe_update_src(callee.src.replace("+ 1", "+ 7"))
    callee.hash = caller.hash = None
    assert caller.cache_key != found
    caller[(1,)](out)
    assert out[0] == 8
    callee._unsafe_update_src(callee.src.replace("+ 7", "+ 1"))
    callee.hash = caller.hash = None
    assert caller.cache_key == found


def test_the_names_that_a_function_sees_are_given_to_functions_made_from_it() -> None:
    scale, tl_of_module = 3, tl

    @triton.jit
    def scaled(out_ptr, x, scale: tl.constexpr = scale):
        tl.store(out_ptr, x * scale)

    @triton.jit
    def caller(out_ptr):
        scaled(out_ptr, 7)
        if later is not None:
            tl_of_module.store(out_ptr + 1, 1)

    @triton.constexpr_function
    def thrice(n):
        return scale * n

    seen = caller.get_capture_scope()
    assert seen["scaled"] is scaled
    assert seen["np"] is np
    assert "later" not in seen, "assigned below, and not yet"
    assert thrice.get_capture_scope()["scale"] == 3
    later = None
    assert caller.get_capture_scope()["later"] is None
    assert "scaled" not in make_kernel().get_capture_scope()

    def template(out_ptr):
        pass

    made = triton.JITFunction(FunctionType(template.__code__, seen))
    made._unsafe_update_src("def template(out_ptr):\n    scaled(out_ptr, 5)\n")
    out = np.zeros(2, np.int32)
    made[(1,)](out)
    assert out[0] == 15


def test_a_kernel_written_from_another_is_shown_as_that_one() -> None:
    @triton.jit
    def original(out_ptr, value):
        # the line below is where a message belongs
        tl.store(out_ptr, value)

    def template(out_ptr, value):
        pass

    text = "def template(out_ptr, value):\n    # a comment\n    tl.store(out_ptr, value + ())\n"
    written = triton.JITFunction(template)
    written._unsafe_update_src(text)
    written.raw_src = list(original.raw_src)
    written.starting_line_number = original.def_line
    assert written.raw_src == original.raw_src
    assert written.src == text
    with pytest.raises(
        triton.CompilationError, match=rf"test_triton_host.py:{original.def_line + 2},"
    ):
        written[(1,)](np.zeros(1, np.int32), 1)
    written._unsafe_update_src(text.replace(" + ()", ""))
    out = np.zeros(1, np.int32)
    written[(1,)](out, 7)
    assert out[0] == 7


def test_a_function_of_constants_asks_what_a_value_of_the_run_is() -> None:
    @triton.constexpr_function
    def element(value: tl.tensor | tl.tensor_descriptor) -> tl.dtype:
        if isinstance(value, tl.tensor_descriptor):
            assert isinstance(value.type, tl.tensor_descriptor_type)
            return value.dtype
        assert isinstance(value, tl.tensor) and isinstance(value, tl.base_value)
        return value.dtype.element_ty

    @triton.jit
    def doubled(desc, out_ptr):
        tl.static_assert(element(desc) == element(out_ptr))
        tl.static_assert(isinstance(desc.type, tl.tensor_descriptor_type))
        wide: tl.constexpr = tl.float32 if element(desc) == tl.float16 else tl.float64
        tile = desc.load([0]).to(wide) * 2
        tl.store(out_ptr + tl.arange(0, 16), tile)

    x = np.arange(16, dtype=np.float16)
    out = np.zeros_like(x)
    desc = triton.tools.tensor_descriptor.TensorDescriptor(x, [16], [1], [16])
    doubled[(1,)](desc, out)
    assert (out == 2 * x).all()


def test_the_kept_kernels_of_the_cpu_go_by_the_name_that_torch_gives_it() -> None:
    kernel = make_kernel()
    kernel[(1,)](np.zeros(4, np.int32), 5, N=4)
    caches = kernel.device_caches
    assert "cpu" in caches
    for device in ("cpu", 0, triton.runtime.driver.active.get_current_device()):
        assert len(caches[device][0]) == 1
        assert caches.get(device) is caches["cpu"]
    caches["cpu"][0].clear()
    assert not kernel.device_caches[0][0]


def test_what_kernels_call_is_of_one_class() -> None:
    @triton.constexpr_function
    def half(n):
        return n // 2

    assert issubclass(triton.JITFunction, triton.runtime.jit.JITCallable)
    assert isinstance(make_kernel(), triton.runtime.JITCallable)
    assert isinstance(half, triton.runtime.jit.JITCallable)


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        *(("float32", "fp32"), ("fp32", "fp32"), ("bfloat16", "bf16"), ("half", "fp16")),
        *(("int64", "i64"), ("uint8", "u8"), ("bool", "i1"), ("float8e5", "fp8e5"), ("i1", "i1")),
    ],
)
def test_every_name_of_a_type_has_one_in_signatures(name: str, type_: str) -> None:
    assert triton.runtime.jit.type_canonicalisation_dict[name] == type_
    assert importlib.import_module("triton._utils").canonicalize_ptr_dtype(name, True) == (
        f"*k{type_}"
    )


def test_the_array_of_a_wrapper_can_be_replaced() -> None:
    first, second = np.zeros(4, np.int32), np.zeros(4, np.int32)
    wrapper = triton.reinterpret(first, tl.uint32)
    wrapper.data = second
    make_kernel()[(1,)](wrapper, 7, N=4)
    assert wrapper.data is second
    assert first.tolist() == [0] * 4
    assert second.tolist() == [7] * 4


# --- modules ----------------------------------------------------------------------------------


def test_the_language_lists_its_names() -> None:
    assert {"load", "float32", "math", "constexpr", "sum", "core"} <= set(tl.__all__)
    assert not {"Callable", "TypeVar", "builtins", "public_names", "refuse"} & set(tl.__all__)
    assert all(hasattr(tl, name) for name in tl.__all__)
    assert not hasattr(tl, "TypeVar")
    names: dict[str, object] = {}
    exec("from triton.language import *", names)
    assert names["dot"] is tl.dot


# --- drivers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "has_gpu", "active"),
    [("auto", False, "cpu"), ("auto", True, "nvidia"), ("cpu", True, "cpu")],
)
def test_one_driver_is_active(
    monkeypatch: pytest.MonkeyPatch, target: str, has_gpu: bool, active: str
) -> None:
    module = importlib.import_module("triton.runtime.driver")
    monkeypatch.setenv("TILEWRIGHT_TARGET", target)
    monkeypatch.setattr(module, "has_gpu", lambda: has_gpu)
    found = [name for name, b in triton.backends.backends.items() if b.driver.is_active()]
    assert found == [active]


def test_a_signature_says_what_descriptors_become() -> None:
    expand = triton.backends.driver.expand_signature
    types = ("i32", ("tensordesc<fp16[16,32]>", "i64"))
    plain = ("*fp16", *["i64"] * 4, "i1", "i1", "i32", "i32", "i64", "i64", "i64")
    assert expand(types, None, "Desc") == ["i32", plain]
    assert expand(types, [{}], "Desc") == ["i32", ("Desc", "i32", "i32", "i64", "i64", "i64")]
    assert expand(("tensordesc<fp8e5[8]>",), [], "Desc") == [
        "*fp8e5",
        *["i64", "i64", "i1", "i1", "i32", "i64"],
    ]


def test_a_launcher_gets_what_descriptors_become() -> None:
    wrap = triton.backends.driver.wrap_handle_tensordesc_impl
    seen = []
    types = {0: ("tensordesc<fp16[16,16]>", "i32"), 1: "tensordesc<fp16[8,8]>", 2: "i64"}
    launch = wrap(lambda *args: seen.append(args), types, [None, "meta"], lambda *a: list(a))
    launch("grid", (("A", 7), "B", 9))
    assert seen == [("grid", [("A", None, ("grid",), 7), "B", "meta", ("grid",), 9])]
    assert wrap(print, {0: "i32"}, None, list) is print


# --- files and modules of clients -------------------------------------------------------------


class Server(cache.RemoteCacheBackend):
    """A server in this process."""

    kept: dict[tuple[str, str], bytes] = {}

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        return {n: self.kept[self.key, n] for n in filenames if (self.key, n) in self.kept}

    def put(self, filename: str, data: bytes) -> None:
        self.kept[self.key, filename] = data


def test_files_are_shared_through_a_server(tmp_path: Path) -> None:
    triton.knobs.cache.manager_class = cache.RemoteCacheManager
    triton.knobs.cache.remote_manager_class = Server
    files = cache.get_cache_manager("00ff")
    files.put_group("all", {name: files.put(name, name) for name in ("a.txt", "b.txt")})
    triton.knobs.cache.dir = str(tmp_path / "another machine")
    found = cache.get_cache_manager("00ff").get_group("all")
    assert {name: Path(path).read_text() for name, path in found.items()} == {
        "a.txt": "a.txt",
        "b.txt": "b.txt",
    }
    assert all(path.startswith(str(tmp_path / "another machine")) for path in found.values())
    assert cache.get_cache_manager("00ee").get_file("a.txt") is None
    assert cache.get_override_manager("00ff").get_file("none") is None


def test_a_server_that_is_not_named_is_asked_for() -> None:
    with pytest.raises(UnsupportedError, match="TRITON_REMOTE_CACHE_BACKEND"):
        cache.RemoteCacheManager("key")
    with pytest.raises(UnsupportedError, match="pip install redis"):
        cache.RedisRemoteCacheBackend("key")


def compiler_script(tmp_path: Path, body: str) -> Path:
    """A program that stands in for a C compiler."""
    script = tmp_path / "fake-cc"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return script


def test_a_module_in_c_is_compiled_once(tmp_path: Path) -> None:
    record = tmp_path / "calls"
    body = f'echo "$@" >> {record}\nwhile [ "$1" != -o ]; do shift; done\necho lib > "$2"'
    triton.knobs.build.cc = str(compiler_script(tmp_path, body))
    arguments = ("int x;", "unit", ["/libraries"], ["/headers"], ["m"], ["-g"])
    path = build.compile_so_from_src(*arguments)
    assert Path(path).read_text() == "lib\n"
    assert build.compile_so_from_src(*arguments) == path
    (command,) = record.read_text().splitlines()
    for flag in ("-shared", "-fPIC", "-L/libraries", "-I/headers", "-lm", "-g"):
        assert flag in command.split()


def test_a_module_that_is_refused_says_what_the_compiler_says(tmp_path: Path) -> None:
    triton.knobs.build.cc = str(compiler_script(tmp_path, "echo no semicolon >&2; exit 1"))
    with pytest.raises(build.BuildError, match="no semicolon"):
        build.compile_module_from_src("int x", "broken")


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(UnsupportedError, match="no C compiler"):
        build.compile_module_from_src("int x;", "unit")


def test_scratch_memory_without_an_allocator_says_how_to_set_one() -> None:
    # In a context of its own: whatever set an allocator before, a new thread has none.
    Context().run(_require_no_allocator)


def _require_no_allocator() -> None:
    allocation = triton.runtime._allocation
    assert isinstance(allocation._allocator.get(), allocation.NullAllocator)
    with pytest.raises(RuntimeError, match=r"triton\.set_allocator"):
        allocation._allocator.get()(16, 16, None)
    allocation.set_profile_allocator(lambda size, alignment, stream: SimpleNamespace())
    assert allocation.has_profile_allocator()
    allocation.set_profile_allocator(None)
    assert not allocation.has_profile_allocator()


# --- times ------------------------------------------------------------------------------------


def test_a_listener_is_told_how_long_each_part_took(tmp_path: Path) -> None:
    told: list[dict[str, object]] = []
    triton.knobs.compilation.listener = lambda **found: told.append(found)
    try:
        for kernel in (make_kernel(), make_kernel()):
            kernel.warmup(np.zeros(4, np.int32), 5, N=4, grid=(1,))
    finally:
        triton.knobs.compilation.listener = None
    first, second = (found["times"] for found in told)
    assert isinstance(first, triton.knobs.CompileTimes)
    assert min(first.ir_initialization, first.total_lowering, first.store_results) > 0
    assert first.total > first.total_lowering
    assert told[1]["cache_hit"]
    assert second.lowering_stages == []
    assert second.total == second.ir_initialization > 0


# --- cuBLAS -----------------------------------------------------------------------------------


class FakeCublas:
    """The functions of cuBLASLt, on arrays of NumPy in this process."""

    def __init__(self) -> None:
        self.objects: list[list[object]] = []
        self.num_destroyed = 0

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name.endswith("Create"):
            return lambda out, *args: self._create(out, args)
        if name.endswith("Destroy"):
            return lambda made: self._destroy(made)
        if name.endswith("SetAttribute"):
            return lambda made, key, value, size: self._set(made, key.value, value._obj.value)
        raise AttributeError(name)

    def _create(self, out, args) -> int:
        self.objects.append([value.value for value in args])
        out._obj.value = len(self.objects)
        return 0

    def _destroy(self, made) -> int:
        self.num_destroyed += 1
        return 0

    def _set(self, made, key: int, value: int) -> int:
        self.objects[made.value - 1].append((key, value))
        return 0

    def cublasLtMatmulAlgoGetHeuristic(self, *args) -> int:
        args[-1]._obj.value = 1
        return 0

    def cublasLtMatmul(self, handle, op, alpha, a, la, b, lb, beta, c, lc, d, ld, *rest) -> int:
        assert self.objects[op.value - 1][2:] == [(3, 1), (4, 0)]

        def columns(pointer, layout) -> np.ndarray:
            type_, rows, count, stride = self.objects[layout.value - 1]
            assert (type_, stride) == (0, rows)
            found = (np.ctypeslib.ctypes.c_float * (rows * count)).from_address(pointer.value)
            return np.frombuffer(found, np.float32).reshape(count, rows).T

        product = columns(a, la).T @ columns(b, lb)
        columns(d, ld)[...] = alpha._obj.value * product + beta._obj.value * columns(c, lc)
        return 0


class Matrix:
    """An array of NumPy with the surface of a torch tensor."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.shape = array.shape
        self.dtype = f"torch.{array.dtype}"

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def is_contiguous(self) -> bool:
        return bool(self.array.flags.c_contiguous)

    def numel(self) -> int:
        return self.array.size

    def element_size(self) -> int:
        return self.array.itemsize


def test_products_of_cublas_are_of_rows(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    module = importlib.import_module("triton._C.libtriton.nvidia").cublas
    fake = FakeCublas()
    monkeypatch.setattr(module, "load_library", lambda: fake)
    a, b, c = (rng.standard_normal(s).astype(np.float32) for s in ((5, 7), (3, 7), (5, 3)))
    out = np.zeros((5, 3), np.float32)
    product = module.CublasLt(Matrix(np.zeros(64, np.uint8)))
    product.matmul(Matrix(a), Matrix(b), Matrix(out))
    np.testing.assert_allclose(out, a @ b.T, rtol=1e-5)
    product.gemm(Matrix(a), Matrix(b), Matrix(c), Matrix(out), 2.0, 0.5)
    np.testing.assert_allclose(out, 2 * (a @ b.T) + 0.5 * c, rtol=1e-5)
    assert fake.num_destroyed == len(fake.objects) - 1
    with pytest.raises(TilewrightError, match=r"do not make c = a @ b\.T"):
        product.matmul(Matrix(a), Matrix(c), Matrix(out))


def test_cublas_is_missed_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("triton._C.libtriton.nvidia").cublas
    monkeypatch.setattr(module, "_candidates", lambda: iter(("/no/such.so",)))
    module.load_library.cache_clear()
    with pytest.raises(UnsupportedError, match="cuBLASLt is not on this machine"):
        module.CublasLt(Matrix(np.zeros(4, np.uint8)))
