"""Measures of a trained representation; reads run directories, models and data, never live training objects."""
