#!/usr/bin/env python3
"""Writes examples/data/digits_train.csv and digits_test.csv: scikit-learn's copy of the UCI digits.

    make_digits.py [folder]      (default: examples/data beside this file's folder)

One sample a line: 64 pixels (0 to 16, row-major 8 x 8), then the digit. The split is fixed: 20 % test,
stratified, random_state 0, in the order in which scikit-learn returns it. Needs scikit-learn.
"""
import pathlib
import sys

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def write(path, x, y):
    rows = [",".join([str(int(v)) for v in pixels] + [str(int(label))]) for pixels, label in zip(x, y)]
    header = ",".join([f"p{i}" for i in range(64)] + ["digit"])
    path.write_text("\n".join([header] + rows) + "\n")
    print(f"{path}: {len(rows)} samples")


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "examples" / "data"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    x_train, x_test, y_train, y_test = train_test_split(
        digits.data, digits.target, test_size=0.2, stratify=digits.target, random_state=0)
    write(folder / "digits_train.csv", x_train, y_train)
    write(folder / "digits_test.csv", x_test, y_test)
    return 0


if __name__ == "__main__":
    sys.exit(main())
