"""Machine models: features are data."""
