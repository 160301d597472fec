"""Functions that turn comments and docstrings (English with `code` in backquotes) into reStructuredText, for the writers of
pages."""
import re
import textwrap


def escaped(text):
    return re.sub(r"([*|_\\])", r"\\\1", text)


def inline(text):
    """Text as one line of markup: words in backquotes become code, all else is escaped."""
    parts = re.split(r"`([^`\n]+)`", " ".join(text.split()))
    said = ""
    for k, part in enumerate(parts):
        if k % 2:
            said += f"``{part}``" + (r"\ " if k + 1 < len(parts) and parts[k + 1][:1].isalnum() else "")
        else:
            said += escaped(part)
    return said


def title(text, rule="="):
    return [text, rule * (2 * len(text)), ""]


def indented(lines, by=3):
    return [" " * by + line if line else "" for line in lines]


def code(language, text):
    return [f".. code-block:: {language}", "", *indented(text.rstrip().splitlines()), ""]


def table(head, rows):
    """A list table of cells that are markup already."""
    if not rows:
        return []
    out = [".. list-table::", "   :header-rows: 1", ""]
    for row in [head, *rows]:
        for k, cell in enumerate(row):
            out.append(f"   {'*' if k == 0 else ' '} - {cell}".rstrip())
    return [*out, ""]


SECTIONS = re.compile(r"(Parameters|Args|Arguments|Returns|Raises|Yields|Shape|Attributes|Examples?|Note)s?:\s*")


def item(text):
    """A line of a section: "x: Tensor of …", or words alone."""
    m = re.match(r"([\w*, ]+?): (.*)", text, re.S)
    return f"- ``{m[1]}``: {inline(m[2])}" if m else f"- {inline(text)}"


def items(lines):
    """Entries of a section: a line that is not indented further begins one."""
    entries = []
    for line in textwrap.dedent("\n".join(lines)).splitlines():
        if line.startswith((" ", "\t")) and entries:
            entries[-1] += " " + line.strip()
        elif line.strip():
            entries.append(line.strip())
    return [item(entry) for entry in entries]


def docstring(text):
    """Paragraphs, interpreter sessions (>>>) and sections of a docstring."""
    out = []
    for block in re.split(r"\n\s*\n", textwrap.dedent(text or "").strip("\n")):
        lines = block.splitlines()
        section = SECTIONS.fullmatch(lines[0].strip()) if lines else None
        if section:
            out += [f"**{section[1]}**", ""]
            lines = lines[1:]
        if any(line.lstrip().startswith(">>>") for line in lines):
            first = next(k for k, line in enumerate(lines) if line.lstrip().startswith(">>>"))
            if lines[:first]:
                out += [inline("\n".join(lines[:first])), ""]
            out += code("pycon", textwrap.dedent("\n".join(lines[first:])))
        elif section:
            out += [*items(lines), ""]
        elif lines and all(line.startswith(("    ", "\t")) for line in lines):
            out += code("text", textwrap.dedent(block))
        elif lines:
            out += [inline(block), ""]
    return out
