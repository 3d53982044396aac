"""Fingerprints change with what they stand for and cost little."""

from __future__ import annotations

import importlib.metadata
import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilewright.runtime import fingerprint
from tilewright.runtime.fingerprint import (
    compiler_fingerprint,
    cpu_description,
    digest,
    distribution_stamps,
    host_cpu_fingerprint,
    installed_version,
    is_written_after,
    source_stamps,
)

X86 = b"processor\t: 0\nvendor_id\t: Maker\nmodel name\t: Fast\ncpu MHz\t\t: %s\nflags\t\t: %s\n\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "package"
    (root / "inner").mkdir(parents=True)
    (root / "__init__.py").write_text("__version__ = '1'\n")
    (root / "inner" / "pass.py").write_text("x = 1\n")
    return root


def test_fingerprints_are_keys_and_equal_in_another_process() -> None:
    code = (
        "from tilewright.runtime.fingerprint import *\n"
        "print(compiler_fingerprint(), host_cpu_fingerprint())"
    )
    env = {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    here = [compiler_fingerprint(), host_cpu_fingerprint()]
    assert done.stdout.split() == here
    assert all(len(value) == 64 for value in here)


def test_digest_tells_where_parts_are_cut() -> None:
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("abc", "")}) == 4


def test_digest_takes_any_text_and_bytes_alike() -> None:
    assert digest("é") == digest("é".encode())
    assert len(digest("\ud800")) == 64


def test_each_source_change_changes_the_stamps(package: Path) -> None:
    seen = [source_stamps(str(package))]
    source = package / "inner" / "pass.py"
    source.write_text("x = 12\n")
    seen.append(source_stamps(str(package)))
    os.utime(source, ns=(1, 1))
    seen.append(source_stamps(str(package)))
    source.rename(package / "inner" / "other.py")
    seen.append(source_stamps(str(package)))
    (package / "new.py").write_text("")
    seen.append(source_stamps(str(package)))
    assert all(a != b for a, b in itertools.pairwise(seen))


def test_a_file_that_was_written_since_is_seen(package: Path) -> None:
    start = time.time_ns()
    for path in package.rglob("*.py"):
        os.utime(path, ns=(start, start))
    assert not is_written_after(source_stamps(str(package)), start)
    os.utime(package / "inner" / "pass.py", ns=(start + 1, start + 1))
    assert is_written_after(source_stamps(str(package)), start)
    ahead = start + 3600 * 10**9
    os.utime(package / "inner" / "pass.py", ns=(ahead, ahead))
    assert not is_written_after(source_stamps(str(package)), start)


def test_a_process_that_may_run_old_sources_has_a_fingerprint_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_tree = compiler_fingerprint()
    monkeypatch.setattr(fingerprint, "_LOADED_NS", 0)
    assert len({of_tree, *(compiler_fingerprint.__wrapped__() for _ in range(2))}) == 3


def test_version_changes_the_stamps_where_times_are_fixed(package: Path) -> None:
    os.utime(package / "__init__.py", ns=(1, 1))
    first = source_stamps(str(package))
    (package / "__init__.py").write_text("__version__ = '2'\n")
    os.utime(package / "__init__.py", ns=(1, 1))
    assert source_stamps(str(package)) != first


def test_files_that_are_no_sources_do_not_matter(package: Path) -> None:
    first = source_stamps(str(package))
    (package / "notes.txt").write_text("")
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "stale.py").write_text("")
    (package / ".#lock.py").symlink_to(package / "nowhere")
    assert source_stamps(str(package)) == first


def test_package_without_files_never_has_the_same_stamps_twice(tmp_path: Path) -> None:
    missing = str(tmp_path / "archive.zip" / "package")
    assert source_stamps(missing) != source_stamps(missing)


def test_distribution_stamp_names_the_installed_version() -> None:
    assert distribution_stamps("llvmlite")[0].startswith("llvmlite-")
    for name in ("no_such_package", "no_such_package.inner"):
        assert distribution_stamps(name) == [f"{name} is missing"]


def test_package_on_the_path_is_stamped_by_its_sources(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(package.parent))
    assert distribution_stamps(package.name) == source_stamps(str(package))


def test_compiler_fingerprint_imports_neither_llvmlite_nor_xdsl() -> None:
    code = (
        "import sys\n"
        "from tilewright.runtime.fingerprint import compiler_fingerprint\n"
        "compiler_fingerprint()\n"
        "print({'llvmlite', 'xdsl', 'importlib.metadata'} & set(sys.modules))"
    )
    env = {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def _described(monkeypatch: pytest.MonkeyPatch, text: bytes) -> list[bytes]:
    monkeypatch.setattr(fingerprint, "_read", lambda path, limit: text)
    return cpu_description()


def test_cpu_features_change_the_description(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _described(monkeypatch, X86 % (b"1", b"sse avx"))
    wide = _described(monkeypatch, X86 % (b"1", b"sse avx avx512f"))
    assert plain != wide


def test_frequency_and_other_cpus_do_not_change_the_description(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = _described(monkeypatch, X86 % (b"800", b"sse"))
    two = _described(monkeypatch, X86 % (b"2300", b"sse") + b"processor\t: 1\nflags\t: x\n\n")
    assert one == two


def test_arm_lines_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"processor\t: 0\nBogoMIPS\t: 5\nFeatures\t: fp asimd sve\nCPU part\t: 0xd40\n\n"
    lines = [b"Features\t: fp asimd sve", b"CPU part\t: 0xd40"]
    assert _described(monkeypatch, text) == lines


def test_platform_describes_the_cpu_where_the_kernel_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fingerprint.platform, "processor", lambda: "arm")
    assert _described(monkeypatch, b"") == [b"arm"]


def test_installed_versions_are_those_of_the_distributions() -> None:
    for name in ("llvmlite", "numpy", "xdsl"):
        assert installed_version(name) == importlib.metadata.version(name)
    assert installed_version("a_package_that_nobody_has") is None
