"""Prints which cases show each public name of an area of paddle_api.tsv, a line a name: `python -m proa names_of_cases.py AREA`."""
import collections
import importlib.util
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import parity


def names_of_area(area):
    """The area's names; those of modules, which are shown by what they hold, end in a dot."""
    rows = [line.split("\t") for line in (HERE / "paddle_api.tsv").read_text().splitlines() if not line.startswith("#")]
    return [row[0] + "." * (row[1] == "module") for row in rows if row[4] == area]


def cases_by_name():
    found = collections.defaultdict(list)
    for path in sorted((HERE / "cases").glob("*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        sys.modules[path.stem] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for one in parity.CASES:
            for name in one.names:
                found[name].append(one.id)
        parity.CASES.clear()
    return found


def main():
    found = cases_by_name()
    for name in names_of_area(sys.argv[1]):
        cases = [c for n in found if n.startswith(name) for c in found[n]] if name.endswith(".") else found[name]
        print(name.rstrip("."), *sorted(set(cases)), sep="\t")


main()
