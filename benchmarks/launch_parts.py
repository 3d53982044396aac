"""Where the time of a warm launch goes: `python -m benchmarks.launch_parts`.

First the driver alone, called by native code in a loop: its two entry points, with and without
arguments, on the default stream and on another. Then what the native launcher asks for, each
alone. Then launches with a function that returns in the driver's place, from the launcher's bare
walk to `kernel[grid](…)` as users write it, and last the same with the driver. Without a GPU only
the parts that need no driver are measured.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import tilewright
import tilewright.language as tl
import torch
from tilewright.codegen.launch_calls import PYTHON_EXTERNALS
from tilewright.codegen.link import LoadedCode, load_object
from tilewright.codegen.optimize import compile_module
from tilewright.codegen.whitelist import CPU_WHITELIST
from tilewright.runtime import launch_table as table
from tilewright.runtime.accessors import tensor_accessors
from tilewright.runtime.launcher import Launch
from tilewright.runtime.warm import CallForm, WarmCalls
from tilewright.targets.nvidia.cuda import open_cuda
from tilewright.targets.nvidia.launcher import HISTORY, LaunchRecord, launcher_factory

SIZE = 64
BURST = 300
BURSTS = 41
GRID = (1,)

_NATIVE = r"""
declare void @Py_DecRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)

; What stands in the driver's place: a launch of nothing, and the context as it should be.
define i32 @launch_nothing(ptr %config, ptr %function, ptr %params, ptr %extra) {
  ret i32 0
}

@context = global ptr null

define i32 @give_context(ptr %at) {
  %context = load ptr, ptr @context
  store ptr %context, ptr %at
  ret i32 0
}

; `%function` is called `%count` times with four pointers: the number of calls that failed.
define i64 @repeat(ptr %function, i64 %count, ptr %a, ptr %b, ptr %c, ptr %d) {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %next]
  %failed = phi i64 [0, %entry], [%failed.next, %next]
  %code = call i32 %function(ptr %a, ptr %b, ptr %c, ptr %d)
  %bad = icmp ne i32 %code, 0
  %one = zext i1 %bad to i64
  %failed.next = add i64 %failed, %one
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %next, label %done
done:
  ret i64 %failed.next
}

; The same for cuLaunchKernel, with one program of 128 threads.
define i64 @repeat_plain(ptr %function, i64 %count, ptr %kernel, ptr %stream, ptr %params,
                         ptr %extra) {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %next]
  %failed = phi i64 [0, %entry], [%failed.next, %next]
  %code = call i32 %function(ptr %kernel, i32 1, i32 1, i32 1, i32 128, i32 1, i32 1, i32 0,
                             ptr %stream, ptr %params, ptr %extra)
  %bad = icmp ne i32 %code, 0
  %one = zext i1 %bad to i64
  %failed.next = add i64 %failed, %one
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %next, label %done
done:
  ret i64 %failed.next
}

; An accessor of a tensor, `%count` times.
define i64 @repeat_access(ptr %function, i64 %count, ptr %object, ptr %argument) {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %next]
  %value = call ptr %function(ptr %object, ptr %argument)
  call void @Py_DecRef(ptr %value)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %next, label %done
done:
  ret i64 0
}

; Release and take the GIL, `%count` times.
define i64 @repeat_release(i64 %count) {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %next]
  %state = call ptr @PyEval_SaveThread()
  call void @PyEval_RestoreThread(ptr %state)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %next, label %done
