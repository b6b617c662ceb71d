"""What a trained representation is judged by: reads runs, model files and data, never live training objects."""
