"""One side of bad_calls.py: `bad_calls_worker.py SIDE JOBS REPORT`. On real Paddle it looks for a call of each name that
works, spoils it in many ways and says what came of each; on Proa it repeats those calls. Each job runs in a forked process;
one JSON line an event, so that the calls before one that ends the process are known."""
import contextlib
import importlib
import inspect
import json
import os
import random
import re
import select
import signal
import sys
import warnings

import bad_calls_values as values

CATEGORIES = ("InvalidArgument|NotFound|OutOfRange|AlreadyExists|ResourceExhausted|PreconditionNotMet|PermissionDenied|"
              "ExecutionTimeout|Unimplemented|Unavailable|Fatal|External|InvalidType")
SEARCHES, CALLS, SECONDS, PATIENCE = 40, 11, 4, 40


# ---- calls ---------------------------------------------------------------------------------------------------------

class Late(BaseException):
    """A call that does not end."""


def late(*_):
    raise Late


def settle(paddle, guard):
    signal.alarm(0)
    guard.close()
    paddle.disable_static()
    paddle.set_default_dtype("float32")


def said(error):
    """("Type|Category", text) of an exception."""
    text = str(error)
    found = re.search(rf"\(({CATEGORIES})\)|\b({CATEGORIES})Error:", text)
    shown = text[text.rfind("Error: ") + 7:] if text.startswith("In user code") else text  # behind the user's lines
    return f"{type(error).__name__}|{(found[1] or found[2]) if found else ''}", shown[:200]


def variables(paddle, value):
    """The variables of a program in a result."""
    if isinstance(value, (list, tuple)):
        return [v for one in value for v in variables(paddle, one)]
    return [value] if isinstance(value, paddle.static.Variable) else []


def run(paddle, made):
    """Runs a program that a call built: ("ok", or "Type|Category" of what was raised; its text); ("", "") without results."""
    programs, results, feed = made
    fetched = variables(paddle, results)
    if not fetched:
        return "", ""
    signal.alarm(SECONDS)
    paddle.enable_static()
    try:
        executor = paddle.static.Executor(paddle.CPUPlace())
        executor.run(programs[1])
        executor.run(programs[0], feed=feed, fetch_list=fetched)
        return "ok", ""
    except Late:
        return "late", ""
    except Exception as error:  # noqa: BLE001: the point of it
        return said(error)
    finally:
        signal.alarm(0)
        paddle.disable_static()


def call(paddle, job, args, keywords, made=None):
    """("ok", or "Type|Category" of what was raised; its text). A program that it built is appended to `made`."""
    name, owner = job["name"], job["owner"]
    signal.alarm(SECONDS)
    guard = contextlib.ExitStack()
    try:
        if job["static"]:
            paddle.enable_static()
            programs = paddle.static.Program(), paddle.static.Program()
            guard.enter_context(paddle.static.program_guard(*programs))
            values.FED.clear()
        callee = values.resolve(paddle, name) if owner is None else getattr(values.build(paddle, owner),
                                                                            name.rpartition(".")[2])
        args = [values.build(paddle, a) for a in args]
        keywords = {k: values.build(paddle, v) for k, v in keywords.items()}
    except Exception as error:  # noqa: BLE001: what the referee itself could not make
        settle(paddle, guard)
        return f"unmade|{type(error).__name__}", str(error)[:200]
    try:
        results = callee(*args, **keywords)
        if job["static"] and made is not None:
            made.append((programs, results, values.feed()))
        return "ok", ""
    except Late:
        return "late", ""
    except (SystemExit, KeyboardInterrupt) as error:
        return type(error).__name__ + "|", ""
    except BaseException as error:  # noqa: BLE001: the point of it
        return said(error)
    finally:
        settle(paddle, guard)


# ---- what real Paddle takes ----------------------------------------------------------------------------------------

