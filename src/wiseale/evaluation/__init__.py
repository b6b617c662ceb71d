"""What a trained representation is judged by: reads run directories, model files and data, never live training objects."""
