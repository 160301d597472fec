"""Starts the ranks of a job: python -m proa.distributed.launch SCRIPT …"""
from .main import launch, main

__all__ = ["launch", "main"]
