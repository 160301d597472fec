"""Checkpoints of tensors on a mesh, which any other mesh loads."""
