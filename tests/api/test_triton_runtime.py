"""Kernels through `triton`: the surface of jit functions, compiled kernels, tuners and knobs."""

from __future__ import annotations

import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.api.alias import run_script

import triton  # isort: skip - `alias` has put it on the path
import triton.language as tl  # isort: skip
from triton.runtime import driver  # isort: skip


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor: tl.constexpr = 2, *, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


@pytest.fixture(autouse=True)
def on_the_cpu():
    """Compile for the CPU, also where there is a GPU."""
    driver.set_active(triton.backends.backends["cpu"].driver())
    yield
    driver.reset_active()


def make_kernel(**options):
    """A kernel of its own for a test that changes it."""

    @triton.jit(**options)
    def changed_kernel(x_ptr, out_ptr, N: tl.constexpr):
        offsets = tl.arange(0, N)
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * 2)

    return changed_kernel


def arrays(size: int = 16):
    return np.arange(size, dtype=np.float32), np.zeros(size, np.float32)


# --- jit functions ----------------------------------------------------------------------------


def test_a_jit_function_describes_its_parameters() -> None:
    assert scale_kernel.arg_names == ["x_ptr", "out_ptr", "n", "factor", "BLOCK"]
    assert [p.num for p in scale_kernel.params if p.is_constexpr] == [3, 4]
    assert scale_kernel.constexprs == [3, 4]
    assert scale_kernel.params[3].default == 2
    assert scale_kernel.params[3].has_default
    assert not scale_kernel.params[0].do_not_specialize
    assert list(scale_kernel.signature.parameters) == scale_kernel.arg_names
    assert scale_kernel.repr(None).endswith("scale_kernel")
    assert scale_kernel.hash == scale_kernel.cache_key


def test_the_source_starts_at_def_and_counts_lines_from_the_decorator() -> None:
    assert scale_kernel.src.startswith("def scale_kernel(")
    assert scale_kernel.raw_src[0] == "@triton.jit\n"
    assert scale_kernel.starting_line_number + 1 == scale_kernel.def_line


def test_replacing_the_source_replaces_what_runs() -> None:
    kernel = make_kernel()
    x, out = arrays()
    kernel[(1,)](x, out, N=16)
    key = kernel.cache_key
    kernel._unsafe_update_src(kernel.src.replace("* 2", "* 5"))
    kernel[(1,)](x, out, N=16)
    np.testing.assert_array_equal(out, x * 5)
    assert kernel.cache_key != key


def test_compiled_kernels_are_found_by_device_and_can_be_dropped() -> None:
    kernel = make_kernel()
    x, out = arrays()
    compiled = kernel[(1,)](x, out, N=16)
    kept = kernel.device_caches[driver.active.get_current_device()][0]
    assert list(kept.values()) == [compiled]
    kept.clear()
    assert kernel[(1,)](x, out, N=16) is not compiled


def test_a_hook_before_each_launch_sees_the_arguments() -> None:
    kernel = make_kernel()
    seen = []
    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append((len(args), kwargs)))
    x, out = arrays()
    kernel[(1,)](x, out, N=16)
    assert seen == [(2, {"N": 16})]
    np.testing.assert_array_equal(out, x * 2)


def test_warmup_compiles_for_dtypes_and_mock_arrays() -> None:
    torch_like = triton.MockTensor(tl.float32)
    compiled = scale_kernel.warmup(torch_like, torch_like, 5, BLOCK=32, grid=(1,))
    assert compiled.src.signature["x_ptr"] == "*fp32"
    named = scale_kernel.warmup(np.dtype("float16"), np.dtype("float16"), 5, BLOCK=32, grid=(1,))
    assert named.src.signature["x_ptr"] == "*fp16"


def test_calling_a_kernel_without_a_grid_is_a_runtime_error() -> None:
    with pytest.raises(RuntimeError, match="cannot be called directly"):
        scale_kernel(1, 2, 3)


def test_unknown_keywords_are_key_errors_and_foreign_options_are_accepted() -> None:
    x, out = arrays()
    with pytest.raises(KeyError, match="no parameter `wrong`"):
        scale_kernel[(1,)](x, out, 16, BLOCK=16, wrong=3)
    scale_kernel[(1,)](x, out, 16, BLOCK=16, num_warps=8, launch_pdl=True, ptx_version=80)
    np.testing.assert_array_equal(out, x * 2)
    with pytest.raises(triton.TritonError, match="launch_cooperative_grid"):
        scale_kernel[(1,)](x, out, 16, BLOCK=16, launch_cooperative_grid=True)


