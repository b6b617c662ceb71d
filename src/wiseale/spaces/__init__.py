"""What a row is."""
