"""The class of a DataLoader's iterators, for programs that ask whether they hold one."""
from ..reader import _DataLoaderIterBase  # noqa: F401
