"""A host with AMX for tests: the real one, or this one with the model in the place of AMX."""

from __future__ import annotations

import pytest

from tests.asm.amx_model import modelled, with_pair_sums
from tilewright.codegen.optimize import CompiledModule, compile_module
from tilewright.codegen.whitelist import Whitelist, check_module
from tilewright.machine.model import MachineModel
from tilewright.support.dataclass import replace
from tilewright.targets.cpu import driver, manifest
from tilewright.targets.cpu.host import host_machine

AMX_FEATURES = ("+amx-tile", "+amx-bf16", "+amx-int8")
_BESIDE = ("avx512bw", "avx512vl")
"""What is asked for beside AMX: every machine with AMX has it, this host may not. Sums of pairs of
bytes are modelled there; masked accesses are LLVM's own, which it takes apart where it has to."""

_OPT_LEVEL = 0
"""How hard LLVM tries: the model is as right, and takes a third of the time to compile."""


def has_amx() -> bool:
    """Whether this process may run AMX's instructions."""
    return host_machine().has_feature("amx-tile")


def modelled_machine() -> MachineModel:
    """The host with AMX's features; its name keeps its code apart in caches."""
    host = host_machine()
    kept = (n for n in host.features if n[1:] not in _BESIDE and not n[1:].startswith("amx-"))
    features = (*kept, *(f"+{name}" for name in _BESIDE), *AMX_FEATURES)
    return replace(host, name=f"{host.name}, AMX modelled", features=features, vector_bytes=64)


def use_modelled_amx(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let kernels be compiled for AMX, in this process, and run on the model."""
    machine = modelled_machine()
    monkeypatch.setattr(driver, "host_machine", lambda: machine)
    monkeypatch.setattr(driver, "is_amx_permitted", lambda: True)
    monkeypatch.setattr(manifest, "compile_module", _compile_modelled)


def _compile_modelled(
    text: str,
    cpu: str,
    features: tuple[str, ...],
    triple: str | None = None,
    *,
    whitelist: Whitelist | None = None,
    emit_object: bool = True,
    emit_assembly: bool = False,
) -> CompiledModule:
    if whitelist is not None:
        check_module(text, whitelist, features)
    host = host_machine()
    missing = {f"+{name}" for name in _BESIDE if not host.has_feature(name)}
    own = tuple(name for name in features if name not in missing.union(AMX_FEATURES))
    text = modelled(text)
    if missing:
        text = with_pair_sums(text)
    return compile_module(
        text,
        cpu,
        own,
        triple,
        emit_object=emit_object,
        emit_assembly=emit_assembly,
        opt_level=_OPT_LEVEL,
    )


def compile_here(text: str) -> CompiledModule:
    """Compile for this host; LLVM may not know its CPU's name, so the features are said."""
    machine = host_machine()
    return compile_module(text, machine.arch, machine.features)
