"""The warning of tuning, where nothing but its name is imported: neither NumPy nor a timer."""


class TuningWarning(UserWarning):
    """Tuning leaves a trace in the arguments, or a configuration is no program."""
