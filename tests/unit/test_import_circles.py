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


def imports_of(*, types_too: bool) -> dict[str, set[str]]:
    """What each module imports, with or without what it imports for annotations alone."""
    graph = grimp.build_graph(
        "tilewright", exclude_type_checking_imports=not types_too, cache_dir=None
    )
    return {m: set(graph.find_modules_directly_imported_by(m)) for m in graph.modules}


def test_no_circle_of_imports() -> None:
    imports = imports_of(types_too=True)
    # Below `_alias` the modules are those that another package has; they may annotate freely.
    own = {m: v for m, v in imports.items() if not m.startswith("tilewright._alias")}
    assert not list(circles(own))


def test_no_circle_of_imports_under_the_published_names() -> None:
    # A function may wait with an import that few programs need, but not to hide a circle.
    assert not list(circles(imports_of(types_too=False)))


def test_a_circle_is_found() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert list(circles(imports)) == [
        ["a", "b", "c", "a"],
        ["b", "c", "a", "b"],
        ["c", "a", "b", "c"],
    ]
