"""The launcher of a job's ranks: python -m proa.distributed.launch SCRIPT …"""
from .main import launch, main

__all__ = ["launch", "main"]
