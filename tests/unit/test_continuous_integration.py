"""What `.ci/run` hands on to the checks: no setting of the machine that a newcomer lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAKE = '#!/bin/sh\necho "target $*"\nenv\n'


def test_the_checks_run_in_a_reduced_environment(tmp_path: Path) -> None:
    shell = shutil.which("bash")
    assert shell is not None, "`.ci/run` needs bash"
    make = tmp_path / "make"
    make.write_text(MAKE)
    make.chmod(0o755)
    settings = {"PIP_FIND_LINKS": "/a b/wheels", "UV_INDEX": "x", "https_proxy": "http://p:1"}
    hidden = {
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": "/nowhere",
        "TILEWRIGHT_DEBUG": "1",
        "FOO": "x",
    }
    path = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    done = subprocess.run(
        [shell, str(ROOT / ".ci" / "run")],
        env={"PATH": path, "HOME": "/home/someone", "LANG": "C", **settings, **hidden},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    targets = [line for line in lines if line.startswith("target ")]
    assert targets == [
        f"target {name}" for name in ("test", "ptxas-test", "torch-test", "mlir-test")
    ]
    seen = {line.partition("=")[0]: line.partition("=")[2] for line in lines if "=" in line}
    assert not hidden.keys() & seen.keys()
    assert {name: seen[name] for name in settings} == settings
    assert seen["HOME"] == "/home/someone" and seen["LANG"] == "C"
