"""What the schedule of a GPU kernel decided, for people: `tilewright explain` prints it."""
