"""`triton.knobs`: settings as attributes that mirror environment variables.

A setting that Tilewright has a variable of its own for writes that one too, so that either name
works; the others are read and kept for programs that ask, and change nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Generic, TypeVar, cast

from tilewright.support.options import runtime_options, set_variable, variable_text

from ._names import refuse

F = TypeVar("F", bound=Callable[..., object])
Value = TypeVar("Value")
Hook = Callable[..., object]
_UNSET = object()
_TRUE = ("1", "true", "on", "yes", "y")


class HookChain(Generic[F]):
    """Functions that are called one after the other; false while there are none."""

    def __init__(self, reversed: bool = False) -> None:
        self.calls: list[F] = []
        self.reversed = reversed

    def add(self, func: F) -> None:
        """Call `func` too, unless it is in the chain already."""
        if func not in self.calls:
            self.calls.append(func)

    def remove(self, func: F) -> None:
        """Call `func` no longer."""
        if func in self.calls:
            self.calls.remove(func)

    def __bool__(self) -> bool:
        return bool(self.calls)

    def __call__(self, *args: object, **kwargs: object) -> None:
        for call in self.calls if not self.reversed else self.calls[::-1]:
            call(*args, **kwargs)


class Chain:
    """An attribute that holds a chain of hooks; a function assigned to it is the only one."""

    def __init__(self, reversed: bool = False) -> None:
        self.chain: HookChain[Hook] = HookChain(reversed)

    def __get__(self, instance: object, owner: type | None = None) -> HookChain[Hook]:
        return self.chain

    def __set__(self, instance: object, hook: Hook | None) -> None:
        if hook is not self.chain:
            self.chain.calls = [] if hook is None else [hook]


class Env(Generic[Value]):
    """A setting with the environment variable that it mirrors.

    `ours` names the variable of Tilewright that means the same.
    """

    def __init__(
        self,
        name: str,
        parse: Callable[[str], Value],
        default: Value | Callable[[], Value],
        ours: str | None = None,
    ) -> None:
        self.name = name
        self.parse = parse
        self.default = default
        self.ours = ours

    def __set_name__(self, owner: type, name: str) -> None:
        self.attribute = name

    def __get__(self, instance: base_knobs | None, owner: type | None = None) -> Value:
        if instance is None:
            return cast("Value", self)
        kept = instance.__dict__.get(f"_{self.attribute}", _UNSET)
        if kept is not _UNSET:
            return cast("Value", kept)
        text = variable_text(self.name)
        if text is None and self.ours is not None:
            text = variable_text(self.ours)
        if text is not None:
            return self.parse(text)
        return (
            cast("Callable[[], Value]", self.default)() if callable(self.default) else self.default
        )

    def __set__(self, instance: base_knobs, value: Value) -> None:
        instance.__dict__[f"_{self.attribute}"] = value
        text = _text(value)
        for name in (self.name, self.ours):
            if name is not None:
                set_variable(name, text)

    def __delete__(self, instance: base_knobs) -> None:
        instance.__dict__.pop(f"_{self.attribute}", None)
        for name in (self.name, self.ours):
            if name is not None:
                set_variable(name, None)


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(int(value)) if isinstance(value, bool) else str(value)


def _flag(text: str) -> bool:
    return text.strip().lower() in _TRUE


def _optional_flag(text: str) -> bool | None:
    return _flag(text)


def _path(text: str) -> str | None:
    return os.path.expanduser(text)


def _bool(name: str, ours: str | None = None, default: bool = False) -> Env[bool]:
    return Env(name, _flag, default, ours)


def _string(name: str, default: str | None = None, ours: str | None = None) -> Env[str | None]:
    return Env(name, str, default, ours)


class base_knobs:
    """A group of settings."""

    @property
    def knob_descriptors(self) -> dict[str, Env[object]]:
        """The settings by attribute, each with its variable."""
        found: dict[str, Env[object]] = {}
        for cls in reversed(type(self).__mro__):
            found.update({n: v for n, v in vars(cls).items() if isinstance(v, Env)})
        return found

    @property
    def knobs(self) -> dict[str, object]:
        """The values by attribute."""
        return {name: getattr(self, name) for name in self.knob_descriptors}

    def copy(self) -> base_knobs:
        """A group with the same values."""
        made = type(self)()
        made.__dict__.update(self.__dict__)
        return made

    def reset(self) -> base_knobs:
        """Every setting as the environment has it, without what was assigned here."""
        for name in self.knob_descriptors:
            self.__dict__.pop(f"_{name}", None)
        return self

    @property
    def chains(self) -> list[HookChain[Hook]]:
        """The chains of hooks of the group."""
        return [
            v.chain
            for cls in type(self).__mro__
            for v in vars(cls).values()
            if isinstance(v, Chain)
        ]

    @contextmanager
    def scope(self) -> Generator[None]:
        """A block whose assignments end with it."""
        calls = [(chain, list(chain.calls)) for chain in self.chains]
        names = [v for e in self.knob_descriptors.values() for v in (e.name, e.ours) if v]
        texts = {name: variable_text(name) for name in names}
        state = self.__dict__.copy()
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(state)
            for chain, kept in calls:
                chain.calls = kept
            for name, text in texts.items():
                set_variable(name, text)


def _own_cache_directory() -> str:
    own = runtime_options().cache_dir
    return str(own) if own is not None else os.path.expanduser("~/.triton/cache")


class cache_knobs(base_knobs):
    """Where files of clients are kept; compiled kernels are in Tilewright's cache."""

    dir: Env[str] = Env("TRITON_CACHE_DIR", os.path.expanduser, _own_cache_directory)
    home_dir = _string("TRITON_HOME")
    dump_dir: Env[str | None] = Env("TRITON_DUMP_DIR", _path, None)
    override_dir: Env[str | None] = Env("TRITON_OVERRIDE_DIR", _path, None)
    manager_class = _string("TRITON_CACHE_MANAGER")
    remote_manager_class = _string("TRITON_REMOTE_CACHE_BACKEND")


