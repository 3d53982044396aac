"""Depth-first orders without recursion: chains of values may be longer than Python's stack.

Values that are used twice are taken once: there are `2^n` ways through `n` sums of a value and
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Node = TypeVar("Node")


def needed_first(
    start: Node, needs: Callable[[Node], Iterable[Node]], is_known: Callable[[Node], bool]
) -> Iterator[Node]:
    """`start` and all that it needs and nobody knows yet, each after what it needs itself.

    Whoever takes a node makes it known before asking for the next: what a function that calls
    itself would ask for is then there.

    *Constraints* what is needed has no cycles but through nodes that are known.

    *Example*

    >>> lengths = {"": 0}
    >>> for word in needed_first("abc", lambda word: [word[1:]], lengths.__contains__):
    ...     lengths[word] = 1 + lengths[word[1:]]
    >>> lengths["abc"]
    3
    """
    if is_known(start):
        return
    stack = [(start, iter(needs(start)))]
    while stack:
        node, rest = stack[-1]
        following = next((n for n in rest if not is_known(n)), None)
        if following is not None:
            stack.append((following, iter(needs(following))))
            continue
        stack.pop()
        yield node


def once(pending: list[Node]) -> Iterator[Node]:
    """The nodes of a list, last first, and those that are added meanwhile, each once.

    *Example*

    >>> pending = [4]
    >>> for number in once(pending):
    ...     pending += [number // 2] * 2
    ...     print(number)
    4
    2
    1
    0
    """
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            yield node
