"""Random schedules, and the ones that the design has as examples."""

from __future__ import annotations

from hypothesis import strategies as st

from tilewright.ir.schedule import (
    CLUSTERS,
    MASKS,
    MEDIA,
    PASSES,
    PERSISTENCE,
    RELEASES,
    REST,
    ROLE_KINDS,
    SPLITS,
    Anchor,
    Channel,
    Epilogue,
    LoopSchedule,
    Place,
    Role,
    Schedule,
    Step,
    Turns,
)

GEMM = """roles   load regs 40 | math x2 warps 4 regs 232 split m
ring ab tiles load#0 load#1 slots 4 tma release wait
loop for#1  dot#0 @0.0
epilogue tma columns 64 buffers 2      persist static"""

ATTENTION_STRAIGHT = """roles   load regs 24 | math x2 warps 4 regs 240 split m
ring k tiles load#1 slots 2 tma | ring v tiles load#2 slots 2 tma | ring q tiles load#0 slots 1 tma
loop for#0  dot#0 @0.0  dot#1 @1.1  rest @0.2  cvt:p @0.3  op:acc @0.3
order   dot#0 dot#1 wait(dot#0) release(k) rest wait(dot#1) release(v) cvt:p op:acc"""

ATTENTION_TURNS = """roles load regs 24 | math x3 regs 160 split m
loop for#0 dot#0 @0.0 rest @0.1 dot#1 @0.2; turns math lock dot#0 pass done; mask branch"""

GEMM_IN_CLUSTERS = f"{GEMM}; cluster 2"

EXAMPLES = (GEMM, GEMM_IN_CLUSTERS, ATTENTION_STRAIGHT, ATTENTION_TURNS)

_NAMES = st.sampled_from(("a", "ab", "k", "load", "math", "q_1", "_x"))
_HINTS = st.sampled_from(("acc", "p", "k.1", "_0"))
_PLACED_KINDS = ("dot", "load", "store", "cvt", "reduce", "op")


def anchors(*kinds: str) -> st.SearchStrategy[Anchor]:
    """Anchors of some kinds, by number or by hint."""
    kind = st.sampled_from(kinds)
    numbered = st.builds(Anchor, kind, st.integers(0, 12))
    return numbered | st.builds(Anchor, kind, st.just(-1), _HINTS)


_ROLES = st.lists(
    st.builds(
        Role,
        _NAMES,
        st.sampled_from(ROLE_KINDS),
        st.sampled_from((1, 2, 4, 8)),
        st.integers(1, 3),
        st.sampled_from((0, 24, 40, 160, 232, 240)),
        st.sampled_from(SPLITS),
    ),
    max_size=3,
    unique_by=lambda role: role.name,
)


@st.composite
def _channels(draw: st.DrawFn) -> tuple[Channel, ...]:
    names = draw(st.lists(_NAMES, max_size=3, unique=True))
    tiles = draw(st.lists(anchors("load"), min_size=len(names), max_size=6, unique=True))
    channels = []
    for index, name in enumerate(names):
        mine = tuple(tiles[index :: len(names)])
        slots, medium = draw(st.integers(1, 9)), draw(st.sampled_from(MEDIA))
        channels.append(Channel(name, mine, slots, medium, draw(st.sampled_from(RELEASES))))
    return tuple(channels)


@st.composite
def _loops(draw: st.DrawFn, roles: list[str], rings: list[str]) -> tuple[LoopSchedule, ...]:
    places = st.builds(Place, st.integers(0, 5), st.integers(0, 9), st.sampled_from(("", *roles)))
    placed = anchors(*_PLACED_KINDS) | st.just(REST)
    steps = st.builds(Step, st.just("run"), placed)
    steps |= st.builds(Step, st.just("wait"), anchors("dot"))
    if rings:
        steps |= st.builds(Step, st.just("release"), st.sampled_from(rings))
    loops = []
    for loop in draw(st.lists(anchors("for"), max_size=2, unique=True)):
        pairs = st.lists(st.tuples(placed, places), max_size=4, unique_by=lambda pair: pair[0])
        order = draw(st.lists(steps, max_size=5, unique=True))
        loops.append(LoopSchedule(loop, tuple(draw(pairs)), tuple(order)))
    return tuple(loops)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Every schedule that a text can say, sensible or not."""
    roles, channels = draw(_ROLES), draw(_channels())
    names = [role.name for role in roles] or ["math"]
    rings = [channel.name for channel in channels]
    turns = st.builds(Turns, st.sampled_from(names), anchors("dot"), st.sampled_from(PASSES))
    chunked = st.builds(Epilogue, st.just("tma"), st.integers(8, 256), st.integers(1, 16))
    return Schedule(
        tuple(roles),
        channels,
        draw(_loops(names, rings)),
        draw(st.none() | turns),
        draw(st.just(Epilogue()) | chunked),
        draw(st.sampled_from(PERSISTENCE)),
        draw(st.sampled_from(MASKS)),
        draw(st.sampled_from(CLUSTERS)),
        tuple(draw(st.lists(st.text("ab \"'\\;", max_size=6), max_size=2))),
    )