def test_what_triton_raises_for_arguments_is_raised_here_too() -> None:
    x, out = arrays()
    with pytest.raises(TypeError, match="`n` is missing"):
        scale_kernel[(1,)](x, out, BLOCK=16)
    with pytest.raises(TypeError, match="object of type object"):
        scale_kernel[(1,)](object(), out, 16, BLOCK=16)
    with pytest.raises(OverflowError, match="64 bits"):
        scale_kernel[(1,)](x, out, 1 << 70, BLOCK=16)
    with pytest.raises(TypeError) as caught:
        scale_kernel[(1,)](x, out, BLOCK=16)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(copy, TypeError)
    assert str(copy) == str(caught.value)


@triton.jit
def helper(x):
    return tl.dot(x, x)


@triton.jit
def wrong_kernel(out_ptr):
    # The call below is what the position names.
    x = tl.zeros((16,), tl.float32)
    tl.store(out_ptr, helper(x))


def test_a_compile_error_says_its_place_in_tritons_words_and_in_ours() -> None:
    with pytest.raises(triton.CompilationError) as caught:
        wrong_kernel[(1,)](np.zeros(1, np.float32))
    text = str(caught.value)
    assert text.startswith("at 4:22:\n")
    assert "in helper (called from" in text


@triton.jit
def caller(x):
    return helper(x) + 1.0


@triton.jit
def wrong_two_calls_down(out_ptr):
    tl.store(out_ptr, caller(tl.zeros((16,), tl.float32)))


def test_errors_of_called_functions_are_causes_of_their_callers() -> None:
    for launch in (wrong_two_calls_down[(1,)], wrong_two_calls_down.warmup):
        extra = {} if launch is not wrong_two_calls_down.warmup else {"grid": (1,)}
        with pytest.raises(triton.CompilationError) as caught:
            launch(np.zeros(1, np.float32), **extra)
        outer = caught.value
        middle, inner = outer.__cause__, outer.__cause__.__cause__
        assert inner.__cause__ is None
        lines = [error.src[error.node.col_offset :] for error in (outer, middle, inner)]
        starts = ("caller(tl.zeros", "helper(x)", "x)")
        assert all(map(str.startswith, lines, starts)), lines
        assert {error.error_message for error in (outer, middle, inner)} == {inner.summary}
        assert isinstance(middle, triton.CompilationError) and type(inner) is type(outer)


def test_an_error_in_the_kernel_itself_has_no_cause() -> None:
    @triton.jit
    def direct(x):
        tl.store(x, tl.dot(x, x))

    with pytest.raises(triton.CompilationError) as caught:
        direct[(1,)](np.zeros(1, np.float32))
    assert caught.value.__cause__ is None


# --- compiled kernels -------------------------------------------------------------------------


SIGNATURE = {
    "x_ptr": "*fp32",
    "out_ptr": "*fp32",
    "n": "i32",
    "factor": "constexpr",
    "BLOCK": "constexpr",
}


def compiled_scale():
    source = triton.compiler.ASTSource(
        scale_kernel,
        SIGNATURE,
        {"factor": 3, "BLOCK": 16},
        {(0,): [["tt.divisibility", 16]], (2,): [["tt.divisibility", 16]]},
    )
    return triton.compile(source, options={"num_warps": 2, "unknown": 1})


def test_a_kernel_compiles_without_a_launch_and_runs_on_its_own() -> None:
    kernel = compiled_scale()
    assert kernel.metadata.name == "scale_kernel"
    assert kernel.metadata.target.backend == "cpu"
    assert kernel.metadata._asdict()["shared"] == 1  # scripts divide by it
    assert "tt.load" in kernel.asm["ttir"]
    assert "define" in kernel.asm["llir"]
    x, out = arrays(16)
    kernel[(1,)](x, out, 16, 3, 16)
    np.testing.assert_array_equal(out, x * 3)


