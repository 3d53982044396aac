"""The ops: one package per family, with the ops in `ir` and the user functions in `surface`."""
