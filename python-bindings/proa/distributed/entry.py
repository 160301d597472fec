"""Entry policies for static.nn.sparse_embedding: the condition under which a parameter server creates a row of a
table."""

__all__ = ["CountFilterEntry", "ProbabilityEntry", "ShowClickEntry"]


class ProbabilityEntry:
    """A row comes into being with this probability when it is first asked for.

    >>> import proa as paddle
    >>> paddle.distributed.ProbabilityEntry(0.1)._to_attr()
    'probability_entry:0.1'
    """

    def __init__(self, probability):
        if not isinstance(probability, float):
            raise ValueError("probability must be a float in (0,1)")
        if probability <= 0 or probability >= 1:
            raise ValueError("probability must be a float in (0,1)")
        self._name, self._probability = "probability_entry", probability

    def _to_attr(self):
        return f"{self._name}:{self._probability}"


class CountFilterEntry:
    """A row comes into being when it was asked for that often.

    >>> import proa as paddle
    >>> paddle.distributed.CountFilterEntry(10)._to_attr()
    'count_filter_entry:10'
    """

    def __init__(self, count_filter):
        if not isinstance(count_filter, int):
            raise ValueError("count_filter must be a valid integer greater than 0")
        if count_filter < 0:
            raise ValueError("count_filter must be a valid integer greater or equal than 0")
        self._name, self._count_filter = "count_filter_entry", count_filter

    def _to_attr(self):
        return f"{self._name}:{self._count_filter}"


class ShowClickEntry:
    """A row comes into being by the show and click variables of these names.

    >>> import proa as paddle
    >>> paddle.distributed.ShowClickEntry("show", "click")._to_attr()
    'show_click_entry:show:click'
    """

    def __init__(self, show_name, click_name):
        if not isinstance(show_name, str) or not isinstance(click_name, str):
            raise ValueError("show_name click_name must be a str")
        self._name, self._show_name, self._click_name = "show_click_entry", show_name, click_name

    def _to_attr(self):
        return f"{self._name}:{self._show_name}:{self._click_name}"