def test_a_compiled_kernel_is_launched_without_its_constants_too() -> None:
    kernel = compiled_scale()
    x, out = arrays(16)
    for size in (16, 9):
        out[:] = 0
        kernel[(1,)](x, out, size)
        np.testing.assert_array_equal(out[:size], x[:size] * 3)
        assert not out[size:].any()
    with pytest.raises(triton.TritonError, match="the argument `BLOCK` is missing"):
        kernel[(1,)](x, out, 16, 3)


@triton.jit
def scale_apart(x, scales, out, n, step, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + i * step, mask=i < n)
    if scales is not None:
        values *= tl.load(scales + i, mask=i < n)
    tl.store(out + i, values, mask=i < n)


@pytest.mark.parametrize("has_scales", [False, True])
def test_a_compiled_kernel_takes_what_was_1_or_none_when_it_was_compiled(has_scales: bool) -> None:
    # Packages keep the kernel of a `warmup` under less than its arguments, such as their dtypes.
    x, out = arrays(48)
    scales = np.arange(48, dtype=np.float32) if has_scales else None
    kernel = scale_apart.warmup(x, None, out, 16, 1, BLOCK=16, grid=(1,))
    for step in (1, 3, 1, 3, 2):
        out[:] = 0
        kernel[(1,)](x, scales, out, 16, step)
        expected = x[: 16 * step : step] * (1 if scales is None else scales[:16])
        np.testing.assert_array_equal(out[:16], expected)
        assert not out[16:].any()


def test_the_launch_of_a_compiled_kernel_takes_what_torch_passes() -> None:
    kernel = compiled_scale()
    kernel._init_handles()
    x, out = arrays(32)
    seen = []
    for _ in range(3):
        kernel.run(
            *(2, 1, 1, 0, kernel.function, kernel.packed_metadata, "launch"),
            *(lambda info: seen.append(("enter", info)), lambda info: seen.append(("exit", info))),
            *(x, out, 32, 3, 16),
        )
    np.testing.assert_array_equal(out, x * 3)
    assert seen == [("enter", "launch"), ("exit", "launch")] * 3


def run_scale(kernel, grid, x, out, *, enter=None, exit=None) -> None:
    """Run it as torch does."""
    kernel.run(*grid, 0, kernel.function, kernel.packed_metadata, "launch", enter, exit,
               *(x, out, x.size, 3, 16))  # fmt: skip


def python_calls(function) -> int:
    """How many functions of Python a call of `function` calls."""
    calls = []
    sys.setprofile(lambda frame, event, _: calls.append(frame) if event == "call" else None)
    try:
        function()
    finally:
        sys.setprofile(None)
    return len(calls) - 1


def test_a_compiled_kernel_runs_without_python_from_the_second_time_on() -> None:
    kernel = compiled_scale()
    kernel._init_handles()
    x, out = arrays(32)
    chain = triton.knobs.runtime.launch_enter_hook
    leading = (2, 1, 1, 0, kernel.function, kernel.packed_metadata, None, chain, None)

    def launch() -> None:
        kernel.run(*leading, x, out, 32, 3, 16)

    assert python_calls(launch) > 0
    out[:] = 0
    assert python_calls(launch) == 0
    np.testing.assert_array_equal(out, x * 3)


def test_a_hook_that_comes_after_launches_without_python_is_called_until_it_goes() -> None:
    kernel = compiled_scale()
    kernel._init_handles()
    x, out = arrays(32)
    chain, seen = triton.knobs.runtime.launch_exit_hook, []
    for hooks in ([], [], [seen.append], (), (seen.append,), []):
        chain.calls = hooks
        out[:] = 0
        run_scale(kernel, (2, 1, 1), x, out, exit=chain)
        np.testing.assert_array_equal(out, x * 3)
    assert seen == ["launch"] * 2


def test_a_hook_that_is_no_chain_is_called_whatever_it_holds() -> None:
    class Recorder:
        calls = ()

        def __call__(self, metadata) -> None:
            seen.append(metadata)

    kernel, seen = compiled_scale(), []
    kernel._init_handles()
    x, out = arrays(32)
    for hook in (None, None, Recorder(), None):
        run_scale(kernel, (2, 1, 1), x, out, enter=hook)
    assert seen == ["launch"]


