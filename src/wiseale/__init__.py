"""Auto-encoders whose prior constrains the aggregate posterior: WiSE-ALE, its baselines, a tool for your own data."""

__version__ = "0.1.0"
