"""The NVIDIA driver against a fake GPU: contexts, launches by both paths, errors."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from tilewright.frontend.divisors import DivisorClass
from tilewright.frontend.passing import ParameterFacts
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.launch_numbers import LaunchGuard, guards_to_metadata
from tilewright.runtime.launcher import GATE, SLOW_PATH
from tilewright.support.errors import ArgumentNotSupported, TilewrightError
from tilewright.targets.nvidia.driver import NvidiaDriver, NvidiaKernel
from tilewright.targets.nvidia.errors import (
    DeviceFault,
    DeviceNotSupported,
    LaunchRefused,
    ResourcesExceeded,
)
from tilewright.targets.nvidia.launcher import HISTORY, NUM_ENTRY_SLOTS

from .fake_cuda import FLOAT16, ILLEGAL_ADDRESS, FakeCuda, FakeTensor

POINTER_ARGUMENT = ParameterFacts("*fp32", 0, True, False)
SIZE_ARGUMENT = ParameterFacts(
    "i32", 1, None, False, integer_class=DivisorClass(1, 16, takes_one=False)
)
BLOCK_ARGUMENT = ParameterFacts("constexpr", None, None, False)
PARAMETERS = (POINTER_ARGUMENT, SIZE_ARGUMENT, BLOCK_ARGUMENT)


def artifact(slots: Sequence[str] = ("ptr", "i32"), **metadata: object) -> Artifact:
    base = {
        "name": "scale",
        "slots": list(slots),
        "num_warps": 4,
        "shared_bytes": 0,
        "arguments": [[["x"], "*fp32"], [["n"], "i32"]],
    }
    return Artifact("key", {**base, **metadata}, {"cubin": b"cubin"})


def loaded(cuda: FakeCuda, **metadata: object) -> NvidiaKernel:
    kernel = artifact(**metadata)
    cuda.num_params = len(kernel.metadata["slots"])
    return NvidiaDriver(None, cuda).load(kernel, 0)


def test_a_launch_passes_grid_threads_stream_and_arguments() -> None:
    cuda = FakeCuda()
    kernel = loaded(cuda, shared_bytes=1024)
    kernel.launch((5, 6, 7), (0x7000, -3), stream=42)
    (launch,) = cuda.launches
    assert (launch.grid, launch.block) == ((5, 6, 7), (128, 1, 1))
    assert (launch.shared_bytes, launch.stream, launch.function) == (1024, 42, 170)
    assert launch.words == (0x7000, (1 << 64) - 3)
    assert launch.attributes == ()


def test_launch_attributes_follow_the_options() -> None:
    cuda = FakeCuda()
    options = {"launch_cooperative_grid": True, "launch_pdl": True}
    loaded(cuda, options=options, cluster_dims=[2, 1, 1]).launch((4, 1, 1), (0, 1))
    assert [number for number, _ in cuda.launches[0].attributes] == [4, 2, 6]
    assert cuda.launches[0].attributes[0] == (4, (2, 1, 1))


def test_ctas_of_a_program_widen_the_grid_and_form_a_cluster() -> None:
    cuda = FakeCuda()
    loaded(cuda, num_ctas=2).launch((3, 1, 1), (0, 1))
    assert cuda.launches[0].grid == (6, 1, 1)
    assert cuda.launches[0].attributes == ((4, (2, 1, 1)),)


def test_much_shared_memory_is_asked_for_once_when_the_kernel_is_loaded() -> None:
    cuda = FakeCuda()
    kernel = loaded(cuda, shared_bytes=200_000)
    kernel.launch((1, 1, 1), (0, 1))
    kernel.launch((1, 1, 1), (0, 1))
    assert [call for call in cuda.calls if call[0] == "attribute"] == [("attribute", 8, 200_000)]


def test_little_shared_memory_is_not_asked_for() -> None:
    cuda = FakeCuda()
    loaded(cuda, shared_bytes=48 << 10)
    assert not [call for call in cuda.calls if call[0] == "attribute"]


def test_a_large_cluster_is_allowed_when_the_kernel_is_loaded() -> None:
    cuda = FakeCuda()
    loaded(cuda, cluster_dims=[16, 1, 1])
    assert ("attribute", 14, 1) in cuda.calls


def test_too_much_shared_memory_is_refused_before_anything_is_loaded() -> None:
    cuda = FakeCuda()
    with pytest.raises(ResourcesExceeded, match="300000 bytes of shared memory"):
        loaded(cuda, shared_bytes=300_000)
    assert not [call for call in cuda.calls if call[0] == "load"]


def test_too_many_warps_are_refused() -> None:
    with pytest.raises(ResourcesExceeded, match="num_warps=32 or fewer"):
        loaded(FakeCuda(), num_warps=64)


def test_an_old_gpu_is_refused_by_name() -> None:
    cuda = FakeCuda(attributes={75: 8, 76: 0})
    with pytest.raises(DeviceNotSupported, match=r"Fake 0.*8\.0"):
        NvidiaDriver(None, cuda).machine(0)


def test_the_machine_is_described_by_features() -> None:
    machine = NvidiaDriver(None, FakeCuda()).machine(1)
    assert (machine.arch, machine.num_sms, machine.has_wgmma) == ("sm_90a", 132, True)


def test_a_thread_without_context_gets_the_shared_one() -> None:
    cuda = FakeCuda()
    loaded(cuda)
    assert ("primary", 0) in cuda.calls
    assert cuda.context == 100


def test_the_context_of_the_thread_is_used_when_it_is_the_devices() -> None:
    cuda = FakeCuda(context=100)
    loaded(cuda)
    assert not [call for call in cuda.calls if call[0] in ("primary", "context")]


def test_a_kernel_of_another_device_runs_there_and_the_context_is_put_back() -> None:
    cuda = FakeCuda(context=101)
    kernel = loaded(cuda)
    kernel.launch((1, 1, 1), (0, 1))
    assert ("load", b"cubin", 100) in cuda.calls
    assert cuda.context == 101


def test_an_illegal_address_names_what_was_launched() -> None:
    cuda = FakeCuda()
    kernel = loaded(cuda)
    kernel.launch((8, 1, 1), (0x7F00, 1000))
    cuda.result = ILLEGAL_ADDRESS
    with pytest.raises(DeviceFault) as caught:
        kernel.launch((9, 1, 1), (0x7F00, -1))
    text = str(caught.value)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in text
    assert "scale[(9, 1, 1)](x=0x7f00, n=-1)\n" in text
    assert "scale[(8, 1, 1)](x=0x7f00, n=1000)" in text


def test_a_fault_that_shows_while_loading_names_what_was_launched() -> None:
    cuda = FakeCuda()
    loaded(cuda).launch((3, 1, 1), (1, 2))
    cuda.load_result = ILLEGAL_ADDRESS
    with pytest.raises(DeviceFault, match=r"scale\[\(3, 1, 1\)\]\(x=0x1, n=2\)"):
        loaded(cuda)


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        (
            1,
            LaunchRefused,
            r"does not take this grid, with 128 threads and 0 bytes .*: scale\[\(1, 1, 1\)\]\(x=",
        ),
        (400, LaunchRefused, "no stream of the arrays' GPU"),
        (701, ResourcesExceeded, "128 threads"),
        (912, LaunchRefused, "multiple of the cluster"),
        (720, LaunchRefused, "do not fit on the GPU together"),
        (999, LaunchRefused, "CUDA_ERROR_UNKNOWN"),
    ],
)
def test_result_codes_are_errors_of_the_kernel(
    code: int, error: type[TilewrightError], text: str
) -> None:
    cuda = FakeCuda(result=code)
    with pytest.raises(error, match=text) as caught:
        loaded(cuda).launch((1, 1, 1), (0, 1))
    assert "scale" in str(caught.value)


def test_an_unknown_load_error_keeps_the_drivers_words() -> None:
    cuda = FakeCuda(load_result=218)
    with pytest.raises(TilewrightError, match="something went wrong"):
        loaded(cuda)


# --- the native path --------------------------------------------------------------------------


def native(cuda: FakeCuda, x: FakeTensor, n: int = 7, **metadata: object):
    kernel = loaded(cuda, **metadata)
    launcher = kernel.fast_launcher(PARAMETERS, (x, n, 64))
    assert launcher is not None
    return launcher


def test_the_native_launch_passes_the_same_as_the_slow_one() -> None:
    cuda = FakeCuda()
    x = FakeTensor(0x7000)
    kernel = loaded(cuda, shared_bytes=512, num_ctas=2)
    launcher = kernel.fast_launcher(PARAMETERS, (x, 7, 64))
    assert launcher is not None
    kernel.launch((2, 3, 4), (x.data_ptr(), 7))
    assert launcher(2, 3, 4, x, 7, 64) is None
    slow, fast = cuda.launches
    assert slow == fast


def test_the_native_launch_takes_other_values_of_the_same_kind() -> None:
    cuda = FakeCuda()
    launcher = native(cuda, FakeTensor(0x7000))
    assert launcher(1, 1, 1, FakeTensor(0x8000), 9, 64) is None
    assert cuda.launches[-1].words == (0x8000, 9)


@pytest.mark.parametrize(
    "arguments",
    [
        (FakeTensor(0x7000, FLOAT16), 7, 64),
        (FakeTensor(0x7000, device=1), 7, 64),
        (FakeTensor(0x7000, kind="cpu"), 7, 64),
        (FakeTensor(0x7004), 7, 64),
        (FakeTensor(0x7000), 16, 64),
        (FakeTensor(0x7000), 7.0, 64),
        (FakeTensor(0x7000), 7, 128),
        (object(), 7, 64),
        (FakeTensor(0x7000), 7),
    ],
    ids=["dtype", "device", "host", "alignment", "class", "type", "constant", "object", "count"],
)
def test_the_native_launch_hands_back_what_it_was_not_made_for(
    arguments: tuple[object, ...],
) -> None:
    cuda = FakeCuda()
    launcher = native(cuda, FakeTensor(0x7000))
    assert launcher(1, 1, 1, *arguments) is SLOW_PATH
    assert cuda.launches == []


def test_the_native_launch_hands_back_in_another_context() -> None:
    cuda = FakeCuda()
    launcher = native(cuda, FakeTensor(0x7000))
    cuda.context = 101
    assert launcher(1, 1, 1, FakeTensor(0x7000), 7, 64) is SLOW_PATH


def test_the_native_launch_hands_back_while_somebody_watches() -> None:
    cuda = FakeCuda()
    launcher = native(cuda, FakeTensor(0x7000))
    with GATE.closed():
        assert launcher(1, 1, 1, FakeTensor(0x7000), 7, 64) is SLOW_PATH
    assert launcher(1, 1, 1, FakeTensor(0x7000), 7, 64) is None


def test_a_grid_without_programs_launches_nothing() -> None:
    cuda = FakeCuda()
    launcher = native(cuda, FakeTensor(0x7000))
    assert launcher(4, 0, 1, FakeTensor(0x7000), 7, 64) is None
    assert cuda.launches == []


def test_the_native_launch_raises_what_the_driver_reports() -> None:
    cuda = FakeCuda()
    launcher = native(cuda, FakeTensor(0x7000))
    cuda.result = ILLEGAL_ADDRESS
    with pytest.raises(DeviceFault, match=r"scale\[\(2, 1, 1\)\]\(x=0x8000, n=5\)"):
        launcher(2, 1, 1, FakeTensor(0x8000), 5, 64)


def test_the_stream_of_the_launch_wins() -> None:
    cuda = FakeCuda()
    kernel = loaded(cuda)
    stream = ParameterFacts("i64", 2, None, True)
    launcher = kernel.fast_launcher((*PARAMETERS, stream), (FakeTensor(0x7000), 7, 64, 99))
    assert launcher is not None
    assert launcher(1, 1, 1, FakeTensor(0x7000), 7, 64, 1 << 40) is None
    assert cuda.launches[-1].stream == 1 << 40


def test_the_current_stream_is_asked_for_at_each_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = iter((11, 12))
    asked: list[int] = []

    def current(device: int) -> int:
        asked.append(device)
        return next(streams)

    monkeypatch.setattr("tilewright.targets.nvidia.driver.stream_getter", lambda arrays: current)
    cuda = FakeCuda()
    launcher = native(cuda, FakeTensor(0x7000))
    for _ in range(2):
        assert launcher(1, 1, 1, FakeTensor(0x7000), 7, 64) is None
    assert [launch.stream for launch in cuda.launches] == [11, 12]
    assert asked == [0, 0]


def test_a_stream_getter_that_raises_stops_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    def current(device: int) -> int:
        raise LookupError("no stream")

    monkeypatch.setattr("tilewright.targets.nvidia.driver.stream_getter", lambda arrays: current)
    cuda = FakeCuda()
    launcher = native(cuda, FakeTensor(0x7000))
    with pytest.raises(LookupError, match="no stream"):
        launcher(1, 1, 1, FakeTensor(0x7000), 7, 64)
    assert cuda.launches == []


def test_a_host_array_has_no_native_launcher() -> None:
    kernel = loaded(FakeCuda())
    assert kernel.fast_launcher(PARAMETERS, (FakeTensor(0x7000, kind="cpu"), 7, 64)) is None


def test_many_arguments_are_noted_as_far_as_they_fit() -> None:
    count = NUM_ENTRY_SLOTS + 5
    slots = ("i32",) * count
    cuda = FakeCuda()
    names = [[[f"a{i}"], "i32"] for i in range(count)]
    kernel = loaded(cuda, slots=slots, arguments=names)
    parameters = [ParameterFacts("i32", i, None, False) for i in range(count)]
    values = [2 * i + 3 for i in range(count)]
    launcher = kernel.fast_launcher(parameters, values)
    assert launcher is not None and launcher(1, 1, 1, *values) is None
    assert cuda.launches[0].words == tuple(values)
    assert f"a{NUM_ENTRY_SLOTS - 1}={2 * NUM_ENTRY_SLOTS + 1})" in HISTORY.latest(1)[0]


def test_launches_from_several_threads_keep_their_arguments() -> None:
    cuda = FakeCuda()
    launcher = native(cuda, FakeTensor(0x7000))

    def run(base: int) -> None:
        for step in range(200):
            launcher(1, 1, 1, FakeTensor(16 * (base + step)), 2 * (base + step) + 3, 64)

    threads = [threading.Thread(target=run, args=(1000 * i,)) for i in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cuda.launches) == 600
    assert all(n == 2 * (x // 16) + 3 for x, n in (launch.words for launch in cuda.launches))


# --- tensor maps ------------------------------------------------------------------------------


RECIPE = {
    "number": "f32",
    "base": ["slot", 0, 64],
    "shape": [["slot", 1, 32], ["slot", 2, 32]],
    "strides": [["slot", 3, 64]],
    "box": [16, 32],
    "swizzle_bytes": 128,
    "fills_nan": False,
}


def mapped(cuda: FakeCuda) -> NvidiaKernel:
    """A kernel of an address, two extents and a stride, with one map of them."""
    cuda.num_maps = 1
    names = [
        [[name], type_] for name, type_ in zip("xhws", ("*fp32", "i32", "i32", "i64"), strict=True)
    ]
    slots = ("ptr", "i32", "i32", "i64")
    return loaded(cuda, slots=slots, arguments=names, tensor_maps=[RECIPE])


MAPPED_PARAMETERS = (
    POINTER_ARGUMENT,
    *(ParameterFacts(type_, slot, None, True) for type_, slot in (("i32", 1), ("i32", 2))),
    ParameterFacts("i64", 3, None, True),
)


def test_tensor_maps_are_the_same_on_both_paths() -> None:
    cuda = FakeCuda()
    kernel, x = mapped(cuda), FakeTensor(0x7000)
    launcher = kernel.fast_launcher(MAPPED_PARAMETERS, (x, 64, 48, 64))
    assert launcher is not None
    kernel.launch((1, 1, 1), (0x7000, 64, 48, 64))
    assert launcher(1, 1, 1, x, 64, 48, 64) is None
    slow, fast = cuda.launches
    assert slow == fast
    assert fast.maps == ((0x7000, 2, 48, 64, 256),)


def test_a_tensor_map_is_made_once_for_each_tensor() -> None:
    cuda = FakeCuda()
    launcher = mapped(cuda).fast_launcher(MAPPED_PARAMETERS, (FakeTensor(0x7000), 64, 48, 64))
    assert launcher is not None
    for _ in range(3):
        for address in (0x7000, 0x8000):
            assert launcher(1, 1, 1, FakeTensor(address), 64, 48, 64) is None
    assert [call for call in cuda.calls if call[0] == "encode"] == [
        ("encode", 0x7000),
        ("encode", 0x8000),
    ]
    assert [launch.maps[0][0] for launch in cuda.launches] == [0x7000, 0x8000] * 3


def test_more_tensors_than_entries_keep_their_own_maps() -> None:
    cuda = FakeCuda()
    launcher = mapped(cuda).fast_launcher(MAPPED_PARAMETERS, (FakeTensor(0x7000), 64, 48, 64))
    assert launcher is not None
    for _ in range(2):
        for number in range(1, 300):
            launcher(1, 1, 1, FakeTensor(4096 * number), number, 48, 4 * number)
    found = [launch.maps[0] for launch in cuda.launches]
    expected = [(4096 * n, 2, 48, n, 16 * n) for n in range(1, 300)]
    assert found == 2 * expected


def test_a_tensor_that_no_map_describes_is_refused_on_the_native_path() -> None:
    cuda = FakeCuda()
    launcher = mapped(cuda).fast_launcher(MAPPED_PARAMETERS, (FakeTensor(0x7000), 64, 48, 64))
    assert launcher is not None
    with pytest.raises(ArgumentNotSupported, match="no multiple of 16"):
        launcher(1, 1, 1, FakeTensor(0x7000), 64, 48, 63)
    assert cuda.launches == []


def test_threads_get_the_maps_of_their_own_tensors() -> None:
    cuda = FakeCuda()
    launcher = mapped(cuda).fast_launcher(MAPPED_PARAMETERS, (FakeTensor(0x7000), 64, 48, 64))
    assert launcher is not None

    def run(first: int) -> None:
        for number in range(first, first + 150):
            arguments = (FakeTensor(4096 * number), number, 48, 4 * number)
            # Another thread may take the entry that this one has just had filled.
            while launcher(1, 1, 1, *arguments) is SLOW_PATH:
                pass

    threads = [threading.Thread(target=run, args=(100 * i + 1,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cuda.launches) == 450
    assert all(launch.maps[0][3] * 4096 == launch.words[0] for launch in cuda.launches)


# --- kernels that are not made for every launch ---------------------------------------------


SMALL = LaunchGuard(("program", 0), "at_most", 4, "the grid is small")
EVEN = LaunchGuard(("slot", 1, 32), "multiple", 8, "h is a multiple of 8")


def guarded(
    cuda: FakeCuda, guards: Sequence[LaunchGuard] = (SMALL, EVEN), **changes: object
) -> tuple[NvidiaKernel, NvidiaKernel]:
    """A kernel with a map and guards, and the one in its place."""
    names = [
        [[name], type_] for name, type_ in zip("xhws", ("*fp32", "i32", "i32", "i64"), strict=True)
    ]
    slots = ("ptr", "i32", "i32", "i64")
    maps = [RECIPE]
    fields: dict[str, object] = {"tensor_maps": maps, **changes}
    fields["launch_guards"] = guards_to_metadata(guards)
    first = loaded(cuda, slots=slots, arguments=names, **fields)
    return first, loaded(cuda, slots=slots, arguments=names, name="other", num_warps=8)


@pytest.mark.parametrize(
    ("grid", "height", "is_fit"),
    [(2, 64, True), (5, 64, True), (6, 64, False), (2, 63, False), (7, 63, False)],
)
def test_a_launch_goes_to_the_kernel_that_is_made_for_it(
    grid: int, height: int, is_fit: bool
) -> None:
    cuda = FakeCuda()
    first, other = guarded(cuda)
    x = FakeTensor(0x7000)
    launcher = first.fast_launcher(MAPPED_PARAMETERS, (x, 64, 48, 64), (other,))
    assert launcher is not None
    cuda.num_maps = int(is_fit)
    for _ in range(3):
        assert launcher(grid, 1, 1, x, height, 48, 64) is None
    for launch in cuda.launches:
        assert launch.block == (128 if is_fit else 256, 1, 1) and launch.grid == (grid, 1, 1)
        assert launch.words[:4] == (0x7000, height, 48, 64)
        assert launch.maps == (((0x7000, 2, 48, height, 256),) if is_fit else ())
    assert len(cuda.launches) == 3


@pytest.mark.parametrize(
    ("height", "width", "block"), [(64, 48, 128), (63, 48, 64), (64, 47, 256), (63, 47, 256)]
)
def test_a_launch_goes_to_the_first_of_several_kernels_that_fits(
    height: int, width: int, block: int
) -> None:
    """One of even heights and widths, one of even widths, and one of all."""
    cuda = FakeCuda()
    _, last = guarded(cuda)
    even_width = LaunchGuard(("slot", 2, 32), "multiple", 8, "w is a multiple of 8")
    first, middle = (
        guarded(cuda, guards, num_warps=warps)[0]
        for warps, guards in ((4, [EVEN, even_width]), (2, [even_width]))
    )
    x = FakeTensor(0x7000)
    launcher = first.fast_launcher(MAPPED_PARAMETERS, (x, 64, 48, 64), (middle, last))
    assert launcher is not None
    cuda.num_maps = int(block != 256)
    for _ in range(2):
        assert launcher(1, 1, 1, x, height, width, 64) is None
        assert cuda.launches[-1].block == (block, 1, 1)


def test_kernels_take_turns_as_launches_do() -> None:
    cuda = FakeCuda()
    first, other = guarded(cuda)
    x = FakeTensor(0x7000)
    launcher = first.fast_launcher(MAPPED_PARAMETERS, (x, 64, 48, 64), (other,))
    assert launcher is not None
    for height in (64, 63, 72, 63, 64, 65, 64):
        cuda.num_maps = int(height % 8 == 0)
        assert launcher(1, 1, 1, x, height, 48, 64) is None
        assert cuda.launches[-1].block == (256 if height % 8 else 128, 1, 1)
    assert len([call for call in cuda.calls if call[0] == "encode"]) == 2


def test_without_another_kernel_the_launch_is_handed_back() -> None:
    cuda = FakeCuda()
    first, _ = guarded(cuda)
    launcher = first.fast_launcher(MAPPED_PARAMETERS, (FakeTensor(0x7000), 64, 48, 64))
    assert launcher is not None
    assert launcher(2, 1, 1, FakeTensor(0x7000), 63, 48, 64) is SLOW_PATH
    with pytest.raises(LaunchRefused, match="h is a multiple of 8"):
        first.launch((2, 1, 1), (0x7000, 63, 48, 64))
    assert cuda.launches == []
