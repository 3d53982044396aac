"""Matrix products: packing, panels and the microkernel."""
