"""Functions known by a symbol, as NVIDIA's libdevice names them."""
