"""`triton.knobs`: settings as attributes that mirror environment variables.

A setting that Tilewright has a variable of its own for writes that one too, so that either name
works; the others are read and kept for programs that ask, and change nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Protocol

from tilewright.support.dataclass import dataclass
from tilewright.support.environment import set_variable, variable_text

from ._names import refuse
from ._settings import (
    Chain,
    Hook,
    NvidiaTool,
    base_knobs,
    env,
    env_base,
    env_bool,
    env_class,
    env_int,
    env_nvidia_tool,
    env_opt_bool,
    env_opt_str,
    env_str,
    env_str_callable_default,
    is_true,
    toenv,
)
from ._settings import Env as Env
from ._settings import HookChain as HookChain

# Whether assigning a setting writes its variable too, for the processes that this one starts.
propagate_env = True


@dataclass(frozen=True)
class CompileTimes:
    """How long a compilation took, in microseconds: before, in each stage, after."""

    ir_initialization: int
    lowering_stages: list[tuple[str, int]]
    store_results: int

    @property
    def total_lowering(self) -> int:
        """The sum over the stages."""
        return sum(time for _, time in self.lowering_stages)

    @property
    def total(self) -> int:
        """Everything."""
        return self.ir_initialization + self.total_lowering + self.store_results


class CompilationListener(Protocol):
    """What is told about each compilation, by keywords."""

    def __call__(
        self,
        *,
        src: object,
        metadata: dict[str, object],
        metadata_group: dict[str, str],
        times: CompileTimes,
        cache_hit: bool,
    ) -> None: ...


LaunchHook = Callable[[object], None]
JITHook = Callable[..., bool | None]
InitHandleHook = Callable[..., None]
JITHookCompileInfo = Mapping[str, object]


def getenv(key: str, default: str | None = None) -> str | None:
    """A variable of the environment."""
    return variable_text(key) or default


def setenv(key: str, value: object) -> None:
    """Write a variable, unless `propagate_env` is false; None removes it."""
    if propagate_env:
        set_variable(key, toenv(value))


class cache_knobs(base_knobs):
    """Where files of clients are kept; compiled kernels are in Tilewright's cache."""

    home_dir = env_str("TRITON_HOME", os.path.expanduser("~/"))
    dir = env_str_callable_default("TRITON_CACHE_DIR", lambda: _files_directory())
    dump_dir = env_str_callable_default("TRITON_DUMP_DIR", lambda: cache.get_triton_dir("dump"))
    override_dir = env_str_callable_default(
        "TRITON_OVERRIDE_DIR", lambda: cache.get_triton_dir("override")
    )
    manager_class = env_class("TRITON_CACHE_MANAGER", "CacheManager")
    remote_manager_class = env_class("TRITON_REMOTE_CACHE_BACKEND", "RemoteCacheBackend")

    def get_triton_dir(self, dirname: str) -> str:
        """A directory below the home directory of Triton."""
        return os.path.join(self.home_dir, ".triton", dirname)


def _files_directory() -> str:
    """Beside Tilewright's cache where the user chose a place for that and none for Triton's."""
    own = variable_text("TILEWRIGHT_CACHE_DIR")
    is_moved = own is not None and variable_text("TRITON_HOME") is None
    return os.path.expanduser(str(own)) if is_moved else cache.get_triton_dir("cache")


class compilation_knobs(base_knobs):
    """How kernels are compiled."""

    always_compile = env_bool("TRITON_ALWAYS_COMPILE", ours="TILEWRIGHT_ALWAYS_COMPILE")
    dump_ir = env_bool("TRITON_KERNEL_DUMP")
    override = env_bool("TRITON_KERNEL_OVERRIDE")
    dump_ir_extract_di_local_variables = env_bool("LLVM_EXTRACT_DI_LOCAL_VARIABLES")
    store_binary_only = env_bool("TRITON_STORE_BINARY_ONLY")
    use_ir_loc = env_opt_str("USE_IR_LOC")
    disable_line_info = env_bool("TRITON_DISABLE_LINE_INFO")
    front_end_debugging = env_bool(
        "TRITON_FRONT_END_DEBUGGING", ours="TILEWRIGHT_FRONT_END_DEBUGGING"
    )
    allow_non_constexpr_globals = env_bool(
        "TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", ours="TILEWRIGHT_ALLOW_NON_CONSTEXPR_GLOBALS"
    )
    enable_asan = env_bool("TRITON_ENABLE_ASAN")
    enable_experimental_consan = env_bool("TRITON_ENABLE_EXPERIMENTAL_CONSAN")
    instrumentation_mode = env_str("TRITON_INSTRUMENTATION_MODE", "")

    def __init__(self) -> None:
        self.listener: Hook | None = None


class autotuning_knobs(base_knobs):
    """How the autotuner works."""

    print = env_bool("TRITON_PRINT_AUTOTUNING", ours="TILEWRIGHT_PRINT_AUTOTUNING")
    cache = env_bool("TRITON_CACHE_AUTOTUNING")
    adaptive = env_bool("TRITON_ADAPTIVE_AUTOTUNING")

    def __init__(self) -> None:
        self.listener: Hook | None = None


