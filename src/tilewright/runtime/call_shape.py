"""The forms of a kernel's calls: what each value of a call is to the launchers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.runtime.driver import FastLaunch
from tilewright.runtime.kernel import CompiledKernel
from tilewright.runtime.warm import CallForm
from tilewright.support.dataclass import dataclass


@dataclass
class CallShape:
    """Launches with the same keywords, and as many positional arguments as the last one had.

    `order` picks what launchers look at out of the values as they are passed, with `defaults`
    behind them: the kernel's parameters, then `extras`, the options and the stream by name; () is
    as they come.
    """

    order: tuple[int, ...]
    num_positional: int
    names: tuple[str, ...]
    extras: tuple[str, ...]
    defaults: tuple[object, ...]
    launchers: list[tuple[FastLaunch, CompiledKernel]]

    def form(self, keywords: tuple[str, ...]) -> CallForm:
        """This shape as the native calls take it; `keywords` are those of the calls."""
        num_given = self.num_positional + len(keywords)
        order = self.order or tuple(range(num_given))
        positions = tuple(i if i < num_given else None for i in order)
        defaults = tuple(None if i < num_given else self.defaults[i - num_given] for i in order)
        return CallForm(keywords, self.num_positional, self.names, positions, defaults)

    def try_others(
        self, extents: Sequence[object], values: Sequence[object]
    ) -> CompiledKernel | None:
        """Launch by a launcher behind the first and move it to the front; None if none fits."""
        for index in range(1, len(self.launchers)):
            launcher, kernel = self.launchers[index]
            if launcher(*extents, *values) is None:
                self.launchers.insert(0, self.launchers.pop(index))
                return kernel
        return None

    def kernel_for(self, given: tuple[object, ...]) -> CompiledKernel | None:
        """The kernel that values as they are passed would launch; None if no launcher fits.

        Launchers check every value before they look at the grid, and start nothing on one
        without programs.
        """
        values = given + self.defaults
        if self.order:
            values = tuple([values[index] for index in self.order])
        try:
            for launcher, kernel in self.launchers:
                if launcher(0, 1, 1, *values) is None:
                    return kernel
        except TypeError:
            pass  # not as many values as the kernel takes: the slow path says which
        return None

    @staticmethod
    def of_call(
        names: tuple[str, ...],
        num_positional: int,
        keywords: tuple[str, ...],
        defaults: Mapping[str, object],
    ) -> CallShape:
        """The shape of calls of a kernel with the parameters `names`, some with defaults."""
        given = (*names[:num_positional], *keywords)
        missing = tuple(name for name in names if name not in given)
        extras = tuple(name for name in given if name not in names)
        passed, wanted = (*given, *missing), (*names, *extras)
        is_in_order = passed == wanted and not missing
        order = () if is_in_order else tuple(passed.index(name) for name in wanted)
        values = tuple(defaults[name] for name in missing)
        return CallShape(order, num_positional, names, extras, values, launchers=[])
