"""No module imports itself, however long the way: not even inside a function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import grimp


def circles(imports: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """A way back to itself for each module that starts one: its shortest."""
    for start in sorted(imports):
        ways = [[start]]
        seen = {start}
        for way in ways:
            for imported in sorted(imports[way[-1]]):
                if imported == start:
                    yield [*way, start]
                    seen |= imports.keys()
                elif imported not in seen:
                    seen.add(imported)
                    ways.append([*way, imported])


def test_no_circle_of_imports() -> None:
    # What is imported for annotations alone counts, too.
    graph = grimp.build_graph("tilewright", cache_dir=None)
    imports = {m: set(graph.find_modules_directly_imported_by(m)) for m in graph.modules}
    assert not list(circles(imports))


def test_a_circle_is_found() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert list(circles(imports)) == [
        ["a", "b", "c", "a"],
        ["b", "c", "a", "b"],
        ["c", "a", "b", "c"],
    ]
