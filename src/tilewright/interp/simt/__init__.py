"""A simulator of emitted GPU programs: LLVM text of one thread, run for all threads of a cta.

`simulate` in `simulate.py` is the entrance. A value is a NumPy array with one element per
thread, so an instruction is one NumPy operation; threads that take different ways run one way
after the other under a mask, and meet again where the text joins. What is exact and what is
checked:

* Arithmetic is that of IEEE 754 in the format that the text names. The approximate functions
  of the hardware (`ex2.approx`, `rsqrt.approx`, …) are correctly rounded, `contract` fuses
  nothing, and products of matrices are summed in float64 and rounded once.
* Every access is checked against its memory's bounds, alignment, and whether it was written.
* Shared memory: two accesses of one place, one of them a write, must be ordered by barriers
  (vector clocks, see `clocks.py`). Lanes of a warp count as threads of their own:
  `bar.warp.sync` orders them, a shuffle does not.
* Asynchronous copies and products run under clocks of their own, which the waits join; what
  generic stores wrote needs `fence.proxy.async` before the asynchronous proxy reads it, and an
  accumulator is not read before its wait.
* A program that cannot go on is a deadlock that names what each warp waits for.
* Programs run one after the other, so a program that waits for one with a higher number never
  ends. Those of a cluster run at once: `mapa`, arrivals at the mbarriers of another cta, copies to
  several ctas and the cluster's barrier are simulated; clusters lie along the first axis.
* An instruction that is not known is an error.
"""
