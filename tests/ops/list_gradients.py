#!/usr/bin/env python3
"""Lists real Paddle's op types that have a gradient, by its own registry: list_gradients.py, run in the oracle's
environment. paddle_gradients.txt is the committed answer (test_gradients.py compares the two)."""
import warnings

warnings.filterwarnings("ignore")
from paddle.base import core

print("# Op types of Paddle 2.6.2 and whether it has a gradient of them: list_gradients.py writes this.")
for name in sorted(core.get_all_op_names()):
    print(name, "yes" if core.has_non_empty_grad_op_maker(name) else "no")