class compilation_knobs(base_knobs):
    """How kernels are compiled."""

    always_compile = _bool("TRITON_ALWAYS_COMPILE", "TILEWRIGHT_ALWAYS_COMPILE")
    dump_ir = _bool("TRITON_KERNEL_DUMP")
    override = _bool("TRITON_KERNEL_OVERRIDE")
    dump_ir_extract_di_local_variables = _bool("LLVM_EXTRACT_DI_LOCAL_VARIABLES")
    store_binary_only = _bool("TRITON_STORE_BINARY_ONLY")
    use_ir_loc = _string("USE_IR_LOC")
    disable_line_info = _bool("TRITON_DISABLE_LINE_INFO")
    front_end_debugging = _bool("TRITON_FRONT_END_DEBUGGING", "TILEWRIGHT_FRONT_END_DEBUGGING")
    allow_non_constexpr_globals = _bool(
        "TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", "TILEWRIGHT_ALLOW_NON_CONSTEXPR_GLOBALS"
    )
    enable_asan = _bool("TRITON_ENABLE_ASAN")
    enable_experimental_consan = _bool("TRITON_ENABLE_EXPERIMENTAL_CONSAN")
    instrumentation_mode = _string("TRITON_INSTRUMENTATION_MODE", "")

    def __init__(self) -> None:
        self.listener: Hook | None = None


class autotuning_knobs(base_knobs):
    """How the autotuner works."""

    print = _bool("TRITON_PRINT_AUTOTUNING", "TILEWRIGHT_PRINT_AUTOTUNING")
    cache = _bool("TRITON_CACHE_AUTOTUNING")
    adaptive = _bool("TRITON_ADAPTIVE_AUTOTUNING")

    def __init__(self) -> None:
        self.listener: Hook | None = None


