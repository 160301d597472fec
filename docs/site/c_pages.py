"""Reference pages of the public C headers: one page per header, with its declarations and comments in the header's order.

A header is a list of paragraphs. Comments of the form `---- words ----` begin a section; a comment above a declaration is
what is said of it."""
import re

from markup import code, inline, indented, title

SECTION = re.compile(r"/\* -{2,} *(.*?) *-* *\*/\s*", re.S)
COMMENT = re.compile(r"/\*(.*?)\*/\s*", re.S)
HIDDEN = re.compile(r"^(#ifdef __cplusplus|extern \"C\"|#if|#else|#elif|#endif|#include|#undef|\})")


def words(comment):
    """A comment's text without its stars."""
    return "\n".join(line.strip().removeprefix("*").strip() for line in comment.strip().splitlines())


def statements(text):
    """(comment above or "", declaration) of a header's body; ("section", title) where one begins."""
    said, used, at = "", False, 0  # used: a declaration has had the comment; those behind it share it until there is another
    while at < len(text):
        blank = re.compile(r"\s+").match(text, at)
        if blank:
            said = "" if "\n\n" in blank[0] else said
            at = blank.end()
        elif m := SECTION.match(text, at):
            yield "section", " ".join(words(m[1]).split())
            said, at = "", m.end()
        elif m := COMMENT.match(text, at):
            said = (said + "\n" if said and not used else "") + words(m[1])
            used, at = False, m.end()
            said = "" if m[0].endswith("\n\n") else said
        else:
            end = declaration_end(text, at)
            yield said, text[at:end].strip()
            used, at = True, end


def declaration_end(text, at):
    """Behind the declaration that begins here: a directive's last line, or the semicolon outside of braces, with the comment
    that stands behind it on its line."""
    if text[at] == "#":
        while True:
            line = text.find("\n", at)
            if line < 0 or text[line - 1] != "\\":
                return len(text) if line < 0 else line
            at = line + 1
    depth = 0
    while at < len(text):
        if text.startswith("/*", at):
            at = text.index("*/", at) + 1
        depth += text[at] in "{("
        depth -= text[at] in "})"
        at += 1
        opened = text[at - 1] == "{" and re.search(r'extern "C" \{$', text[max(0, at - 12):at])
        if opened or (depth <= 0 and text[at - 1] in ";}" and not re.match(r"\s*\w*\s*;", text[at:]) or depth < 0):
            break
    behind = re.compile(r"[ ;]*/\*.*?\*/").match(text, at)
    return behind.end() if behind else at


def plain(declaration):
    """A prototype in one line, without comments and attributes."""
    text = re.sub(r"/\*.*?\*/", "", declaration, flags=re.S)
    text = re.sub(r"\bPROA_(API|MUST_CHECK|NORETURN)\b|\bPROA_PRINTF\([^)]*\)", "", text)
    return " ".join(text.split()).rstrip(";").strip()


def trailing(declaration):
    return " ".join(words(m[1]) for m in COMMENT.finditer(declaration))


class Page:
    def __init__(self, path, name, ops):
        self.ops = ops  # names that the ops' pages declare
        self.last = None  # the previous function's comment, and the line after its prototype
        text = path.read_text()
        first = COMMENT.match(text)
        self.head = words(first[1])
        self.lines = [*title(f"<{name}>"), inline(self.head), ""]
        seen = set()
        for said, what in statements(text[first.end():]):
            if said == "section":
                self.lines += title(re.sub(r"^.", lambda m: m[0].upper(), what), "-")
            elif not HIDDEN.match(what):
                self.declare(said, what, seen)

    def described(self, directive, said, more=()):
        self.lines += [directive, "", *indented([inline(said), ""] if said else []), *indented(list(more)), ""]

    def declare(self, said, what, seen):
        self.last = self.last if "(" in what and not what.startswith(("#", "typedef")) else None
        if macro := re.match(r"#define (\w+)(\([^)]*\))?(.*)", what, re.S):
            name, takes, means = macro.groups()
            if name in seen or not re.match(r"(?:proa_|PROA_(?!X_|H\b))\w+$", name) or re.fullmatch(r"PROA_\w+_H", name):
                return
            seen.add(name)
            comment = trailing(means)
            value = re.sub(r"/\*.*?\*/", "", means, flags=re.S).strip()
            if re.match(r"PROA_X_", value):  # the form with options of the function above it
                self.described(f".. c:macro:: {name}{' '.join((takes or '').split())}", said or comment or
                               "Takes the options by name behind what is required.")
            else:
                self.described(f".. c:macro:: {name}{' '.join((takes or '').split())}", said or comment,
                               code("c", value) if value and not takes and "\n" not in value and len(value) < 60 else [])
        elif what.startswith("typedef") or re.match(r"(struct|enum|union) \w+ \{", what):
            self.declare_type(said, what, seen)
        elif m := re.match(r".*?\b(\w+)\(", plain(what)):
            if m[1] in seen or "__" in m[1] or m[1].endswith("_") and "proa__" in m[1]:
                return
            seen.add(m[1])
            prototype = plain(what)
            prototype = re.sub(r"\s*\{.*", "", prototype).replace("static inline ", "")
            words_of = " ".join(filter(None, [said, trailing(what)]))
            if said and self.last and self.last[0] == words_of:  # functions that share a comment are one entry
                self.lines.insert(self.last[1], f"                 {prototype}")
                self.last = (words_of, self.last[1] + 1)
                return
            self.last = (words_of, len(self.lines) + 1)
            self.described(f".. c:function:: {prototype}", words_of)

    def declare_type(self, said, what, seen):
        body = plain(what)
        function = re.search(r"\(\*(\w+)\)\(", body) if "{" not in body else None
        name = function[1] if function else (re.search(r"(\w+)$", body) or [None, ""])[1]
        if not name or not name.startswith(("proa_", "PROA_")):
            m = re.match(r"(?:typedef )?(?:struct|enum|union) (\w+)", body)
            name = m[1] if m else ""
        if not name or name in seen:
            return
        seen.add(name)
        body_of = code("c", what) if "{" in what or function else []
        if name in self.ops:
            self.lines += [inline(said), "", *body_of]
        else:
            kind = "struct" if re.match(r"(typedef )?struct \w* ?\{", body) else "type"
            self.described(f".. c:{kind}:: {name}", said, body_of)


def write(root, out, ops):
    """Pages of all public headers but the ops', which have pages of their own; returns their names."""
    (out / "c").mkdir(parents=True, exist_ok=True)
    names = []
    order = ["core", "ops", "autograd", "nn", "optim", "amp", "data", "io", "program", "inference"]
    headers = sorted((root / "include/proa").glob("*.h"), key=lambda p: (order.index(p.stem) if p.stem in order else 99, p.stem))
    for path in headers:
        if path.stem == "ops":
            continue
        page = Page(path, f"proa/{path.name}", {f"proa_{name}" for name in ops})
        (out / f"c/{path.stem}.rst").write_text("\n".join(page.lines) + "\n")
        names.append((path.stem, page.head.split(".")[0].split(";")[0]))
    lines = [*title("C, header by header"), "``#include <proa.h>`` has all of them. Guide: :doc:`/c-api`.", "",
             ".. toctree::", "   :maxdepth: 1", "", *[f"   {name}" for name, _ in names], ""]
    (out / "c/index.rst").write_text("\n".join(lines))
    return len(names)