def test_arguments_of_other_types_are_refused_after_launches_without_python() -> None:
    kernel = compiled_scale()
    kernel._init_handles()
    x, out = arrays(32)
    for _ in range(2):
        run_scale(kernel, (2, 1, 1), x, out)
    for count in (0, 2, 9, 13, 15):
        with pytest.raises((TypeError, triton.TritonError)):
            kernel.run(*(2, 1, 1, 0, 0, None, None, None, None, x, out, 32, 3, 16, 1)[:count])
    frozen = out.copy()
    frozen.flags.writeable = False
    with pytest.raises(triton.TritonError):
        run_scale(kernel, (2, 1, 1), x, frozen)
    out[:] = 0
    run_scale(kernel, (0, 1, 1), x, out)
    assert not out.any()
    run_scale(kernel, (2, 1, 1), x, out)
    np.testing.assert_array_equal(out, x * 3)


IMPORTS = """
import sys
import triton.compiler, triton.testing, triton.tools, triton.knobs
print([name for name in sys.modules if name.startswith("tilewright._alias.")])
"""


def test_no_module_of_the_alias_is_loaded_a_second_time_under_its_own_name(tmp_path: Path) -> None:
    result = run_script(tmp_path / "script.py", IMPORTS, {})
    assert result.stdout == "[]\n", result.stderr


def test_a_constexpr_without_a_value_is_named() -> None:
    source = triton.compiler.ASTSource(scale_kernel, SIGNATURE, {"factor": 3})
    with pytest.raises(triton.CompilationError, match="`BLOCK` has no value"):
        triton.compile(source)


@pytest.mark.parametrize(
    "signature", [dict(enumerate(SIGNATURE.values())), ",".join(SIGNATURE.values()), None]
)
def test_a_signature_that_is_not_by_name_is_a_type_error(signature) -> None:
    with pytest.raises(TypeError, match=r"signature of scale_kernel\(\) is .*(\n.*)*x_ptr"):
        triton.compiler.ASTSource(scale_kernel, signature, {"factor": 3, "BLOCK": 16})


def test_a_kernel_has_its_full_name() -> None:
    assert scale_kernel._fn_name == f"{__name__}.scale_kernel"


def test_a_file_of_ir_is_refused_with_a_way_out() -> None:
    with pytest.raises(triton.TritonError, match="ASTSource"):
        triton.compile("kernel.ttir")


def test_the_ir_of_a_kernel_can_be_walked_inside_first() -> None:
    backend = triton.compiler.make_backend(driver.active.get_current_target())
    options = backend.parse_options({})
    context = triton._C.libtriton.ir.context()
    source = triton.compiler.ASTSource(scale_kernel, SIGNATURE, {"factor": 3, "BLOCK": 16})
    module = source.make_ir(backend.target, options, {}, {}, context)
    names, functions = [], []
    module.walk(lambda op: names.append(op.get_name()))
    module.walk(lambda op: functions.append(op.get_str_attr("sym_name")))
    assert module.verify()
    assert names[-2:] == ["tt.func", "builtin.module"]
    assert names.index("tt.load") < names.index("tt.store")
    assert "scale_kernel" in functions


def test_compiled_kernels_are_data_that_can_be_pickled() -> None:
    kernel = compiled_scale()
    state = {**kernel.__dict__, "src": None}
    copy = triton.compiler.CompiledKernel.__new__(triton.compiler.CompiledKernel)
    copy.__dict__.update(pickle.loads(pickle.dumps(state)))
    x, out = arrays(16)
    copy[(1,)](x, out, 16, 3, 16)
    np.testing.assert_array_equal(out, x * 3)


# --- hooks and knobs --------------------------------------------------------------------------


def test_launch_hooks_see_name_and_the_authors_metadata() -> None:
    def describe(grid, metadata, arguments):
        return {"grid": grid, "elements": arguments["N"]}

    kernel = make_kernel(launch_metadata=describe)
    seen = []
    hook = lambda metadata: seen.append(metadata.get())  # noqa: E731 - added and removed
    triton.knobs.runtime.launch_enter_hook.add(hook)
    try:
        x, out = arrays()
        kernel[(1,)](x, out, N=16)
    finally:
        triton.knobs.runtime.launch_enter_hook.remove(hook)
    kernel[(1,)](x, out, N=16)
    assert [(s["name"], s["grid"], s["elements"]) for s in seen] == [("changed_kernel", (1,), 16)]