done:
  ret i64 0
}
"""

_SYMBOLS = (
    *("launch_nothing", "give_context", "repeat", "repeat_plain", "repeat_access"),
    *("repeat_release", "context"),
)
# cuda.h: what stands before the buffer's address, before its size, and at the end of the list.
_BUFFER, _BUFFER_BYTES, _END = 1, 2, 0


@tilewright.jit
def five_arguments(x_ptr, y_ptr, out_ptr, size, scale):
    """The kernel of the launch rows in `gpu_launches.py`."""
    if tl.program_id(0) > size:
        tl.store(out_ptr, tl.load(x_ptr) + tl.load(y_ptr) * scale)


@tilewright.jit
def no_arguments():
    """Nothing."""
    tl.debug_barrier()


@dataclass(frozen=True)
class Part:
    """One thing to measure: `run(count)` does it that often."""

    group: str
    name: str
    run: Callable[[int], object]
    burst: int = BURST


@dataclass(frozen=True)
class Launchers:
    """The launches of one record: the launcher alone, kept, and as users write them."""

    bare: Launch
    kernel: tilewright.JITFunction


@functools.cache
def native() -> LoadedCode:
    """The loops above, linked."""
    whitelist = CPU_WHITELIST.extended(PYTHON_EXTERNALS)
    return load_object(compile_module(_NATIVE, "", (), whitelist=whitelist).object, *_SYMBOLS)


def loop(name: str, *arguments: object, keeps_gil: bool = True) -> Callable[[int], object]:
    """One of the native loops with its pointers; the count of calls comes behind the function."""
    kind = ctypes.PYFUNCTYPE if keeps_gil else ctypes.CFUNCTYPE
    words = [ctypes.c_void_p] * len(arguments)
    first, rest = ([ctypes.c_void_p], words[1:]) if arguments else ([], [])
    function = kind(ctypes.c_int64, *first, ctypes.c_int64, *rest)(native().addresses[name])

    def run(count: int) -> None:
        failed = function(*arguments[:1], count, *arguments[1:])
        if failed:
            raise RuntimeError(f"{failed} of {count} calls failed")

    return run


def calls(function: Callable[..., object], *arguments: object) -> Callable[[int], object]:
    """A call from Python, in a loop."""

    def run(count: int) -> None:
        for _ in range(count):
            function(*arguments)

    return run


def launchers(
    kernel: tilewright.JITFunction, record: LaunchRecord, values: tuple[object, ...], place: int
) -> Launchers:
    """Launchers of a record for values like these, tensors on the device `place`."""
    factory = launcher_factory(None)
    assert factory is not None, "this Python's objects do not lie as the launcher reads them"
    guards = [guard(slot, value, place) for slot, value in enumerate(values)]
    bare = factory.make(guards, record, print)
    warm = WarmCalls(kernel._launch, bare)
    names = tuple(kernel.arg_names)
    form = CallForm((), len(values), names, tuple(range(len(values))), (None,) * len(values))
    assert warm.add(bare, kernel, form)
    kernel._warm, kernel._entry = warm, warm.call
    return Launchers(bare, kernel)


def guard(slot: int, value: object, place: int) -> table.Guard:
    """The guard that a launch of `five_arguments` has for a value."""
    if isinstance(value, int):
        return table.integer(slot, "i32", "multiple_of_16")
    if isinstance(value, float):
        return table.float32(slot)
    assert isinstance(value, torch.Tensor)
    accessors = tensor_accessors(torch.Tensor, "get_device")
    assert accessors is not None, "the accessors of torch.Tensor are not in C"
    return table.typed_tensor(slot, torch.Tensor, value.dtype, True, accessors, place)


def small_parts(tensor: torch.Tensor, getter: Callable[[int], int] | None) -> Iterator[Part]:
    """What a launch asks Python and torch for, each alone."""
    group = "alone"
    accessors = tensor_accessors(torch.Tensor, "get_device")
    assert accessors is not None
    yield Part(group, "release and take the GIL", loop("repeat_release"))
    for name, field in (("dtype", "dtype"), ("get_device()", "place"), ("data_ptr()", "data_ptr")):
        accessor = getattr(accessors, field)
        words = (accessor.function, id(tensor), accessor.argument)
        yield Part(group, f"tensor.{name}, called by native code", loop("repeat_access", *words))
    if getter is not None:
        yield Part(group, "the current stream, called by Python", calls(getter, 0))


def stubbed(record: LaunchRecord) -> LaunchRecord:
    """A copy of a record that launches nothing, in a context that is always the right one."""
    copy = LaunchRecord.from_buffer_copy(record)
    copy.launch = native().addresses["launch_nothing"]
    copy.get_context = native().addresses["give_context"]
    context = ctypes.c_void_p.from_address(native().addresses["context"])
    context.value = record.context
    return copy


def launch_parts(
    group: str, record: LaunchRecord, values: tuple[object, ...], device: int
) -> Iterator[Part]:
    """Launches of a record from the bare walk to the user's way of writing them."""
    count = len(values)
    kernel = five_arguments if values else no_arguments
    silent = LaunchRecord.from_buffer_copy(record)
    silent.stream_getter = None
    made = launchers(fresh(kernel), silent, values, device)
    name = f"{count} arguments"
    yield Part(group, f"launcher, {name}, no stream", calls(made.bare, 1, 1, 1, *values))
    made = launchers(fresh(kernel), record, values, device)
    yield Part(group, f"launcher, {name}", calls(made.bare, 1, 1, 1, *values))
    kept = made.kernel[GRID]
    yield Part(group, f"kernel[grid] kept, {name}", calls(kept, *values))
    yield Part(group, f"kernel[grid](…), {name}", written(made.kernel, values))


