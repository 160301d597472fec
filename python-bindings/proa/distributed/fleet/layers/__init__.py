"""Layers of fleet, under the paths of Paddle 2.4 and later."""
