"""Which copy of a `dot` operand is meant: from which source, into which layout."""

from __future__ import annotations

from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.dot.panels import Multiply, PanelLayout, RowLayout
from tilewright.targets.cpu.dot.widen import STORAGE_TYPE


@dataclass(frozen=True)
class PackSpec:
    """One copy of an operand; equal specs share one function.

    *Shapes* `extent` is M for A and N for B. `lanes` is the width of one step in k-groups;
    for B that of its layout, or more of them where 2x2 products read it and it is not `transposed`:
    the source holds `[K, M]` or `[N, K]`. `stride`: that of A's rows, or of its panels, if it is
    not what the layout says. `is_limited`: it is told how much of the operand there is.
    *Dtypes* `source`: the dtype in memory, i8, u8, f16, bf16, f32, f64 or an fp8.
    """

    layout: RowLayout | PanelLayout
    multiply: Multiply
    source: str
    extent: int
    k: int
    lanes: int
    transposed: bool = False
    features: frozenset[str] = frozenset()
    stride: int | None = None
    part: int = 0
    is_limited: bool = False

    @property
    def group(self) -> int:
        """The number of consecutive k in one lane."""
        return self.layout.k_group

    @property
    def source_type(self) -> str:
        """The LLVM type in which source elements are loaded."""
        return STORAGE_TYPE[self.source]

    @property
    def chunk(self) -> int:
        """How many k one vector of lanes covers."""
        return self.lanes * self.group

    @property
    def is_across_k(self) -> bool:
        """Whether a row of the source lies across k: `[K, M]` or `[K, N]`."""
        return self.transposed == isinstance(self.layout, RowLayout)

    @property
    def name(self) -> str:
        """The name of the function; injective on the specs of one machine."""
        role = "a" if isinstance(self.layout, RowLayout) else "b"
        way = "t" if self.transposed else "n"
        shape = f"{self.extent}x{self.k}.{self.lanes}x{self.group}"
        bias = "x" * (isinstance(self.layout, RowLayout) and self.layout.bias)
        place = f"{self.source}.{self.layout.element}.{shape}.{self._place}"
        return f"tw.pack.{role}{way}{bias}.{place}{'.limited' * self.is_limited}"

    @property
    def _place(self) -> str:
        """What the name says of where rows or panels are written."""
        if isinstance(self.layout, RowLayout):
            return str(self.row_stride)
        apart = "" if self.stride is None else f".{self.stride}"
        return f"{self.layout.columns}{apart}"

    @property
    def row_stride(self) -> int:
        """Elements from one row of A to the next."""
        assert isinstance(self.layout, RowLayout)
        return self.layout.stride_elems(self.k) if self.stride is None else self.stride

    @property
    def panel_stride(self) -> int:
        """Elements from one panel to the next."""
        assert isinstance(self.layout, PanelLayout)
        return self.layout.panel_elems(self.k) if self.stride is None else self.stride
