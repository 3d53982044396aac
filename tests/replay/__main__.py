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
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "replay"


@click.command()
@click.argument("base", default="main")
@click.option("--jobs", default=os.cpu_count() or 1, help="How many processes.")
@click.option("--show", default=3, help="Show the differences of so many kernels.")
@click.option("--causes", is_flag=True, help="Name the first pass that leaves something else.")
@click.option("--out", type=click.Path(path_type=Path), help="Keep the new texts in this folder.")
def main(base: str, jobs: int, show: int, causes: bool, out: Path | None) -> None:
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
    if causes:
        print_causes(commit, changed, jobs)
    sys.exit(1 if changed else 0)


def git(*arguments: str) -> str:
    """What git prints."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


@contextmanager
def checked_out(commit: str) -> Generator[Path, None, None]:
    """A folder with the files of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def write_all(tree: Path, folder: Path, jobs: int, writer: str = "texts.py") -> None:
    """Write what a writer of this tree has to say of another tree's corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    script = ROOT / "tests" / "replay" / writer
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


def report(before: Path, after: Path, show: int) -> list[str]:
    """Print what differs; the names of the texts that do."""
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
    return changed


def print_causes(commit: str, names: Sequence[str], jobs: int) -> None:
    """Group texts that changed by the first pass that leaves something else than before."""
    groups: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder, checked_out(commit) as tree:
        before, after = Path(folder) / "before", Path(folder) / "after"
        for place, root in ((before, tree), (after, ROOT)):
            place.mkdir()
            (place / "names").write_text("\n".join(names), encoding="utf-8")
            write_all(root, place, jobs, "stages.py")
        for name in names:
            machine = name.split(".")[-2]
            groups.setdefault(f"{machine} {cause(before / name, after / name)}", []).append(name)
    for first, found in sorted(groups.items(), key=lambda item: -len(item[1])):
        examples = ", ".join(name.rsplit("-", 1)[0] for name in found[:3])
        print(f"{len(found):5}  {first:40} {examples}")


def cause(before: Path, after: Path) -> str:
    """The first pass that leaves something that no pass left before."""
    old, new = steps(before), steps(after)
    for (then, left), (now, leaves) in zip(old, new, strict=False):
        if left != leaves:
            return now if then == now else f"{now} ({then} before)"
    return "end"


def steps(path: Path) -> list[tuple[str, str]]:
    """The passes that changed something, with digests of what they left."""
    found: list[tuple[str, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        name, digest = line.split("\t", 1)
        if not found or found[-1][1] != digest:
            found.append((name, digest))
    return found


if __name__ == "__main__":
    main()