def test_a_function_assigned_to_a_launch_hook_is_called() -> None:
    names = []
    kernel = make_kernel()
    x, out = arrays()
    try:
        triton.knobs.runtime.launch_exit_hook = lambda metadata: names.append("exit")
        triton.knobs.runtime.launch_enter_hook = lambda metadata: names.append("enter")
        kernel[(1,)](x, out, N=16)
    finally:
        triton.knobs.runtime.launch_enter_hook = None
        triton.knobs.runtime.launch_exit_hook = None
    assert names == ["enter", "exit"]


def test_compile_hooks_can_be_told_and_a_kernel_preloaded_from_what_they_got() -> None:
    kernel, told = make_kernel(), []
    with_hook = lambda **info: told.append(info)  # noqa: E731 - assigned below
    triton.knobs.runtime.jit_post_compile_hook = with_hook
    try:
        x, out = arrays()
        kernel[(1,)](x, out, N=16)
    finally:
        triton.knobs.runtime.jit_post_compile_hook = None
    assert told[0]["fn"].name == "changed_kernel"
    assert told[0]["repr"].startswith("changed_kernel[num_warps=4]")
    preloaded = make_kernel().preload(told[0]["compile"]["specialization_data"])
    assert preloaded.src.signature == told[0]["compile"]["signature"]


def test_a_cache_hook_that_says_true_leaves_the_kernel_uncompiled() -> None:
    kernel = make_kernel()
    triton.knobs.runtime.jit_cache_hook = lambda **info: True
    x, out = arrays()
    try:
        assert kernel[(1,)](x, out, N=16) is None
        assert kernel.warmup(x, out, N=16, grid=(1,)) is None
    finally:
        triton.knobs.runtime.jit_cache_hook = None
    assert not out.any()


def test_a_compile_listener_is_told_what_was_compiled_and_for_how_long() -> None:
    told = []
    triton.knobs.compilation.listener = lambda **found: told.append(found)
    try:
        compiled_scale()
    finally:
        triton.knobs.compilation.listener = None
    assert told[0]["metadata"]["name"] == "scale_kernel"
    assert told[0]["times"].total >= 0
    assert told[0]["src"].fn is scale_kernel


def test_kernels_are_compiled_by_an_executor_while_the_program_goes_on() -> None:
    mock = triton.MockTensor(tl.float32)
    with ThreadPoolExecutor(1) as executor, triton.AsyncCompileMode(executor) as mode:
        one = scale_kernel.warmup(mock, mock, 5, BLOCK=64, grid=(1,))
        two = scale_kernel.warmup(mock, mock, 6, BLOCK=64, grid=(1,))
        assert isinstance(one, triton.FutureKernel)
        assert one is two
        assert len(mode.future_kernels) == 1
    assert one.result().name == "scale_kernel"
    assert one.metadata.name == "scale_kernel"


def test_knobs_write_and_read_the_environment_and_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_ALWAYS_COMPILE", raising=False)
    monkeypatch.delenv("TILEWRIGHT_ALWAYS_COMPILE", raising=False)
    knobs = triton.knobs.compilation
    with knobs.scope():
        knobs.always_compile = True
        assert os.environ["TILEWRIGHT_ALWAYS_COMPILE"] == "1"
        assert os.environ["TRITON_ALWAYS_COMPILE"] == "1"
    assert not knobs.always_compile
    assert "TILEWRIGHT_ALWAYS_COMPILE" not in os.environ
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "1")
    assert triton.knobs.autotuning.print
    assert triton.knobs.cache.knob_descriptors["dump_dir"].name == "TRITON_DUMP_DIR"


def test_an_interpreted_kernel_is_known_as_one(tmp_path: Path) -> None:
    text = """
import os
import numpy as np
import triton, triton.language as tl
from triton.runtime.interpreter import InterpretedFunction
os.environ["TRITON_INTERPRET"] = "1"

@triton.jit
def kernel(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), 7.0)

x = np.zeros(8, np.float32)
kernel[(1,)](x, N=8)
print(isinstance(kernel, InterpretedFunction), x.sum())
"""
    result = run_script(tmp_path / "script.py", text, {})
    assert result.stdout.split() == ["True", "56.0"], result.stderr


