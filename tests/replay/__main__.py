"""`python -m tests.replay BASE`: does the working tree emit what commit BASE emitted?

Both trees compile their own corpus; kernels that both have are compared, text against text. A
refactoring shows no difference; a change of code shows just the kernels that it means.
"""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "replay"


@click.command()
@click.argument("base", default="main")
@click.option("--jobs", default=os.cpu_count() or 1, help="How many processes.")
@click.option("--show", default=3, help="Show the differences of so many kernels.")
@click.option("--out", type=click.Path(path_type=Path), help="Keep the new texts in this folder.")
def main(base: str, jobs: int, show: int, out: Path | None) -> None:
    """Compare the emitted text of every corpus kernel with that of commit BASE."""
    commit = git("rev-parse", "--verify", f"{base}^{{commit}}")
    before = CACHE / commit
    if not (before / "complete").exists():
        with checked_out(commit) as tree:
            write_all(tree, before, jobs)
        (before / "complete").touch()
    with tempfile.TemporaryDirectory() as folder:
        after = out or Path(folder)
        write_all(ROOT, after, jobs)
        changed = report(before, after, show)
    sys.exit(1 if changed else 0)


def git(*arguments: str) -> str:
    """What git prints."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A folder with the files of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def write_all(tree: Path, folder: Path, jobs: int) -> None:
    """Write the texts of a tree's corpus, by this tree's writer."""
    folder.mkdir(parents=True, exist_ok=True)
    script = ROOT / "tests" / "replay" / "texts.py"
    paths = os.pathsep.join((str(tree / "src"), str(tree)))
    workers = [
        subprocess.Popen(
            [sys.executable, str(script), str(folder), str(part), str(jobs)],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": paths},
        )
        for part in range(jobs)
    ]
    codes = [worker.wait() for worker in workers]
    if any(codes):
        raise click.ClickException(f"compiling the corpus of {tree} failed")


def report(before: Path, after: Path, show: int) -> int:
    """Print what differs; the number of kernels with another text."""
    old = {path.name: path for path in sorted(before.glob("*.ll"))}
    new = {path.name: path for path in sorted(after.glob("*.ll"))}
    shared = [name for name in new if name in old]
    changed = [name for name in shared if old[name].read_bytes() != new[name].read_bytes()]
    for number, name in enumerate(changed):
        left, right = (tree[name].read_text("utf-8").splitlines() for tree in (old, new))
        print(f"changed: {name}  {len(left)} -> {len(right)} lines")
        if number < show:
            lines = difflib.unified_diff(left, right, "before", "after", lineterm="", n=1)
            print("\n".join(f"    {line}" for line in list(lines)[:40]))
    print(f"{len(shared) - len(changed)} texts the same, {len(changed)} changed, "
          f"{len(new) - len(shared)} new, {len(old) - len(shared)} gone")  # fmt: skip
    return len(changed)


if __name__ == "__main__":
    main()
