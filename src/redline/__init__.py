"""Redline measures the learning rate at which a small language model needs QK-norm."""

__version__ = "0.1.0"
