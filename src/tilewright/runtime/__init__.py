"""Cache, fingerprint, driver protocol, arguments, launch and autotuner: what a warm start needs."""
