"""The CPU target, room by room.

`schedule` decides what is fused and what lies in memory, `nests` writes the loops over tiles,
`dot` the matrix products, `rules` the LLVM text of each op, `runtime` launches what came out.
"""
