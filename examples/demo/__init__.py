"""The demo: a real sentence-embedding model whose every tensor operation is a Tilewright kernel."""
