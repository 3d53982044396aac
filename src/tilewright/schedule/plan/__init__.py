"""The plan: what is decided on T0, before any layout, from shapes and the machine."""
