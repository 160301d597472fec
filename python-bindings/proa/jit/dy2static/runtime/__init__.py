"""Run-time functions of converted code, under the name _proa. With concrete values each does exactly what Python's
own construct does; with a program's variables it builds the ops that will."""
from builtins import slice, sorted  # noqa: F401
from .branches import choose, if_  # noqa: F401
from .calls import call  # noqa: F401
from .effects import Trying  # noqa: F401
from .containers import change_item, items, own_names, set_item, shape  # noqa: F401
from .logic import and_, assert_, compare, not_, or_, raised, test_and, test_or  # noqa: F401
from .loops import for_, while_  # noqa: F401
