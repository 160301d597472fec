"""paddle.distributed.passes: passes over pairs of a main and a startup program, one's own and those of Paddle's names."""
from . import known
from .pass_base import PassBase, PassContext, PassManager, new_pass, register_pass

__all__ = ["PassBase", "PassContext", "PassManager", "known", "new_pass", "register_pass"]
