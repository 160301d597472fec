"""fluid.log_helper: loggers that write for themselves."""
import logging


def get_logger(name, level, fmt=None):
    """The logger of that name and level, which writes to stderr in the format `fmt` and tells no other logger."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    handler = logging.StreamHandler()
    if fmt:
        handler.setFormatter(logging.Formatter(fmt, "%a %b %d %H:%M:%S"))
    logger.addHandler(handler)
    logger.propagate = False
    return logger
