"""How what is known of a tile follows from what is known of an op's operands."""
