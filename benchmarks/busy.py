"""Family `busy`: training steps and inference of the other families beside other work. Each row runs quietly, beside spinning
processes, beside a second training and with a quota of the cores; a framework's fair share of a machine is the quiet time over
the part of the cores that its threads are due. The load is the same for every framework. Over an adapter of frameworks.py."""
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import threading
import time

from common import Row, Unit
from frameworks import integers, random
import inference
import models
import report
import training

QUOTA = 0.75  # share of the cores that the threads could use: 1.5 of 2
SHARES = {"quiet": 1, "spinners": 1 / 2, "training": 1 / 2, "quota": QUOTA}  # share of the cores: the other side has as many threads
SECOND = "training: ResNet-18, 16×3×64×64"  # the second training is Proa's, of this network
PERIOD = 0.1  # seconds: a cgroup's usual period
SECONDS = 0.8  # of a measurement; some 200 time slices of Linux's scheduler
RESIDUAL = "training: small residual net, 32×3×32×32"
MIN_KEPT = 0.8  # least speed, as a part of that in the fair share
SLOWEST_RESIDUAL = 2.6  # most time beside the spinners, in quiet times


def residual(tiny):
    """A ResNet for small images: three stages of 16, 32 and 64 channels."""
    blocks, n = ([1, 1], 2) if tiny else ([2, 2, 2], 32)
    return (lambda fw: models.resnet(fw, 18, blocks=blocks, width=16, stem=(3, 1)), lambda: random(n, 3, 32, 32),
            lambda: integers(10, n))


def units(tiny=False):
    """Units whose rows are the loads; what is timed is the same in all."""
    def of(unit, family):
        row = unit.rows[0]
        return Unit(f"{family}: {unit.name}", tuple(Row(load, row.make, per=row.per) for load in SHARES), skip=("paddle", *unit.skip))
    steps = [*training.units(tiny), training.unit(RESIDUAL.partition(": ")[2], *residual(tiny))]
    return [of(u, "training") for u in steps] + [of(u, "inference") for u in inference.units(tiny)]


def serve(fw, unit):
    """Measures when it is told to: a line of standard input gives the seconds, a line of standard output what a call took on
    average, since what is wanted is how much gets done in a time."""
    row = unit.rows[0]
    call = row.make(fw)
    for _ in range(2):
        call()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        seconds, calls = float(line), 0
        began = time.perf_counter()
        while calls < 1 or time.perf_counter() < began + seconds:
            call()
            calls += 1
        print(json.dumps({"seconds": (time.perf_counter() - began) / calls / row.per, "calls": calls}), flush=True)


# ---- loads

SPIN = """
import os
parent = os.getppid()
while os.getppid() == parent:  # it does not outlive whoever started it
    for _ in range(1000000):
        pass
"""


