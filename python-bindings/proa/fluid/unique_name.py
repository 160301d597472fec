"""fluid.unique_name: names of layers and variables."""
from ..framework.unique_name import *  # noqa: F401,F403
from ..framework.unique_name import UniqueNameGenerator, generate, generate_with_ignorable_key, guard, switch  # noqa: F401
