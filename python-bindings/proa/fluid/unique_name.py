"""fluid.unique_name: names of layers and variables."""
from ..framework.unique_name import *
from ..framework.unique_name import UniqueNameGenerator, generate, generate_with_ignorable_key, guard, switch
