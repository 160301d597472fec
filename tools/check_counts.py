#!/usr/bin/env python3
"""Counts faults that are to become fewer, each against its bound in tools/counts.txt: file headers and other comments that begin
with a relative clause, names and words that were replaced by the field's, macros over ten lines, hand-written tests of a field's
kind (core/args_visit.c is for them), comments that name missing files.

    check_counts.py [--list]        also says where"""
import re
import sys

from tree import ROOT, files, report

SOURCES = (".c", ".h", ".cc", ".cu", ".inc")
CLAUSE = re.compile(r"(What|Whatever|Where|Whoever|That which|How|Which|Who) [a-z]")
COMMENT = {True: re.compile(r"/\*+\s*(.{0,90})"), False: re.compile(r'(?:^|(?<=\s))#\s+(.{0,90})|"""(.{0,90})', re.M)}  # C's; others'
# Names of before 0.2, and what they are called now (docs/glossary.md has the words that stayed): identifiers, files.
GONE = re.compile(r"\b(proa__copy_past\w*|past_caches|FLAGS_past_bytes|proa__wide_\w+|proa__forget_file|proa__tail\w*|PROA__TAIL"
                  r"|fused_tail\w*|TO_INPUT|TO_FILTER|proa__facts\w*|proa__walk\w*|proa__map_(?:find|put|clear)|proa__lift\w*"
                  r"|proa__steps\w*|proa__settle\w*|proa__pending|(?:\w+_)?(?:room|ROOM)|proa__later|packed_least|storm_planner|LEAST_\w+"
                  r"|MOST_\w+|winograd_(?:middle|large)|proa_program_optimise\w*|proa_initialised"
                  r"|orthogonalise|waiting_capacity|lay_alike|proa__lie_alike|proa__lies_\w+|\w*lies_(?:so|last|both|side_by_side)|as_it_lies"
                  r"|\w+_LAID|(?:cuda|conv|pool)_lies_\w+|(?:is|all)_laid|lay_channels_last|cuda_lays?_\w+|proa__fused_(?:read|parse|steps?)"
                  r"|winograd_(?:lay|plain_lay|points)|(?:strided|phases|f\dx\d)_lay|lay_shift|lay_out|proa__constant_shapes)\b"
                  r"|(?:->|\.)past\b|\bbool past\b")
FILES = re.compile(r"^(past|wide|lanes|vmath|vexp_row|forget|fused_tail|facts|known|unknown|lift|place|pack|recorded|split|few|narrow"
                   r"|columns|planes|pairs|winograd_(middle|large)|settle|forms|storm)\.(h|c|inc|cu)$|hostile|update_pass")
FOLDERS = ("core", "kernels", "ops", "jit", "io")  # whose files the names were of
# The same in what strangers read first: README, docs, public headers, messages.
WORDS = re.compile(r"\b(past the caches?|room|to the filter|hostile|storms?|settled?|fused tail|LEAST|MOST|optimise\w*|initialise\w*"
                   r"|lies|lying|stands (?:in|at|beside|before|behind)|lie (?:in|at|beside|behind|side))\b")
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
KIND = re.compile(r"kind [!=]= PROA_FIELD_TENSORS?\b|case PROA_FIELD_TENSORS?:")
LONG_MACRO = 10
# The measured hot loops may walk an args struct by themselves; args_visit is the walker.
WALKERS = {"core/args_visit.c", "core/door.c", "autograd/record.c"}


def header(text):
    """The first comment's first words."""
    match = re.match(r'(?:#![^\n]*\n)?(?:/\*+\s*|"""|#\s*)(.{0,80})', text)
    return match[1] if match else ""


def clauses(path, text):
    """Comments, the header's too, that begin with a relative clause."""
    for match in COMMENT[path.suffix in SOURCES].finditer(text):
        words = next(group for group in match.groups() if group is not None)
        if CLAUSE.match(words):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {words}"


