"""The reference interpreter: any IR level on NumPy."""
