"""Saving and loading of states over several processes."""
from .dist_load import load
from .dist_save import save, save_for_auto_inference

__all__ = ["load", "save", "save_for_auto_inference"]