THREADS = """
import numpy as np
import triton
import triton.language as tl

@triton.autotune([triton.Config({}, num_warps=2)], key=[])
@triton.jit
def threads_kernel(out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    asm = "mov.u32 $0, %ntid.x; // $1"
    threads = tl.inline_asm_elementwise(asm, "=r,r", [at], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out_ptr + at, threads)

out = np.zeros(64, np.int32)
threads_kernel[(1,)](out, 64)
print(set(out.tolist()))
"""


def test_a_program_of_triton_runs_in_the_simulator_where_that_is_asked_for(tmp_path: Path) -> None:
    result = run_script(tmp_path / "script.py", THREADS, {"TILEWRIGHT_SIMULATE": "sm_90a"})
    assert result.stdout.split() == ["{64}"], result.stderr


# --- tuning -----------------------------------------------------------------------------------


def tuned(configs, **options):
    @triton.autotune(configs, key=["n"], cache_results=False, **options)
    @triton.jit
    def tuned_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)

    return tuned_kernel


CONFIGS = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 64}, num_warps=8)]


def test_a_tuner_tells_the_listener_what_it_chose() -> None:
    told = []
    triton.knobs.autotuning.listener = lambda **found: told.append(found)
    try:
        kernel = tuned(CONFIGS, warmup=1, rep=1)
        x, out = arrays(64)
        for _ in range(2):
            kernel[lambda meta: (triton.cdiv(64, meta["BLOCK"]),)](x, out, 64)
    finally:
        triton.knobs.autotuning.listener = None
    np.testing.assert_array_equal(out, x + 1)
    assert len(told) == 1
    assert told[0]["best_config"] in CONFIGS
    assert set(told[0]["configs_timings"]) == set(CONFIGS)
    assert not told[0]["cache_hit"]


def test_a_tuner_shows_what_its_author_asked_for() -> None:
    kernel = tuned(CONFIGS, restore_value=["out_ptr"], reset_to_zero=["x_ptr"])
    assert kernel.restore_value == ["out_ptr"]
    assert kernel.reset_to_zero == ["x_ptr"]
    assert kernel.keys == ["n"]
    assert kernel.user_defined_pre_hook is False
    assert kernel.perf_model is None
    assert kernel.configs_top_k == 1.0
    assert isinstance(kernel, triton.KernelInterface)
    assert isinstance(kernel.fn, triton.JITFunction)


def test_a_derived_tuner_is_launched_through_its_run() -> None:
    class Counting(triton.runtime.Autotuner):
        runs = 0

        def run(self, *args, **kwargs):
            self.runs += 1
            return super().run(*args, **kwargs)

    inner = tuned(CONFIGS).fn
    kernel = Counting(inner, inner.arg_names, CONFIGS[:1], ["n"], None, None)
    x, out = arrays(16)
    kernel[(1,)](x, out, 16)
    assert kernel.runs == 1
    np.testing.assert_array_equal(out, x + 1)


def test_a_config_can_be_derived_changed_and_copied() -> None:
    class Marked(triton.Config):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.mark = 1

    config = Marked({"BLOCK": 16}, num_warps=8)
    config.__dict__.update(num_stages=5)
    assert config.all_kwargs()["num_stages"] == 5
    assert config == triton.Config({"BLOCK": 16}, num_warps=8, num_stages=5)
    assert hash(config) == hash(triton.Config({"BLOCK": 16}, num_warps=8, num_stages=5))
    assert pickle.loads(pickle.dumps(CONFIGS[0])) == CONFIGS[0]


# --- host classes -----------------------------------------------------------------------------


def test_memory_is_read_as_another_type() -> None:
    bits = np.array([0x3C, 0x40, 0x44, 0x00], np.uint8)
    out = np.zeros(4, np.float32)
    wrapped = triton.reinterpret(bits, tl.float8e5)
    convert_kernel[(1,)](wrapped, out, N=4)
    assert out.tolist() == [1.0, 2.0, 4.0, 0.0]
    assert wrapped.element_size() == 1
    with pytest.raises(TypeError, match="Cannot reinterpret"):
        triton.reinterpret(3, tl.float16)