class runtime_knobs(base_knobs):
    """How kernels are launched, and who is told about it."""

    interpret = env_bool("TRITON_INTERPRET", ours="TILEWRIGHT_INTERPRET")
    debug = env_bool("TRITON_DEBUG", ours="TILEWRIGHT_DEBUG")
    override_arch = env_opt_str("TRITON_OVERRIDE_ARCH")
    sanitize_overflow = env_bool("TRITON_SANITIZE_OVERFLOW", default=True)

    def __init__(self) -> None:
        self.jit_cache_hook: Hook | None = None
        self.jit_post_compile_hook: Hook | None = None
        self.add_stages_inspection_hook: Hook | None = None

    launch_enter_hook = Chain()
    launch_exit_hook = Chain(reversed=True)
    kernel_load_start_hook = Chain()
    kernel_load_end_hook = Chain(reversed=True)
    kernel_unload_hook = Chain()

    @property
    def has_launch_hooks(self) -> bool:
        """Whether somebody wants to know of launches."""
        return bool(self.launch_enter_hook.calls or self.launch_exit_hook.calls)


class language_knobs(base_knobs):
    """Defaults of the language."""

    fp32_default = env_opt_str("TRITON_F32_DEFAULT")
    default_fp_fusion = env_bool("TRITON_DEFAULT_FP_FUSION", default=True)
    force_disable_fp_fusion = env_bool("TRITON_FORCE_DISABLE_FP_FUSION")


class nvidia_knobs(base_knobs):
    """The tools for NVIDIA GPUs."""

    ptxas = env_nvidia_tool("ptxas", ours="TILEWRIGHT_PTXAS")
    ptxas_blackwell = env_nvidia_tool("ptxas-blackwell")
    cuobjdump = env_nvidia_tool("cuobjdump")
    nvdisasm = env_nvidia_tool("nvdisasm")
    libdevice_path = env_opt_str("TRITON_LIBDEVICE_PATH")
    libcuda_path = env_opt_str("TRITON_LIBCUDA_PATH")
    ptxas_options = env_opt_str("PTXAS_OPTIONS")
    disable_ptxas_opt = env_bool("DISABLE_PTXAS_OPT")
    dump_nvptx = env_bool("NVPTX_ENABLE_DUMP")
    dump_ptxas_log = env_bool("TRITON_DUMP_PTXAS_LOG")
    mock_ptx_version = env_opt_str("TRITON_MOCK_PTX_VERSION")


class amd_knobs(base_knobs):
    """Settings for AMD GPUs, which kernels do not run on here."""

    use_buffer_ops = env_bool("AMDGCN_USE_BUFFER_OPS", default=True)
    dump_amdgcn = env_bool("AMDGCN_ENABLE_DUMP")
    libhip_path = env_opt_str("TRITON_LIBHIP_PATH")
    global_prefetch = env_int("TRITON_HIP_GLOBAL_PREFETCH")
    local_prefetch = env_int("TRITON_HIP_LOCAL_PREFETCH")
    use_block_pingpong = env_opt_bool("TRITON_HIP_USE_BLOCK_PINGPONG")
    use_in_thread_transpose = env_bool("TRITON_HIP_USE_IN_THREAD_TRANSPOSE")
    scalarize_packed_fops = env_bool("AMDGCN_SCALARIZE_PACKED_FOPS")


class build_knobs(base_knobs):
    """Compilers of C, which are never called here."""

    cc = env_opt_str("CC")
    cudacrt_path = env_opt_str("TRITON_CUDACRT_PATH")
    cudart_path = env_opt_str("TRITON_CUDART_PATH")

    @property
    def backend_dirs(self) -> set[str]:
        """The folders with headers and libraries of CUDA that were named."""
        return {path for path in (self.cudacrt_path, self.cudart_path) if path is not None}


class redis_knobs(base_knobs):
    """A remote cache, which is not used here."""

    key_format = env_str("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}")
    host = env_str("TRITON_REDIS_HOST", "localhost")
    port = env_int("TRITON_REDIS_PORT", 6379)


class proton_knobs(base_knobs):
    """Settings of the profiler."""

    cupti_lib_dir = env_opt_str("TRITON_CUPTI_LIB_PATH")
    profile_buffer_size = env_int("TRITON_PROFILE_BUFFER_SIZE", 64 << 20)
    enable_nvtx = env_bool("TRITON_ENABLE_NVTX", default=True)
    disable = env_bool("PROTON_DISABLE")


build = build_knobs()
redis = redis_knobs()
cache = cache_knobs()
compilation = compilation_knobs()
autotuning = autotuning_knobs()
runtime = runtime_knobs()
language = language_knobs()
nvidia = nvidia_knobs()
amd = amd_knobs()
proton = proton_knobs()
_GROUPS = (build, redis, cache, compilation, autotuning, runtime, language, nvidia, amd, proton)


def refresh_knobs() -> None:
    """Pass what the environment says now to the variables of Tilewright."""
    for group in _GROUPS:
        for setting in group.knob_descriptors.values():
            text = variable_text(setting.name)
            if setting.ours is not None and text is not None and not variable_text(setting.ours):
                set_variable(setting.ours, setting.normal(text))
    if compilation.dump_ir and not variable_text("TILEWRIGHT_DUMP_IR"):
        set_variable("TILEWRIGHT_DUMP_IR", cache.dump_dir)


refresh_knobs()

__getattr__ = refuse(__name__, {})

__all__ = [
    "Chain",
    "CompilationListener",
    "CompileTimes",
    "Env",
    "HookChain",
    "InitHandleHook",
    "JITHook",
    "JITHookCompileInfo",
    "LaunchHook",
    "NvidiaTool",
    "base_knobs",
    "env",
    "env_base",
    "env_bool",
    "env_class",
    "env_int",
    "env_nvidia_tool",
    "env_opt_bool",
    "env_opt_str",
    "env_str",
    "env_str_callable_default",
    "getenv",
    "is_true",
    "refresh_knobs",
    "setenv",
    "toenv",
]