# Files that comments name and the tree lacks: of the system, and generated ones.
ELSEWHERE = {"jni.h", "math.h", "formulas.inc", "py_api.inc", "ops_calls.c"}
FILE = re.compile(r"(?<![\w/.<{*%-])(?:[\w-]+/)*([\w-]+\.(?:c|h|cc|cu|inc|py|yaml))\b")


def missing_files(path, text, names):
    """Names of files in C comments, or in backquotes on a page about the tree, that no file has."""
    for comment in re.finditer(r"/\*.*?\*/" if path.suffix in SOURCES else r"`[^`\n]+`", text, re.S):
        for match in FILE.finditer(comment[0]):
            if match[1] not in names | ELSEWHERE:
                yield f"{path}:{text.count(chr(10), 0, comment.start()) + 1}: {match[1]}"


def long_macros(lines):
    """Line numbers of #defines that go over more than LONG_MACRO lines, but for tables of X(row)."""
    number = 0
    while number < len(lines):
        if re.match(r"\s*#\s*define\b", lines[number]):
            end = number
            while lines[end].endswith("\\") and end + 1 < len(lines):
                end += 1
            if end - number + 1 > LONG_MACRO and not re.search(r"\(X\)", lines[number]):
                yield number + 1
            number = end
        number += 1


def gone_words():
    """Lines of README, docs, public headers and messages that say a word which gave way."""
    for path in files(".md", *SOURCES):
        prose = path.suffix == ".md" and (path.parts[0] == "docs" or len(path.parts) == 1) or path.parts[0] == "include"
        if path.parts[0] in ("tests", "examples", "benchmarks", "shared") or path.name in ("CHANGELOG.md", "glossary.md"):
            continue
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            said = [line] if prose else [text for text in STRING.findall(line) if " " in text]
            yield from (f"{path}:{number}: {m[0]}" for text in said for m in WORDS.finditer(text))


def main():
    found = {"headers that begin with a relative clause": [], "comments that begin with a relative clause": [],
             "names that are gone": [], "words that are gone": [], "macros over ten lines": [],
             "hand-written tests of a field's kind": [], "comments that name a file that is gone": []}
    headers, comments, names, words, macros, kinds, missing = found.values()
    words += gone_words()
    there = {path.name for path in files(*SOURCES, ".py", ".yaml")}
    for page in ("docs/architecture.md", "docs/programs.md"):
        missing += missing_files(ROOT / page, (ROOT / page).read_text(), there)
    for path in files(*SOURCES, ".py", ".yaml"):
        text = (ROOT / path).read_text()
        if CLAUSE.match(header(text)):
            headers.append(f"{path}:1: {header(text)}")
        comments += clauses(path, text)
        if FILES.search(path.name) and path.parts[0] in FOLDERS:
            names.append(str(path))
        if path.name != "check_counts.py":
            names += [f"{path}: {m[0]}" for m in GONE.finditer(text)]
        if path.suffix in SOURCES:
            lines = text.splitlines()
            macros += [f"{path}:{n}" for n in long_macros(lines)]
            missing += missing_files(path, text, there) if path.parts[0] != "tests" else ()
            if str(path) not in WALKERS and path.parts[0] not in ("tests", "examples", "benchmarks"):
                kinds += [f"{path}:{n}" for n, line in enumerate(lines, 1) for _ in KIND.finditer(line)]
    bounds = dict(line.rsplit(maxsplit=1) for line in (ROOT / "tools/counts.txt").read_text().splitlines()
                  if line and not line.startswith("#"))
    problems = []
    for what, places in found.items():
        bound = int(bounds[what])
        print(f"counts: {what}: {len(places)} of {bound}")
        if len(places) > bound:
            problems.append(f"{what}: {len(places)}, at most {bound} (tools/counts.txt); see --list")
        if "--list" in sys.argv:
            print("\n".join(f"    {place}" for place in places))
    return report("counts", problems)


if __name__ == "__main__":
    sys.exit(main())