class runtime_knobs(base_knobs):
    """How kernels are launched, and who is told about it."""

    interpret = _bool("TRITON_INTERPRET", "TILEWRIGHT_INTERPRET")
    debug = _bool("TRITON_DEBUG", "TILEWRIGHT_DEBUG")
    override_arch = _string("TRITON_OVERRIDE_ARCH")
    sanitize_overflow = _bool("TRITON_SANITIZE_OVERFLOW", default=True)

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

    fp32_default = _string("TRITON_F32_DEFAULT")
    default_fp_fusion = _bool("TRITON_DEFAULT_FP_FUSION", default=True)
    force_disable_fp_fusion = _bool("TRITON_FORCE_DISABLE_FP_FUSION")


class nvidia_knobs(base_knobs):
    """The tools for NVIDIA GPUs."""

    ptxas = _string("TRITON_PTXAS_PATH", ours="TILEWRIGHT_PTXAS")
    ptxas_blackwell = _string("TRITON_PTXAS_BLACKWELL_PATH")
    cuobjdump = _string("TRITON_CUOBJDUMP_PATH")
    nvdisasm = _string("TRITON_NVDISASM_PATH")
    libdevice_path = _string("TRITON_LIBDEVICE_PATH")
    libcuda_path = _string("TRITON_LIBCUDA_PATH")
    ptxas_options = _string("PTXAS_OPTIONS")
    disable_ptxas_opt = _bool("DISABLE_PTXAS_OPT")
    dump_nvptx = _bool("NVPTX_ENABLE_DUMP")
    dump_ptxas_log = _bool("TRITON_DUMP_PTXAS_LOG")
    mock_ptx_version = _string("TRITON_MOCK_PTX_VERSION")


class amd_knobs(base_knobs):
    """Settings for AMD GPUs, which kernels do not run on here."""

    use_buffer_ops = _bool("AMDGCN_USE_BUFFER_OPS", default=True)
    dump_amdgcn = _bool("AMDGCN_ENABLE_DUMP")
    libhip_path = _string("TRITON_LIBHIP_PATH")
    use_block_pingpong = Env("TRITON_HIP_USE_BLOCK_PINGPONG", _optional_flag, None)
    use_in_thread_transpose = _bool("TRITON_HIP_USE_IN_THREAD_TRANSPOSE")
    scalarize_packed_fops = _bool("AMDGCN_SCALARIZE_PACKED_FOPS")


class build_knobs(base_knobs):
    """Compilers of C, which are never called here."""

    cc = _string("CC")
    cudacrt_path = _string("TRITON_CUDACRT_PATH")
    cudart_path = _string("TRITON_CUDART_PATH")


class redis_knobs(base_knobs):
    """A remote cache, which is not used here."""

    key_format = _string("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}")
    host = _string("TRITON_REDIS_HOST", "localhost")
    port: Env[int] = Env("TRITON_REDIS_PORT", int, 6379)


class proton_knobs(base_knobs):
    """Settings of the profiler."""

    cupti_lib_dir = _string("TRITON_CUPTI_LIB_PATH")
    profile_buffer_size: Env[int] = Env("TRITON_PROFILE_BUFFER_SIZE", int, 64 << 20)
    enable_nvtx = _bool("TRITON_ENABLE_NVTX", default=True)
    disable = _bool("PROTON_DISABLE")


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
                set_variable(setting.ours, _normal(setting, text))
    if compilation.dump_ir and not variable_text("TILEWRIGHT_DUMP_IR"):
        set_variable("TILEWRIGHT_DUMP_IR", cache.dump_dir or _path("~/.triton/dump"))


def _normal(setting: Env[object], text: str) -> str:
    return (_text(setting.parse(text)) or "") if isinstance(setting.default, bool) else text


refresh_knobs()

__getattr__ = refuse(__name__, {})
