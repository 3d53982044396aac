"""Products and attention under every schedule: stages, roles, turns, clusters, copied loads."""

from __future__ import annotations

from dataclasses import dataclass

from tests.corpus.case import Case
from tests.corpus.copied import COPIED, gathered, gathered_both, gathered_case, paged_case
from tests.corpus.grouped import GROUPED, WRAPPED, wrapped_case
from tests.corpus.partitioned import (
    AB,
    GEMMS,
    RINGS,
    Partitioned,
    attention_case,
    gemm,
    gemm_case,
    persistent,
)
from tests.corpus.served import EXPERTS, SERVED, blocks_of_pages_case, sequences_case
from tilewright.support.dataclass import replace

# A launch takes no descriptor of an empty tensor.
WITH_STEPS = [each for each in GEMMS if "no-step" not in each.name]
STAGES = tuple({"num_stages": stages} for stages in (2, 3, 4, 5))


@dataclass(frozen=True)
class Form:
    """A case, with options that change its schedule only."""

    case: Case
    options: dict[str, object]

    def __str__(self) -> str:
        """The name in a report."""
        texts = [f"{name}={value}" for name, value in self.options.items()]
        return "-".join([self.case.name, *texts]).replace(" ", "_")


LARGE = [
    Partitioned(gemm_case(gemm, 520, 264, 1000, "gemm-large"), AB),
    Partitioned(gemm_case(persistent, 1100, 520, 456, "gemm-persistent-large", GROUP=4), AB),
    Partitioned(attention_case(1000, False), RINGS),
    Partitioned(attention_case(1000, True), RINGS),
]
# Loads that threads copy: rows that indices name, beside boxes and alone.
GATHERED = [
    gathered_case(gathered, 1100, 520, 1000, "gathered-large", N=128),
    gathered_case(gathered_both, 1100, 520, 1000, "gathered-both-large", N=128),
    gathered_case(gathered_both, 600, 200, 998, "gathered-narrow-large"),
    paged_case(1000),
    paged_case(1000, 128, 128, 128),
]
# Where loops end, and what they load, follows from memory.
TABLES = [
    sequences_case((900, 0, 130), 2, 128, 128, "sequences-large", causal=True),
    sequences_case((1000, 17), 2, 64, 128, "sequences-narrow", causal=False),
    blocks_of_pages_case((1000, 1, 129), 128, 128, "pages-large"),
]
TURNS = "roles load | math x{} split tiles; ring ab tiles load#0 load#1 slots 4 tma release {}"
# Programs that load for each other: as many as tiles, fewer, more, and an odd number of tiles.
CLUSTERS = "roles load | math x2 split m; ring ab tiles load#0 load#1 slots {}; cluster 2"
PAIRS = [
    replace(gemm_case(persistent, *sizes, name, GROUP=group), grid=(programs,))
    for sizes, group, programs, name in (
        ((1100, 520, 456), 4, 8, "gemm-pairs-large"),
        ((1100, 520, 456), 1, 96, "gemm-pairs-of-rows"),
        ((392, 200, 72), 3, 2, "gemm-pairs-odd"),
    )
]
# A program a tile, made to take several: shared by rows, and whole tiles in turn.
PERSISTENT = "persist static; roles load | math x{} split {}; {} tma release {}"
THREE = [
    wrapped_case(400, 264, 136, M=192),
    gemm_case(gemm, 500, 264, 328, "gemm-192", M=192),
    gemm_case(persistent, 1100, 520, 456, "gemm-persistent-192", GROUP=4, M=192),
    attention_case(700, False, 192),
    attention_case(700, True, 192),
]


def forms() -> list[Form]:
    """Stages, roles of one, two and three groups, orders of products, turns, and clusters."""
    found: list[Form] = []
    for each in (*WITH_STEPS, *LARGE):
        found += [Form(each.case, options) for options in STAGES]
        found += [
            Form(each.case, {"schedule": each.text(groups, slots=slots)})
            for groups, slots in ((1, 1), (1, 3), (2, 2), (2, 3))
        ]
        if "loop_schedule" not in each.case.options and each.case.name.startswith("attention"):
            found += [
                Form(each.case, {"num_consumer_groups": 2, "loop_schedule": order})
                for order in ("FA_firstDot", "FA_secondDot", "straight")
            ]
    for groups in (2, 3):
        for release in ("wait", "late"):
            text = TURNS.format(groups, release)
            found += [Form(each.case, {"schedule": text}) for each in (GEMMS[3], LARGE[1])]
    for groups, split, release in ((2, "m", "wait"), (2, "tiles", "late"), (3, "tiles", "wait")):
        text = PERSISTENT.format(groups, split, AB.format(slots=4), release)
        found.append(Form(LARGE[0].case, {"schedule": text}))
    # Products by pointers, of which the grouped ones stay one program whatever is asked for.
    asked = [*STAGES, *({"num_consumer_groups": groups} for groups in (1, 2, 3))]
    found += [Form(case, options) for case in (*GROUPED, *WRAPPED) for options in asked]
    found += [
        Form(case, {**options, "bulk_access": "always"})
        for case in WRAPPED
        for options in ({"num_stages": 4}, {"num_consumer_groups": 2})
    ]
    found += [
        Form(case, {"schedule": CLUSTERS.format(slots)}) for case in PAIRS for slots in (1, 2, 4)
    ]
    for each in COPIED:
        if "no-step" in each.case.name:  # empty arrays have no place in a card's memory
            continue
        found += [
            Form(each.case, {"schedule": each.text(groups, slots=slots)})
            for groups, slots in ((1, 1), (1, 2), (2, 3))
        ]
    for each in SERVED:
        found += [
            Form(each.case, {"schedule": each.text(groups, slots=slots)})
            for groups, slots in ((1, 1), (2, 3))
        ]
    asked = [{}, *STAGES, *({"num_consumer_groups": groups} for groups in (1, 2))]
    found += [Form(case, options) for case in GATHERED for options in asked]
    found += [
        Form(case, options)
        for case in (*EXPERTS, *TABLES)
        for options in ({}, STAGES[-1], *asked[-2:])
    ]
    return found + [Form(case, {"num_consumer_groups": 3}) for case in THREE]
