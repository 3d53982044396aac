"""Errors, source spans, options and rule tables: what every layer may use."""
