#!/usr/bin/env python3
"""Looks at the built site: every link inside it leads to a page and an anchor that are there; a headless Chromium draws three
pages and finds an op by the search. check.py [--site FOLDER]"""
import argparse
import html.parser
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DRAWN = ["index.html", "ops/softmax.html", "c/nn.html"]
SIZE = (1200, 900)
COLORS = 16  # at least, on a page that is not blank


class Links(html.parser.HTMLParser):
    """A page's anchors, and where it leads to."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.targets = {""}, []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        for key in ("href", "src"):
            if given.get(key):
                self.targets.append(given[key])


def broken_links(site):
    pages = {path: Links(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    problems, followed = [], 0
    for path, page in pages.items():
        for target in page.targets:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc or target.startswith("javascript"):
                continue
            to = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            followed += 1
            if not to.exists():
                problems.append(f"{path.relative_to(site)}: {target}: no such file")
            elif to in pages and urllib.parse.unquote(parts.fragment) not in pages[to].anchors:
                problems.append(f"{path.relative_to(site)}: {target}: no such anchor")
    return problems, len(pages), followed


def browser():
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


def run_browser(program, url, *options):
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run([program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                               f"--user-data-dir={profile}", "--virtual-time-budget=10000", *options, url],
                              text=True, capture_output=True, timeout=180)


def drawn(program, site, folder):
    """Problems of the pages as they are drawn."""
    problems, seen = [], {}
    for name in DRAWN:
        shot = folder / name.replace("/", "-").replace(".html", ".png")
        run_browser(program, (site / name).as_uri(), f"--screenshot={shot}", f"--window-size={SIZE[0]},{SIZE[1]}")
        if not shot.exists():
            problems.append(f"{name}: no picture")
            continue
        with Image.open(shot) as picture:
            colors = len(picture.convert("RGB").getcolors(picture.width * picture.height))
            if picture.size != SIZE or colors < COLORS:
                problems.append(f"{name}: drawn as {picture.size}, {colors} colors")
            seen[name] = picture.tobytes()
    if len(set(seen.values())) < len(seen):
        problems.append("two pages look the same")
    return problems


def searched(program, site, word, wanted):
    page = run_browser(program, (site / "search.html").as_uri() + f"?q={word}", "--dump-dom",
                       "--allow-file-access-from-files").stdout
    return [] if wanted in page else [f"the search for {word} does not find {wanted}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", type=pathlib.Path, default=ROOT / "build/docs/html")
    site = parser.parse_args().site.resolve()
    problems, pages, followed = broken_links(site)
    program = browser()
    if program is None:
        sys.exit("docs: no Chromium: the pages were not looked at (apt-get install chromium)")
    pictures = site.parent / "pictures"
    pictures.mkdir(exist_ok=True)
    problems += drawn(program, site, pictures)
    problems += searched(program, site, "softmax", "ops/softmax.html")
    for problem in problems[:40]:
        print(problem)
    print(f"docs: {pages} pages, {followed} links followed, {len(DRAWN)} pages drawn, search tried: {len(problems)} problems")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
