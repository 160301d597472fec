#!/usr/bin/env python3
"""Draws a training log: plot_loss.py loss.csv loss.png. The log's first line names its columns; the first
column is the step, every other one becomes a curve."""
import csv
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402: the backend comes first


def main():
    source, target = sys.argv[1:3]
    with open(source, newline="") as f:
        names, *rows = list(csv.reader(f))
    columns = list(zip(*[[float(v) for v in row] for row in rows]))
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, values in zip(names[1:], columns[1:]):
        axes.plot(columns[0], values, label=name)
    axes.set_xlabel(names[0])
    axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(target, dpi=120)


if __name__ == "__main__":
    main()
