"""Machines as data: what is known of each, and how a model travels."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

import tilewright
from tests.unit.targets.nvidia.fake_cuda import FakeCuda
from tilewright.compiler.named_passes import run_passes_on_text
from tilewright.machine.cpus import MADE_UP_CPU
from tilewright.machine.gpus import GPUS, H20, H200, MADE_UP_GPU, SM_90A, gpu_of_capability
from tilewright.machine.mma import MATRIX_ATOMS
from tilewright.machine.model import ABSTRACT, MachineModel
from tilewright.ops.matmul import ir as matmul
from tilewright.runtime.drivers import load_driver
from tilewright.support import options
from tilewright.support.errors import InternalError, InvalidOption, UnsupportedError
from tilewright.targets.nvidia.errors import MachineNotSupported
from tilewright.targets.nvidia.host import device_machine, named_machine

MACHINES = {**GPUS, "made-up": MADE_UP_GPU, "cpu": MADE_UP_CPU, "abstract": ABSTRACT}
SOURCES = Path(tilewright.__file__).parent


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_a_model_comes_back_from_its_features(machine: MachineModel) -> None:
    again = MachineModel.from_features(machine.to_features())
    assert again == machine and hash(again) == hash(machine)
    assert all(type(value) in (int, str, bool) for value in machine.to_features().values())


def test_the_host_comes_back_from_its_features() -> None:
    host = load_driver("cpu").machine()
    assert MachineModel.from_features(host.to_features()) == host
    assert host.vector_bytes and host.enabled_features and not host.lanes > 1


def test_a_model_is_not_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        SM_90A.num_sms = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    "damage",
    [{"speed": 1}, {"lanes": "32"}, {"lanes": True}, {"has_tma": 1}, {"features": None}],
)
def test_what_is_no_machine_is_refused(damage: dict[str, object]) -> None:
    with pytest.raises(InternalError, match="not a machine"):
        MachineModel.from_features({**SM_90A.to_features(), **damage})  # type: ignore[dict-item]


def test_a_machine_without_one_of_its_features_is_refused() -> None:
    features = SM_90A.to_features()
    del features["num_sms"]
    with pytest.raises(InternalError, match="num_sms missing"):
        MachineModel.from_features(features)


@pytest.mark.parametrize("machine", GPUS.values(), ids=GPUS)
def test_the_sizes_of_a_gpu_fit_together(machine: MachineModel) -> None:
    assert machine.arch == f"sm_{machine.compute_capability}" + "a" * machine.has_tma
    assert machine.lanes == 32 and machine.num_banks * machine.bank_bytes == 128
    taken = machine.max_shared_bytes + machine.reserved_shared_bytes
    assert taken == machine.shared_bytes_per_sm <= machine.l1_bytes
    assert machine.max_threads_per_cta <= machine.max_threads_per_sm
    assert machine.has_mma and [a.name for a in machine.matrix_atoms] == [*machine.matrix_units]
    assert set(machine.matrix_units) <= set(MATRIX_ATOMS)


def test_only_hopper_has_wgmma() -> None:
    assert {m.arch for m in GPUS.values() if m.has_wgmma} == {"sm_90a"}
    assert H200.l2_bytes > SM_90A.l2_bytes and H20.num_sms < SM_90A.num_sms


@pytest.mark.parametrize("name", ["sm_80", "sm_86", "sm_89"])
def test_a_gpu_without_rules_is_refused_and_others_are_named(name: str) -> None:
    with pytest.raises(MachineNotSupported, match=f"{name} has no stmatrix") as caught:
        named_machine(name)
    assert all(other in str(caught.value) for other in ("sm_90a", "H100", "H200", "H20"))


def test_an_unknown_gpu_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="there is no machine 'sm_42'"):
        named_machine("sm_42")


def test_a_device_says_its_sizes_and_its_capability_the_rest() -> None:
    cuda = FakeCuda()
    found = device_machine(cuda, 0)
    assert (found.lanes, found.arch, found.has_wgmma) == (32, "sm_90a", True)
    blackwell = device_machine(FakeCuda(attributes={**cuda.attributes, 75: 10, 76: 3}), 0)
    assert (blackwell.arch, blackwell.has_wgmma, blackwell.has_tma) == ("sm_103a", False, True)


@pytest.mark.parametrize(("capability", "known"), [(90, "sm_90a"), (103, "sm_100a"), (87, "sm_86")])
def test_an_unknown_capability_has_what_the_one_before_has(capability: int, known: str) -> None:
    assert gpu_of_capability(capability).name == known


def test_the_schedule_pass_takes_any_machine_by_name() -> None:
    text = '"builtin.module"() ({\n^bb0:\n}) : () -> ()'
    with pytest.raises(InvalidOption, match="there is no machine 'sm_42'"):
        run_passes_on_text(text, "schedule{target=nvidia, machine=sm_42}")


def test_input_precisions_are_written_once() -> None:
    assert matmul.INPUT_PRECISIONS is options.INPUT_PRECISIONS
    assert options.INPUT_PRECISIONS[0] == "tf32"


def test_no_source_reads_a_machine_by_key_or_has_hopper_sizes_of_its_own() -> None:
    by_key = re.compile(r"""\bmachine(\[["']|\.get\()""")
    sizes = re.compile(r"(?<![\w.])(232448|233472|227 << 10|228 << 10|132 \* )")
    for path in SOURCES.rglob("*.py"):
        text = path.read_text("utf-8")
        assert not by_key.search(text), path
        assert path.name == "gpus.py" or not sizes.search(text), path
