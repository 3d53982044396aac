"""The folder that `tilewright run` puts on the path of a script, so that it finds `triton`."""
