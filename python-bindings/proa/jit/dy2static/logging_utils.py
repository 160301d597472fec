"""paddle.jit.dy2static.logging_utils: log messages of the conversion, through a logger and on stdout. Uses the standard
library only."""
import logging
import os

__all__ = ["TranslatorLogger", "set_code_level", "set_verbosity"]

VERBOSITY_ENV_NAME, CODE_LEVEL_ENV_NAME = "TRANSLATOR_VERBOSITY", "TRANSLATOR_CODE_LEVEL"
DEFAULT_VERBOSITY = DEFAULT_CODE_LEVEL = -1
LOG_AllTransformer = 100  # the level of finished code


def _level(level, who):
    if level is not None and (not isinstance(level, int) or isinstance(level, bool)):
        raise TypeError(f"{who}: level must be an int, got {level!r}")
    return level


def _setting(name, check):
    """A setting that may be None: then what the environment or the default says."""
    def get(self):
        return self._default(name) if self._set[name] is None else self._set[name]

    def set(self, value):
        self._set[name] = check(value, name)
    return property(get, set)


def _flag(value, name):
    assert value is None or isinstance(value, bool), f"{name} must be a bool, got {value!r}"
    return value


class TranslatorLogger:
    """The one logger of conversion."""

    _one = None
    _environment = {"verbosity_level": (VERBOSITY_ENV_NAME, DEFAULT_VERBOSITY),
                    "transformed_code_level": (CODE_LEVEL_ENV_NAME, DEFAULT_CODE_LEVEL)}

    def __new__(cls):
        if cls._one is None:
            one = cls._one = super().__new__(cls)
            one.logger_name, one._logger = "Dynamic-to-Static", None
            one._set = dict.fromkeys((*cls._environment, "need_to_echo_log_to_stdout", "need_to_echo_code_to_stdout"))
        return cls._one

    def _default(self, name):
        variable, fallback = self._environment.get(name, (None, False))
        return fallback if variable is None else int(os.environ.get(variable, fallback))

    verbosity_level = _setting("verbosity_level", _level)
    transformed_code_level = _setting("transformed_code_level", _level)
    need_to_echo_log_to_stdout = _setting("need_to_echo_log_to_stdout", _flag)
    need_to_echo_code_to_stdout = _setting("need_to_echo_code_to_stdout", _flag)

    @property
    def logger(self):
        """The logging.Logger; it writes to stderr."""
        if self._logger is None:
            made = self._logger = logging.getLogger(self.logger_name)
            made.setLevel(logging.DEBUG)
            made.propagate = False
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s"))
            made.addHandler(handler)
        return self._logger

    def has_verbosity(self, level):
        """Whether messages of this level are told."""
        return self.verbosity_level >= _level(level, "has_verbosity")

    def has_code_level(self, level):
        """Whether code of this level is shown: finished code at any level from 0 on."""
        shown = self.transformed_code_level
        return shown >= 0 if _level(level, "has_code_level") == LOG_AllTransformer else shown == level

    def _tell(self, severity, text, echo):
        self.logger.log(severity, text)
        if echo:
            print(f"{self.logger_name} {logging.getLevelName(severity)}: {text}")

    def error(self, msg, *args):
        self._tell(logging.ERROR, msg % args if args else msg, self.need_to_echo_log_to_stdout)

    def warn(self, msg, *args):
        self._tell(logging.WARNING, msg % args if args else msg, self.need_to_echo_log_to_stdout)

    def log(self, level, msg, *args):
        """Tells a message of a level that verbosity reaches."""
        if self.has_verbosity(level):
            self._tell(logging.INFO, f"(Level {level}) {msg % args if args else msg}", self.need_to_echo_log_to_stdout)

    def log_transformed_code(self, level, code, name):
        """Shows code of a level, its source or its tree, that `name` has made."""
        if self.has_code_level(level) or level == LOG_AllTransformer and self.verbosity_level >= 3:
            if not isinstance(code, str):
                from .utils import ast_to_source_code
                code = ast_to_source_code(code)
            self._tell(logging.INFO, f"{name}: the transformed code:\n{code}", self.need_to_echo_code_to_stdout)


_TRANSLATOR_LOGGER = TranslatorLogger()
error, warn, log = _TRANSLATOR_LOGGER.error, _TRANSLATOR_LOGGER.warn, _TRANSLATOR_LOGGER.log
log_transformed_code = _TRANSLATOR_LOGGER.log_transformed_code


def set_verbosity(level=0, also_to_stdout=False):
    """Sets the verbosity of conversion: 0 nothing, 3 or more the converted source; None: what TRANSLATOR_VERBOSITY says."""
    _TRANSLATOR_LOGGER.verbosity_level = level
    _TRANSLATOR_LOGGER.need_to_echo_log_to_stdout = also_to_stdout
    if also_to_stdout:
        _TRANSLATOR_LOGGER.need_to_echo_code_to_stdout = True


def get_verbosity():
    return _TRANSLATOR_LOGGER.verbosity_level


def set_code_level(level=LOG_AllTransformer, also_to_stdout=False):
    """Shows the converted source of functions converted from now on; a negative level: no more."""
    _TRANSLATOR_LOGGER.transformed_code_level = level
    _TRANSLATOR_LOGGER.need_to_echo_code_to_stdout = also_to_stdout


def get_code_level():
    return _TRANSLATOR_LOGGER.transformed_code_level