@contextlib.contextmanager
def spinners(n):
    running = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(n)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def group_folders():
    """Of each version of cgroups that has a CPU controller here: (folder of this process's group, file, what it takes)."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
                yield pathlib.Path(mount + path), "cpu.max", "{quota} {period}"
        elif "cpu" in controllers.split(","):
            for mount in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"):
                yield pathlib.Path(mount + path), "cpu.cfs_quota_us", "{quota}"


class Quota:
    """Limits processes to `cores` cores by a cgroup; where none can be made, by stopping each for the rest of every PERIOD."""

    def __init__(self, cores, threads):
        self.part, self.group = cores / threads, None
        for folder, name, text in group_folders() if os.path.exists("/proc/self/cgroup") else ():
            group = folder / f"proa-bench-{os.getpid()}"
            try:
                if name == "cpu.max":
                    (folder / "cgroup.subtree_control").write_text("+cpu")
                group.mkdir()
                self.group = group
                (group / name).write_text(text.format(quota=round(cores * PERIOD * 1e6), period=round(PERIOD * 1e6)))
                break
            except OSError:
                self.close()

    def title(self, cores):
        return (f"with a quota of {cores:g} cores" if self.group else
                f"stopped for {1 - self.part:.0%} of every {PERIOD * 1e3:.0f} ms, as no cgroup could be made")

    def command(self, command):
        return ["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', str(self.group), *command] if self.group else command

    @contextlib.contextmanager
    def over(self, pid):
        """A stand-in where there is no group: stops the process a part of the time."""
        if self.group:
            yield
            return
        done = threading.Event()

        def cycle():
            while not done.wait(PERIOD * self.part):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(PERIOD * (1 - self.part))
                os.kill(pid, signal.SIGCONT)
        thread = threading.Thread(target=cycle)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def close(self):
        for _ in range(50):  # until the kernel has buried the last process
            try:
                if self.group:
                    self.group.rmdir()
                break
            except OSError:
                time.sleep(0.1)
        self.group = None


# ---- measuring


class Server:
    """A process that has prepared a unit and measures it when asked."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            said = self.process.stderr.read().strip().splitlines()
            raise RuntimeError((said or ["it ended"])[-1][:200])
        return json.loads(line)

    def ask(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()

    def measure(self, seconds):
        self.ask(seconds)
        return self.answer()

    def close(self):
        self.process.kill()
        self.process.communicate()


class Machine:
    """Runs units under each load. command(way, unit): what serves it; environment(way): where."""

    def __init__(self, command, environment, threads, seconds=SECONDS):
        self.command, self.environment, self.threads, self.seconds = command, environment, threads, seconds
        self.cores = QUOTA * threads
        self.quota = Quota(self.cores, threads)

    def titles(self):
        return {"quiet": "quiet", "spinners": f"beside {self.threads} spinning processes",
                "training": f"beside a second training (Proa's, {SECOND.partition(': ')[2].partition(',')[0]})",
                "quota": self.quota.title(self.cores)}

    def start(self, way, unit, limited=False):
        command = self.command(way, unit)
        return Server(self.quota.command(command) if limited else command, self.environment(way))

    @contextlib.contextmanager
    def second_training(self):
        second = self.start("proa", SECOND)
        try:
            second.answer()
            second.ask(1e9)
            yield
        finally:
            second.close()

    def load(self, name):
        return {"quiet": contextlib.nullcontext, "spinners": lambda: spinners(self.threads),
                "training": self.second_training}[name]()

    def round_of(self, ways, unit, probe):
        """(way -> its rows or its error, the machine's probes around what ran undisturbed)."""
        found, probes = {way: {"rows": {}} for way in ways}, []
        free, limited = ({way: self.start(way, unit, limited) for way in ways} for limited in (False, True))

        def measured(servers, load, way, over=contextlib.nullcontext()):
            if "error" in found[way]:
                return
            try:
                with over:
                    figure = servers[way].measure(self.seconds)
                earlier = found[way]["rows"].setdefault(load, figure)
                if earlier is not figure:
                    found[way]["rows"][load] = {"seconds": (earlier["seconds"] + figure["seconds"]) / 2,
                                                "calls": earlier["calls"] + figure["calls"]}
            except (RuntimeError, OSError) as problem:
                found[way]["error"] = str(problem)
        try:
            for servers in (free, limited):
                for way in ways:
                    try:
                        servers[way].answer()
                    except RuntimeError as problem:
                        found[way]["error"] = str(problem)
            for load in ("quiet", "spinners", "training", "quiet"):  # quiet before and after: the machine's speed drifts
                probes += probe() if load == "quiet" else []
                with self.load(load):
                    for way in ways:
                        measured(free, load, way)
                probes += probe() if load == "quiet" else []
            for way in ways:
                measured(limited, "quota", way, self.quota.over(limited[way].process.pid))
            probes += probe()
        finally:
            for server in [*free.values(), *limited.values()]:
                server.close()
        return found, probes


class Tables:
    """A table a load, for report.py: what rows keep of their fair share, Proa beside PyTorch."""
    family, ways, lines = "busy", [], []  # nothing for the chart

    def __init__(self, units, results, titles):
        self.titles = titles
        self.units = [u["name"] for u in units]
        self.found = {u["name"]: {load: report.Line(u["name"], {"name": load}, results, "busy") for load in titles} for u in units}
        self.peers = [w for w in dict.fromkeys(key[2] for key in results if key[0] == "busy") if w != "proa"]

    def kept(self, unit, load, way):
        """Speed under the load, as a part of the speed that the fair share of the cores would give; None without figures."""
        quiet, loaded = (self.found[unit][name].median(way) for name in ("quiet", load))
        return quiet / SHARES[load] / loaded if quiet and loaded else None

    def table(self, load):
        ways = ["proa", *self.peers]
        head = ["", *(f"{w}: {what}" for w in ways for what in ("quiet", "loaded", "kept")), *(f"{w} ÷ proa" for w in self.peers)]
        out = ["", f"#### {self.titles[load]}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        for unit in self.units:
            cells, line = [unit], self.found[unit][load]
            for way in ways:
                kept = self.kept(unit, load, way)
                cells += [report.seconds_text(self.found[unit]["quiet"].median(way)), f"{report.seconds_text(line.median(way))} ±{line.spread(way):.0%}",
                          f"{kept:.2f}"] if kept else ["–", "fails" if way in line.errors else "–", "–"]
            cells += [f"{line.ratio(w):.2f}" if line.ratio(w) else "–" for w in self.peers]
            out.append("| " + " | ".join(cells) + " |")
        return out + ["", self.summary(load)]

    def summary(self, load):
        kept = sorted((k, unit) for unit in self.units if (k := self.kept(unit, load, "proa")))
        low = [f"{unit} ({k:.2f})" for k, unit in kept if k < MIN_KEPT]
        text = f"Proa keeps {MIN_KEPT} of its fair share or more in {len(kept) - len(low)} of {len(kept)} rows"
        text += f"; not in {', '.join(low)}." if low else "."
        for way in self.peers:
            ratios = [r for unit in self.units if (r := self.found[unit][load].ratio(way))]
            keeps = [k for unit in self.units if (k := self.kept(unit, load, way))]
            if ratios:
                text += (f" In the median row Proa is {statistics.median(ratios):.2f} × as fast as {way}, which keeps "
                         f"{MIN_KEPT} in {sum(k >= MIN_KEPT for k in keeps)} of {len(keeps)}.")
        net = self.kept(RESIDUAL, load, "proa") if load == "spinners" and RESIDUAL in self.units else None
        if net:
            text += (f" The small residual net takes {1 / SHARES[load] / net:.2f} × its quiet time (at most "
                     f"{SLOWEST_RESIDUAL} wanted).")
        return text

    def markdown(self):
        errors = [f"- {unit}, {way}: {text}" for unit in self.units for way, text in self.found[unit]["quiet"].errors.items()]
        out = ["### busy"] + [line for load in self.titles if load != "quiet" for line in self.table(load)]
        return "\n".join(out + ["", *(["Failures:", *errors, ""] if errors else [])])

    def json(self):
        return {"family": "busy", "titles": self.titles, "rows": [
            {"unit": unit, "row": load, "seconds": line.times, "errors": line.errors,
             "kept": {w: self.kept(unit, load, w) for w in line.times}}
            for unit in self.units for load, line in self.found[unit].items()]}
