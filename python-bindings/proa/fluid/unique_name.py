"""fluid.unique_name: unique names of layers and variables, re-exported from paddle.utils."""
from ..framework.unique_name import *
from ..framework.unique_name import UniqueNameGenerator, generate, generate_with_ignorable_key, guard, switch
