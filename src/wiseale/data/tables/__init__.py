"""Tables: CSV and Parquet files, their columns and labels."""
