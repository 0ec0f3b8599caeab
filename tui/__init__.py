"""llamaherd: what you open on a rented GPU instance instead of ``watch nvidia-smi``."""

__version__ = "0.1.0"
