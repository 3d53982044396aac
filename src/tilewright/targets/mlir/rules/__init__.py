"""What each op that is not computed element by element becomes, by family."""
