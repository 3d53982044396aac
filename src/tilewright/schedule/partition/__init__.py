"""A program becomes roles: which ops run where, and the channels between them."""
