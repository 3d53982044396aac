"""One module per op family: IR class, reference semantics and user function in one block."""
