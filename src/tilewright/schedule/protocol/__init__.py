"""The protocol of roles: what rings, turns, places and grants ask of them, checked and run."""
