"""Refuses to be built into an environment that has Triton itself."""

from importlib.metadata import PackageNotFoundError, version

from setuptools import setup

try:
    installed = version("triton")
except PackageNotFoundError:
    setup()
else:
    raise SystemExit(
        f"Triton {installed} is installed here, and tilewright-triton has the same package name.\n"
        "Uninstall Triton first (`pip uninstall triton`), or run single scripts with "
        "`tilewright run SCRIPT`, which leaves the environment as it is."
    )
