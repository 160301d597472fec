"""Op lists of mixed precision: additions to the table's own classes."""

__all__ = ["AutoMixedPrecisionLists", "CustomOpLists"]


class AutoMixedPrecisionLists:
    """Ops (by Paddle's names) that shall run in low precision although they would not, and the other way round."""

    def __init__(self, custom_white_list=None, custom_black_list=None, custom_black_varnames=None, dtype="float16"):
        self.white_added, self.black_added = set(custom_white_list or ()), set(custom_black_list or ())
        both = self.white_added & self.black_added
        if both:
            raise ValueError("Custom white list overlap custom black list")
        if custom_black_varnames:
            raise NotImplementedError("AutoMixedPrecisionLists: custom_black_varnames are not supported; name the ops, or "
                                      "leave them outside fp16_guard")


CustomOpLists = AutoMixedPrecisionLists
