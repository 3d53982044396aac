"""Reading and writing memory through pointers."""
