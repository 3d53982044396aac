"""Inline assembly: PTX blocks translated into the steps of the surrounding program."""
