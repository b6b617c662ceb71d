"""Figures: functions from arrays to a matplotlib Figure."""
