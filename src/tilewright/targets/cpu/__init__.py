"""The CPU target: nests, microkernels, vector math, thread pool, driver."""
