"""What a pass is: a rewrite of a module between two levels, with its options as fields.

    @dataclass(frozen=True)
    class MergeDuplicates(Pass):
        name = "merge-duplicates"

        def apply(self, module: ModuleOp) -> None: ...

`compiler/pipeline.py` runs passes and checks their order.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp

from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class Pass:
    """A transformation of a module, in place; its fields are its options.

    `requires` and `produces` name levels of `ir/levels.py`. `after` names the passes that go
    before this one in every pipeline that has both: what they settle, this one reads.
    """

    name: ClassVar[str]
    requires: ClassVar[str] = "T0"
    produces: ClassVar[str] = "T0"
    after: ClassVar[tuple[str, ...]] = ()

    def apply(self, module: ModuleOp) -> object:
        """Rewrite the module; what was decided, for people, where there is something to say."""
        raise NotImplementedError
