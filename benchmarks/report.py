"""Turns the results printed by run.py's processes into tables, JSON, Markdown and a chart. Standard library;
matplotlib for the chart, where there is one."""
import json
import statistics

PEERS = ("paddle", "torch", "onnxruntime")
STEPS = ("training", "sizes", "compiled", "inference")  # families of whole networks, whose memory and FLOPs are told


def seconds_text(s):
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if s * scale >= 0.9995:
            return f"{s * scale:.3g} {unit}"
    return f"{s * 1e9:.3g} ns"


class Line:
    """One row of a table: seconds of each way, by process."""

    def __init__(self, unit, row, results, family):
        self.unit, self.row = unit, row
        self.times, self.errors, self.memory, self.first = {}, {}, {}, {}
        self.plain = None  # the Line of the same work without a framework
        for (f, u, way), runs in results.items():
            if f != family or u != unit:
                continue
            for run in runs:
                found = run.get("rows", {}).get(row["name"], {})
                if "seconds" in found:
                    self.times.setdefault(way, []).append(found["seconds"])
                    self.first.setdefault(way, []).append(found.get("first", 0))
                    if run.get("peak_bytes"):
                        self.memory.setdefault(way, []).append((run["peak_bytes"], run["idle_bytes"]))
                    if found.get("flops"):
                        self.row = {**self.row, "flops": found["flops"]}
                elif "error" in found or "error" in run:
                    self.errors[way] = found.get("error") or run["error"]

    def median(self, way):
        return statistics.median(self.times[way]) if way in self.times else None

    def spread(self, way):
        """Half the distance of the quartiles (of the ends, for few rounds) over the median."""
        t = sorted(self.times[way])
        if len(t) < 2:
            return 0
        low, high = (t[len(t) // 4], t[-1 - len(t) // 4]) if len(t) >= 4 else (t[0], t[-1])
        return (high - low) / 2 / statistics.median(t)

    def ratio(self, way):
        """Time of `way` over Proa's."""
        ours, theirs = self.median("proa"), self.median(way)
        return theirs / ours if ours and theirs else None

    def over(self, base, way):
        """Time and peak memory over those of another line, and the first call's time."""
        if not (way in self.memory and way in base.memory):
            return "–"
        peak, of = (statistics.median(t for t, _ in line.memory[way]) for line in (self, base))
        return (f"{self.median(way) / base.median(way):.2f}, {peak / of:.2f}; "
                f"{seconds_text(statistics.median(self.first[way]))}")

    def worst(self):
        """The fastest peer's time over Proa's: below 1 Proa is slower. None for rows without a framework."""
        if self.row["limit"] == "itself":
            return None
        found = [self.ratio(w) for w in self.times if w.split("+")[0] != "proa"]
        return min((r for r in found if r), default=None)

    def fraction(self, limits):
        """The least time that `limits` allow for the row's FLOPs and bytes, over Proa's time: 1 is optimal."""
        ours = self.median("proa")
        if ours and self.plain:
            return self.plain.median("proa") / ours
        if not ours or not (self.row["flops"] or self.row["bytes"]):
            return None
        if self.row["limit"] == "radix":
            return limits["radix_ms"] * 1e-3 / ours
        least = self.row["flops"] / (limits.get("sgemm_gflops", limits["fma_gflops"]) * 1e9)
        least = max(least, self.row["bytes"] / (limits[self.row["limit"] + "_gbs"] * 1e9))
        return least / ours


def medians(limits):
    return {key: statistics.median(run[key] for run in limits) for key in limits[0]}


class Section:
    def __init__(self, family, units, results, limits):
        self.family, self.limits = family, medians(limits)
        self.lines = [Line(u["name"], r, results, family) for u in units for r in u["rows"]]
        self.lines = [line for line in self.lines if line.times or line.errors]
        for line in self.lines:
            line.plain = next((other for other in self.lines if other.unit == line.unit and "proa" in other.times
                               and other.row["name"] == line.row["limit"]), None)
        self.ways = [w for w in dict.fromkeys(key[2] for key in results if key[0] == family) if w != "proa"]
        # kernels that multiply are held against what the fastest matrix product of the run reaches, whosever it is
        products = [line.row["flops"] / line.median(w) for line in self.lines for w in line.times
                    if line.row["name"].startswith("sgemm")]
        if products:
            self.limits["sgemm_gflops"] = max(products) * 1e-9

    def label(self, line):
        single = sum(other.unit == line.unit for other in self.lines) == 1
        return line.unit if single else (line.row["name"] if self.family in ("overhead", "kernels", "io")
                                         else f"{line.unit}: {line.row['name']}")

    def cells(self, line):
        cells = [self.label(line)]
        for way in ["proa"] + self.ways:
            cells.append(f"{seconds_text(line.median(way))} ±{line.spread(way):.0%}" if way in line.times
                         else "fails" if way in line.errors else "–")
        cells += [f"{line.ratio(w):.2f}" if line.ratio(w) else "–" for w in self.ways]
        part = line.fraction(self.limits)
        return cells + [f"{part:.2f}" if part else "–"]

    def markdown(self):
        head = ["", "proa", *self.ways, *(f"{w} ÷ proa" for w in self.ways), "of the limit"]
        out = [f"### {self.family}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        out += ["| " + " | ".join(self.cells(line)) + " |" for line in self.lines]
        out += [""] + self.memory_table() + self.over_eager() + self.summary() + self.from_c()
        errors = [f"- {self.label(line)}, {way}: {text}" for line in self.lines for way, text in line.errors.items()]
        return "\n".join(out + (["Failures:", *errors, ""] if errors else []))

    def memory_table(self):
        """Peak memory of a process, in all and beyond what it had after import."""
        if self.family not in STEPS:
            return []
        ways = ["proa"] + self.ways
        head = ["peak memory, MB: total (net of import)", *ways]
        out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        for line in self.lines:
            cells = [self.label(line)]
            for way in ways:
                runs = line.memory.get(way)
                if not runs:
                    cells.append("–")
                    continue
                total = statistics.median(t for t, _ in runs)
                net = statistics.median(t - i for t, i in runs)
                cells.append(f"{total / 1e6:.0f} ({net / 1e6:.0f})")
            out.append("| " + " | ".join(cells) + " |")
        return out + [""]

    def over_eager(self):
        """Effect of compiling on time, the whole process's peak memory and the first step, by framework."""
        if self.family != "compiled":
            return []
        ways = ["proa"] + self.ways
        out = ["| over eager: time, peak memory; the first step | " + " | ".join(ways) + " |", "|" + "---|" * (len(ways) + 1)]
        eager = {line.unit.rsplit(", ", 1)[0]: line for line in self.lines if line.unit.endswith(", eager")}
        for line in self.lines:
            base = eager.get(line.unit.rsplit(", ", 1)[0])
            if base and base is not line:
                out.append("| " + " | ".join([self.label(line)] + [line.over(base, way) for way in ways]) + " |")
        return out + [""] if len(out) > 2 else []

    def summary(self):
        rated = [(line.worst(), line) for line in self.lines if line.worst()]
        if not rated:
            return []
        slower = sorted((r, self.label(line)) for r, line in rated if r < 1)
        parts = [line.fraction(self.limits) for line in self.lines]
        parts = [p for p in parts if p]
        out = [f"Proa is at least as fast as the fastest peer in {len(rated) - len(slower)} of {len(rated)} rows"
               + (f", and at 0.85 of the limit or more in {sum(p >= 0.85 for p in parts)} of {len(parts)}" if parts else "") + "."]
        if "sgemm_gflops" in self.limits:
            out.append(f"The limit of rows that multiply is the run's fastest product, {self.limits['sgemm_gflops']:.0f} GFLOP/s.")
        if slower:
            out.append("Slower than a peer: " + "; ".join(f"{name} ({r:.2f})" for r, name in slower) + ".")
        return out + [""]

    def from_c(self):
        """Time of a run from C over that of each peer that runs what is exported."""
        rated = [line for line in self.lines if "proa+c" in line.times]
        out = []
        for way in ("onnxruntime", "torch+compile"):
            parts = [f"{self.label(line)} {line.median('proa+c') / line.median(way):.2f}" for line in rated if way in line.times]
            out += [f"From C, of the time of {way}: {', '.join(parts)}."] if parts else []
        return out + [""] if out else []

    def json(self):
        return {"family": self.family, "rows": [
            {"unit": line.unit, "row": line.row["name"], "seconds": line.times, "errors": line.errors,
             "median": {w: line.median(w) for w in line.times}, "ratio": {w: line.ratio(w) for w in line.times if w != "proa"},
             "fraction_of_limit": line.fraction(self.limits), "flops": line.row["flops"], "bytes": line.row["bytes"],
             "peak_and_idle_bytes": line.memory} for line in self.lines]}


def limits_text(limits):
    m = medians(limits)
    return (f"Limits ({m['threads']:.0f} threads, {m['clock_ghz']:.1f} GHz): multiply-add {m['fma_gflops']:.0f} GFLOP/s, read "
            f"{m['read_gbs']:.0f}, copy {m['copy_gbs']:.0f}, triad {m['triad_gbs']:.0f}, Adam loop {m['adam_gbs']:.0f}, fresh "
            f"memory {m['first_touch_gbs']:.1f} GB/s; malloc and free {m['malloc_ns']:.0f} ns, parallel region "
            f"{m['fork_join_us']:.1f} µs, radix sort of 1 M by one thread {m['radix_ms']:.1f} ms.")


def least_table(sections):
    """Of each network trained at several sizes, the least of its ratios to each peer; "" where not all sizes were run."""
    trained = {s.family: s for s in sections if s.family in ("training", "sizes")}
    if len(trained) < 2:
        return ""
    ways = trained["training"].ways
    out = ["### training, the least of a network's sizes", "", "| " + " | ".join(["", *(f"{w} ÷ proa" for w in ways)]) + " |",
           "|" + "---|" * (len(ways) + 1)]
    sizes = {}
    for line in (line for s in trained.values() for line in s.lines):
        sizes.setdefault(line.unit.partition(",")[0], []).append(line)
    for network, lines in sizes.items():
        ratios = ([r for line in lines if (r := line.ratio(w))] for w in ways)
        out.append("| " + " | ".join([f"{network}, {len(lines)} sizes", *(f"{min(r):.2f}" if r else "–" for r in ratios)]) + " |")
    return "\n".join(out + [""])


def write(folder, sections, limits, rounds, quiet, seconds):
    text = [limits_text(limits), f"Medians of {rounds} rounds of alternating processes ± half the quartiles' distance; a ratio "
            f"above 1 means that Proa is faster. The run took {seconds / 60:.1f} minutes.", *([quiet] if quiet else []), ""]
    (folder / "results.md").write_text("\n".join(text + [s.markdown() for s in sections] + [least_table(sections)]))
    (folder / "results.json").write_text(json.dumps(
        {"limits": medians(limits), "rounds": rounds, "families": [s.json() for s in sections]}, indent=1))
    print(limits_text(limits))


def into_page(page, tables, family=""):
    """Puts the tables between two marks of the page, in place of what stands there; a family may have marks of its own."""
    begin, end = f"<!-- make bench {f'FAMILY={family} ' if family else ''}ARGS=--docs writes from here -->\n", "<!-- to here -->"
    head, rest = page.read_text().split(begin)
    page.write_text(head + begin + "\n" + tables.strip() + "\n\n" + end + rest.split(end, 1)[1])


def chart(path, sections):
    """Bars of the peers' time over Proa's, on a logarithmic axis. False without matplotlib."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return False
    bars = [(s, line) for s in sections for line in s.lines if line.worst()]
    if not bars:
        return False
    ways = [w for w in dict.fromkeys(w for s in sections for w in s.ways) if "+" not in w]
    height = 0.8 / len(ways)
    figure, axes = pyplot.subplots(figsize=(8, 1 + 0.2 * len(bars)))
    for k, way in enumerate(ways):
        points = [(i + k * height, line.ratio(way)) for i, (_, line) in enumerate(bars) if line.ratio(way)]
        axes.barh([y for y, _ in points], [r - 1 for _, r in points], height, left=1, label=way)
    axes.set_yticks([i + 0.4 - height / 2 for i in range(len(bars))], [f"{s.family}: {s.label(line)}" for s, line in bars], fontsize=6)
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("time of the peer ÷ time of Proa; right of 1 Proa is faster")
    axes.set_ylim(len(bars), -0.5)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=70)
    pyplot.close(figure)
    return True