def parameters_of(callee):
    """[(name, default or the empty mark)], self left out."""
    try:
        found = inspect.signature(callee).parameters.values()
    except (TypeError, ValueError):
        return None
    found = [p for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return [(p.name, p.default) for p in found if p.name not in ("self", "cls")]


def work_of(paddle, job, required, rng):
    """Specs of the required parameters with which the call works, or with which it is most likely to."""
    first = [values.NAMED.get(p, values.TENSOR) for p in required]
    for attempt in range(SEARCHES if required else 1):
        specs = list(first)
        if attempt:
            for i in range(len(specs)):
                if attempt > 25 or required[i] not in values.NAMED or rng.random() < 0.5:
                    specs[i] = values.POOL[attempt - 1] if attempt <= len(values.POOL) and i == 0 \
                        else rng.choice(values.POOL)
        if call(paddle, job, specs, {})[0] == "ok":
            return specs, True
    return first, False


# ---- spoiling ------------------------------------------------------------------------------------------------------

def kind_of(spec):
    if isinstance(spec, list):
        return spec[0]
    return "none" if spec is None else type(spec).__name__


OTHERS = [["object"], "no such", None, ["list", "a", "b"], ["dict"], 1.5, 2, values.TENSOR, ["list", values.TENSOR], True,
          ["array", [2, 3], "float32"], ["function"], ["bytes"], ["complex"], ["list"], ["tuple", 1, 2], ["class"]]


def spoil(spec, rng):
    """(kind of mistake, another value) for one argument."""
    made = [("type", s) for s in OTHERS if kind_of(s) != kind_of(spec)]
    rng.shuffle(made)
    made = made[:4]
    if kind_of(spec) in ("tensor", "array"):
        made += [("dtype", [spec[0], spec[1], d]) for d in rng.sample(values.DTYPES, 3) if d != spec[2]]
        made += [("rank", [spec[0], r, spec[2]]) for r in rng.sample(values.RANKS, 3) if r != spec[1]]
    elif kind_of(spec) == "int":
        made += [("range", v) for v in rng.sample([97, -97, 0, -1, 7], 2)]
    elif kind_of(spec) == "float":
        made += [("range", v) for v in rng.sample([1e30, -1e30, ["nan"], -1.0, 0.0], 2)]
    elif kind_of(spec) in ("list", "tuple"):
        made += [("range", v) for v in rng.sample([["list", 97], ["list"], ["list", -97, -97], ["list"] + [1] * 10,
                                                   ["list", 1.5], ["list", 0, 0], ["list", None]], 3)]
        if len(spec) > 1 and kind_of(spec[1]) == "tensor":
            made += [("rank", ["list", spec[1], ["tensor", [7, 5], "float32"]]), ("dtype", ["list", spec[1], values.MASK])]
    elif kind_of(spec) == "str":
        made += [("range", "no such"), ("range", "")]
    return made


def spec_of_default(name, default):
    """A spec of what an optional parameter takes."""
    if isinstance(default, (bool, int, float, str)):
        return default
    if isinstance(default, (list, tuple)) and all(isinstance(v, (int, float, str)) for v in default):
        return ["list", *default]
    return values.NAMED.get(name)


def bad_calls(parameters, specs, rng):
    """[(kind, parameter, args, keywords)]: CALLS ways to get it wrong."""
    required = [p for p, d in parameters if d is inspect.Parameter.empty]
    made = [("keyword", "", specs, {"no_such": 1}), ("many", "", specs + [None] * 30, {})]
    for i, p in enumerate(required[:3]):
        made.append(("missing", p, specs[:i], dict(zip(required[i + 1:], specs[i + 1:]))))
    spoiled = []
    for i, p in enumerate(required):
        spoiled += [(kind, p, specs[:i] + [s] + specs[i + 1:], {}) for kind, s in spoil(specs[i], rng)]
    for p, default in parameters:
        if default is not inspect.Parameter.empty and p != "name":
            spoiled += [(kind, p, specs, {p: s}) for kind, s in spoil(spec_of_default(p, default), rng)]
    rng.shuffle(spoiled)
    return made + spoiled[:CALLS - len(made)]


def plan(paddle, job, say):
    """The calls of one name."""
    name = job["name"]
    rng = random.Random(f"{job['seed']} {name}")
    try:
        callee = values.resolve(paddle, name)
        parameters = parameters_of(callee)
    except Exception:  # noqa: BLE001: what instances alone have
        return
    if parameters is None:
        parameters = []
    if job["owner"] is not None and not job["bound"]:
        parameters = parameters[1:]
    required = [p for p, d in parameters if d is inspect.Parameter.empty]
    if job["search"]:
        specs, works = work_of(paddle, job, required, rng)
    else:
        specs, works = [values.NAMED.get(p, values.TENSOR) for p in required], False
    say(event="base", specs=specs, works=works)
    for kind, parameter, args, keywords in bad_calls(parameters, specs, rng):
        yield {"kind": kind, "parameter": parameter, "args": args, "keywords": keywords}


# ---- names ---------------------------------------------------------------------------------------------------------

MODULES = ["paddle", "paddle.nn", "paddle.nn.functional", "paddle.nn.initializer", "paddle.nn.utils", "paddle.linalg",
           "paddle.fft", "paddle.signal", "paddle.distribution", "paddle.sparse", "paddle.sparse.nn",
           "paddle.sparse.nn.functional", "paddle.geometric", "paddle.incubate", "paddle.incubate.autograd",
           "paddle.optimizer", "paddle.optimizer.lr", "paddle.metric", "paddle.static", "paddle.static.nn",
           "paddle.vision.transforms", "paddle.vision.ops", "paddle.text", "paddle.io", "paddle.jit", "paddle.amp",
           "paddle.autograd", "paddle.device", "paddle.regularizer", "paddle.callbacks", "paddle.utils"]
STATIC_TOO = {"paddle", "paddle.nn.functional", "paddle.linalg", "paddle.static.nn", "paddle.static"}


def public_names(paddle):
    """(name, kind, whether static mode is tried too) of every public callable of MODULES and of Tensor's methods."""
    for module in MODULES:
        found = values.resolve(paddle, module)
        for name in sorted(set(getattr(found, "__all__", []))):
            value = getattr(found, name, None)
            if callable(value) and not inspect.ismodule(value):
                yield f"{module}.{name}", "class" if inspect.isclass(value) else "function", module in STATIC_TOO
    for name in dir(paddle.Tensor):
        if not name.startswith("_") and callable(getattr(paddle.Tensor, name)):
            yield f"paddle.Tensor.{name}", "method", False


def methods_of(paddle, name, seen):
    """Methods of a class that no class before it had: of a layer only forward."""
    cls = values.resolve(paddle, name)
    if issubclass(cls, paddle.nn.Layer):
        return ["forward"]
    own = [m for m in dir(cls) if not m.startswith("_") and inspect.isfunction(getattr(cls, m))
           and getattr(cls, m).__module__.startswith("paddle") and getattr(cls, m) not in seen]
    seen.update(getattr(cls, m) for m in own)
    return own


def run_job(paddle, job, after, search, say):
    """The calls of a job from number `after` on, in this process."""
    calls = job["calls"] if "calls" in job else plan(paddle, {**job, "search": search}, say)
    for i, one in enumerate(calls):
        if i < after:
            continue
        say(event="call", call=i, **({} if "calls" in job else one))
        made = []
        outcome, text = call(paddle, job, one["args"], one["keywords"], made)
        say(event="outcome", call=i, outcome=outcome, text=text)
        if made:
            say(event="run", call=i, run="crash", text="")  # what is true if the next line ends the process
            ended, text = run(paddle, made[0])
            say(event="run", call=i, run=ended, text=text)


def in_child(paddle, job, after, search, tell):
    """The same in a forked process, whose events are told; how it ended, or None if it came to its end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            with os.fdopen(writing, "w", buffering=1) as out:
                run_job(paddle, job, after, search, lambda **e: print(json.dumps({"job": job["id"], **e}), file=out))
        finally:
            os._exit(0)
    os.close(writing)
    ended = None
    with os.fdopen(reading, "rb", buffering=0) as given:
        left = b""
        while True:
            if not select.select([given], [], [], PATIENCE)[0]:
                os.kill(child, signal.SIGKILL)
                ended = "late"
                break
            some = os.read(given.fileno(), 1 << 16)
            if not some:
                break
            *lines, left = (left + some).split(b"\n")
            for line in lines:
                tell(json.loads(line))
    status = os.waitpid(child, 0)[1]
    if ended is None and status:
        ended = f"crash|{os.waitstatus_to_exitcode(status)}"
    return ended


def serve(paddle, job, tell):
    """A job to its end: a call that ends the process is an outcome, and the next ones run in another."""
    after, search = 0, True
    while True:
        last = {"event": "job"}

        def told(event):
            last.update(event)
            tell(event)
        ended = in_child(paddle, job, after, search, told)
        if ended is None:
            return
        if last["event"] in ("call", "outcome"):
            tell({"job": job["id"], "event": "outcome", "call": last["call"], "outcome": ended, "text": ""})
            after = last["call"] + 1
        elif last["event"] == "run":
            after = last["call"] + 1
        elif search and "calls" not in job:  # the search for a call that works ended it
            search = False
        else:
            return


def load(paddle):
    """Imports what would be loaded on first use, before any process is forked."""
    import numpy  # noqa: F401
    for module in MODULES:
        with contextlib.suppress(Exception):
            values.resolve(paddle, module)
    for static in (False, True):
        call(paddle, {"name": "paddle.nn.functional.relu", "owner": None, "static": static}, [values.TENSOR], {})
    values.build(paddle, values.LINEAR)


def main():
    if sys.argv[2] == "names":
        paddle, seen = importlib.import_module(sys.argv[1]), set()
        names = [[*n, methods_of(paddle, n[0], seen) if n[1] == "class" else []] for n in public_names(paddle)]
        return print(json.dumps(names))
    side, jobs, report = sys.argv[1:4]
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, late)
    paddle = importlib.import_module(side)
    load(paddle)
    with open(report, "a", buffering=1) as out, open(jobs) as given:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        for job in map(json.loads, given):
            serve(paddle, job, lambda event: print(json.dumps(event), file=out))


if __name__ == "__main__":
    main()
