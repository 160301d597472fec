"""Errors for code that cannot be converted, and how errors name the user's own line."""
import linecache
import os


class ConversionError(TypeError):
    """Code that cannot become a program: the message says where and why."""


class NoSource(ConversionError):
    """A function whose source Python does not have."""


# Paddle's name for it
Dygraph2StaticException = ConversionError


def place_of(function):
    """(file, line) where a function's code begins."""
    return function.__code__.co_filename, function.__code__.co_firstlineno


def source_line(file, line):
    return linecache.getline(file, line).strip()


def refuse(why, place):
    """A ConversionError for the user's line."""
    file, line = place
    text = source_line(file, line)
    return ConversionError(f'{why}\n  File "{file}", line {line}' + (f"\n    {text}" if text else ""))


half_bound = {}  # name -> place of the last if of which only one branch bound it


# as Paddle calls them: what an error carries, and the variables of the environment that leave the message alone
ERROR_DATA = "Error data about original source code information and traceback."
DISABLE_ERROR_ENV_NAME, DEFAULT_DISABLE_NEW_ERROR = "TRANSLATOR_DISABLE_NEW_ERROR", 0
SIMPLIFY_ERROR_ENV_NAME, DEFAULT_SIMPLIFY_NEW_ERROR = "TRANSLATOR_SIMPLIFY_NEW_ERROR", 1


class ErrorData:
    """Data of an error that left a converted function: its type, and the user's lines that led to it."""

    def __init__(self, error, lines):
        self.error_type, self.error_value, self.lines = type(error), str(error), lines

    def create_message(self):
        """The user's lines, outermost first, and the error."""
        shown = [f'    File "{file}", line {line}, in {name}\n        {source_line(file, line)}'
                 for file, line, name in self.lines]
        return "\n".join(["In transformed code:", "", *shown, "", f"    {self.error_type.__name__}: {self.error_value}"])


def explain(error, converted):
    """Adds to an error that left a converted function where in the user's code, and in what it became, it arose.

    converted: finds the converted source of a code object: (its lines by the user's line) or None.
    """
    if hasattr(error, ERROR_DATA):
        return
    frames, step = [], error.__traceback__
    while step is not None:
        lines = converted(step.tb_frame.f_code)
        if lines is not None:
            frames.append((step.tb_frame.f_code, step.tb_lineno, lines))
        step = step.tb_next
    if not frames:
        return
    code, line, lines = frames[-1]
    data, note = ErrorData(error, [(one.co_filename, at, one.co_name) for one, at, _ in frames]), []
    became = lines.get(line)
    if became:
        note.append(f'In "{code.co_filename}", line {line} was converted to:\n' + "\n".join(f"    {text}" for text in became))
    if isinstance(error, NameError) and (name := getattr(error, "name", None) or _quoted(error)) in half_bound:
        note.append('{} is bound in only one branch of the if at\n  File "{}", line {}: give it a value before'.format(
            name, *half_bound[name]))
    text = "\n".join(note)
    try:
        setattr(error, ERROR_DATA, data)
        if len(error.args) == 1 and isinstance(error.args[0], str) and not int(
                os.environ.get(DISABLE_ERROR_ENV_NAME, DEFAULT_DISABLE_NEW_ERROR)):
            error.args = (data.create_message(),)
        if text and hasattr(error, "add_note"):
            error.add_note(text)
    except AttributeError:
        pass  # an exception with slots stays as it is


def explained(captured, error):
    """Whether an error that left a converted function is this one, with its lines."""
    data = getattr(captured, ERROR_DATA, None)
    return data is not None and (data.error_type, data.error_value) == (type(error), str(error))


def _quoted(error):
    """The name that a NameError's message quotes."""
    parts = str(error).split("'")
    return parts[1] if len(parts) > 1 else None