@triton.jit
def convert_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets).to(tl.float32))


def test_the_driver_answers_for_the_cpu() -> None:
    active = driver.active
    assert active.get_current_target().backend == "cpu"
    assert active.utils.get_device_properties(0)["multiprocessor_count"] >= 1
    assert active.get_benchmarker() is triton.testing.do_bench
    assert active.map_python_to_cpp_type("*fp32") == "void*"
    driver.set_active(active)
    assert driver.active.get_current_target() == active.get_current_target()


@pytest.mark.parametrize("has_gpu", [False, True])
def test_without_a_choice_the_driver_is_that_of_the_gpu_where_there_is_one(
    has_gpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    backends = {name: triton.backends.backends[name].driver for name in ("cpu", "nvidia")}
    monkeypatch.setattr(backends["nvidia"], "is_active", classmethod(lambda cls: has_gpu))
    assert type(type(driver)().active) is backends["nvidia" if has_gpu else "cpu"]


def test_a_cache_manager_keeps_files_and_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton.runtime.cache import get_cache_manager

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    files = get_cache_manager("ab" * 32)
    assert files.get_file("kernel.bin") is None
    path = files.put(b"data", "kernel.bin")
    files.put_group("kernel.json", {"kernel.bin": path})
    assert Path(files.get_file("kernel.bin")).read_bytes() == b"data"
    assert files.get_group("kernel.json") == {"kernel.bin": path}


def test_a_profile_holds_ranges_and_the_kernels_inside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    import triton.profiler as proton

    monkeypatch.chdir(tmp_path)
    session = proton.start("profile")
    x, out = arrays()
    with proton.scope("step", {"bytes": 64}):
        scale_kernel[(1,)](x, out, 16, BLOCK=16)
    proton.finalize(session)
    (root,) = json.loads(Path("profile.hatchet").read_text())
    (step,) = root["children"]
    assert step["frame"]["name"] == "step"
    assert step["metrics"]["bytes"] == 64
    assert step["children"][0]["frame"]["name"] == "scale_kernel"
    assert not triton.knobs.runtime.has_launch_hooks


def test_a_profile_is_viewed_as_a_tree_with_rates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import json

    import triton.profiler.viewer as viewer

    inner = {
        "frame": {"name": "matmul", "type": "function"},
        "metrics": {"count": 2, "time (ns)": 5e8, "flops16": 3e12},
        "children": [],
    }
    root = {"frame": {"name": "ROOT"}, "metrics": {"count": 0, "time (ns)": 0}, "children": [inner]}
    (tmp_path / "p.hatchet").write_text(json.dumps([root]))
    tree, metrics = viewer.parse(["tflop16/s", "avg_time/ms"], tmp_path / "p.hatchet")
    viewer.print_tree(tree, metrics)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "0.000 0.000 ROOT",
        "  6.000 250.000 matmul",
    ]
    only, _ = viewer.parse(["time/s"], tmp_path / "p.hatchet", include="mat", threshold=0.1)
    assert [r.name for r in only] == ["matmul"]
    with pytest.raises(ValueError, match="no metric 'watts/s'"):
        viewer.parse(["watts/s"], tmp_path / "p.hatchet")


@triton.jit
def axis_of_the_grid(x):
    tl.program_id(20)


@triton.jit
def dimension_inserted_twice(x):
    tl.expand_dims(tl.arange(0, 4), (0, -3))


@pytest.mark.parametrize(
    ("kernel", "phrase"),
    [
        (axis_of_the_grid, "program_id axis must be 0, 1, or 2 but got 20"),
        (dimension_inserted_twice, "duplicate axes, normalized axes = [0, 0]"),
    ],
)
def test_what_a_function_of_the_language_refuses_is_the_cause(kernel, phrase) -> None:
    with pytest.raises(triton.CompilationError) as caught:
        kernel[(1,)](np.zeros(4, np.float32))
    assert isinstance(caught.value.__cause__, ValueError)
    assert phrase in str(caught.value.__cause__)


def test_tiles_sized_by_the_registers_of_a_device_are_as_large_as_on_a_gpu() -> None:
    properties = triton.runtime.driver.active.utils.get_device_properties(0)
    assert properties["max_num_regs"] == 1 << 16
