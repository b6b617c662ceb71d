"""Tables in files and data frames: their columns and labels."""