def fresh(kernel: tilewright.JITFunction) -> tilewright.JITFunction:
    """The same kernel as an object of its own."""
    return tilewright.jit(kernel.fn)


def written(kernel: tilewright.JITFunction, values: tuple[object, ...]) -> Callable[[int], object]:
    """`kernel[grid](…)` in a loop, as users write it."""
    if not values:

        def run_empty(count: int) -> None:
            for _ in range(count):
                kernel[GRID]()

        return run_empty
    x, y, out, size, scale = values

    def run(count: int) -> None:
        for _ in range(count):
            kernel[GRID](x, y, out, size, scale)

    return run


def driver_parts(record: LaunchRecord, values: tuple[object, ...]) -> Iterator[Part]:
    """The driver's entry points called by a native loop: what no launcher can be faster than."""
    group, name = "driver", f"{len(values)} arguments"
    buffer = packed(values)
    base = ctypes.addressof(buffer)
    params = (ctypes.c_void_p * 5)(*(base + 8 * index for index in range(5)))
    tight, extra = tight_buffer(values)
    config = type(record.config).from_buffer_copy(record.config)
    config.grid[:] = (1, 1, 1)
    other = torch.cuda.Stream()
    keep = (buffer, params, tight, extra, config, other)
    for label, stream in (("default stream", 0), ("another stream", other.cuda_stream)):
        chosen = type(config).from_buffer_copy(config)
        chosen.stream = stream
        words = (record.launch, ctypes.addressof(chosen), record.function)
        run = loop("repeat", *words, ctypes.addressof(params), None, keeps_gil=False)
        run = held(run, (keep, chosen))
        yield Part(group, f"cuLaunchKernelEx, {name}, {label}", run)
        for burst in (10, 100, 900):
            yield Part(group, f"the same in bursts of {burst}", run, burst)
        plain = open_cuda().entry_point("cuLaunchKernel")
        words = (plain, record.function, stream)
        run = loop("repeat_plain", *words, ctypes.addressof(params), None, keeps_gil=False)
        yield Part(group, f"cuLaunchKernel, {name}, {label}", held(run, keep))
        if values:
            run = loop("repeat_plain", *words, None, ctypes.addressof(extra), keeps_gil=False)
            yield Part(group, f"cuLaunchKernel, one buffer, {label}", held(run, keep))
    context = ctypes.c_void_p()
    run = loop("repeat", record.get_context, ctypes.addressof(context), None, None, None)
    yield Part("alone", "cuCtxGetCurrent", held(run, context))


def packed(values: tuple[object, ...]) -> ctypes.Array[ctypes.c_int64]:
    """The arguments in slots of 8 bytes."""
    words = (ctypes.c_int64 * 5)()
    for index, value in enumerate(values):
        words[index] = value.data_ptr() if isinstance(value, torch.Tensor) else SIZE
    return words


