"""Facts computed from IR; nothing here mutates."""
