"""cross and kron in real Paddle."""
from paddle import cross, kron  # noqa: F401