def tight_buffer(values: tuple[object, ...]) -> tuple[object, ctypes.Array[ctypes.c_void_p]]:
    """The arguments as a kernel's parameter space has them, and the list that announces them."""
    words = (ctypes.c_int64 * 4)()
    for index, value in enumerate(values[:3]):
        assert isinstance(value, torch.Tensor)
        words[index] = value.data_ptr()
    words[3] = SIZE
    size = ctypes.c_size_t(ctypes.sizeof(words))
    extra = (ctypes.c_void_p * 5)(
        *(_BUFFER, ctypes.addressof(words), _BUFFER_BYTES, ctypes.addressof(size), _END)
    )
    return (words, size), extra


def held(run: Callable[[int], object], owned: object) -> Callable[[int], object]:
    """The same, with what its addresses point to."""
    return functools.partial(_run_held, run, owned)


def _run_held(run: Callable[[int], object], owned: object, count: int) -> object:
    del owned
    return run(count)


def gpu_record(kernel: tilewright.JITFunction, values: tuple[object, ...]) -> LaunchRecord:
    """The record of a launcher that a first launch made, with its stream getter."""
    kernel[GRID](*values)
    kernel[GRID](*values)
    launcher, _ = kernel._shapes[()].launchers[0]
    record = launcher.__self__[1]
    assert isinstance(record, LaunchRecord)
    return record


def cpu_record(values: tuple[object, ...]) -> LaunchRecord:
    """A record without a driver behind it."""
    return LaunchRecord(
        num_params=len(values), grid_scale=1, stream_slot=-1, history=ctypes.addressof(HISTORY)
    )


def parts(has_gpu: bool) -> Iterator[Part]:
    """Everything to measure on this machine."""
    device = "cuda" if has_gpu else "cpu"
    x, y, out = (torch.ones(SIZE, device=device) for _ in range(3))
    place = x.get_device()
    values = (x, y, out, SIZE, 2.0)
    if not has_gpu:
        yield from small_parts(x, None)
        yield from launch_parts("no driver", stubbed(cpu_record(())), (), place)
        yield from launch_parts("no driver", stubbed(cpu_record(values)), values, place)
        return
    os.environ["TILEWRIGHT_TARGET"] = "nvidia"  # no array says where `no_arguments` belongs
    empty, full = gpu_record(fresh(no_arguments), ()), gpu_record(fresh(five_arguments), values)
    yield from driver_parts(empty, ())
    yield from driver_parts(full, values)
    yield from small_parts(x, torch._C._cuda_getCurrentRawStream)
    for group, change in (("no driver", stubbed), ("whole", LaunchRecord.from_buffer_copy)):
        yield from launch_parts(group, change(empty), (), place)
        yield from launch_parts(group, change(full), values, place)


def measure(chosen: list[Part], synchronize: Callable[[], object]) -> list[tuple[float, float]]:
    """The median and the least time of one call of each part, in µs, over bursts in turn."""
    samples: list[list[float]] = [[] for _ in chosen]
    for _ in range(BURSTS + 1):
        for part, times in zip(chosen, samples, strict=True):
            synchronize()
            started = time.perf_counter()
            part.run(part.burst)
            times.append((time.perf_counter() - started) / part.burst * 1e6)
    synchronize()
    return [(statistics.median(times[1:]), min(times[1:])) for times in samples]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.launch_parts", description=__doc__)
    parser.parse_args()
    has_gpu = torch.cuda.is_available()
    chosen = list(parts(has_gpu))
    figures = measure(chosen, torch.cuda.synchronize if has_gpu else lambda: None)
    print(f"{'part':58} {'median µs':>10} {'least µs':>9}")
    for part, (median, least) in zip(chosen, figures, strict=True):
        print(f"{part.group + ': ' + part.name:58} {median:10.3f} {least:9.3f}")


if __name__ == "__main__":
    main()
