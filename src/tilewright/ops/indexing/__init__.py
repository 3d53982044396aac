"""Looking elements up, sorting and counting them."""
