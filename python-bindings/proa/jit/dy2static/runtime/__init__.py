"""Run-time functions of converted code, under the name _proa. With concrete values each does exactly what Python's
own construct does; with a program's variables it builds the ops that will."""
from builtins import slice, sorted
from .branches import choose, if_
from .calls import call
from .effects import Trying
from .containers import change_item, items, own_names, set_item, shape
from .logic import and_, assert_, compare, not_, or_, raised, test_and, test_or
from .loops import for_, while_
