"""Every public function that a parity case calls with tensors, and every layer, with all dims None: exported, reloaded and
run at two other sizes it agrees with eager execution. What cannot stands in unknown_dims.txt, with the reason."""
import pytest

from test_parity import HERE, MODULES, ROOT, on_proa, ran

LIST = HERE / "unknown_dims.txt"
# These train, run whole models, look at memory or are in static mode; the functions that they call have cases in other modules.
LEFT_OUT = ("aliasing", "datasets_", "hapi_", "inference", "io_", "jit", "lr_", "optimizer_", "profiler", "static_", "surroundings",
            "training", "vision_models", "vision_transforms", "vision_warps", "amp_")
AUDITED = [m for m in MODULES if not m.stem.startswith(LEFT_OUT)] + [ROOT / "tests/layer_cases.py"]


def listed(module):
    """{name: [part of a message]}"""
    lines = [line.split(" | ") for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    assert all(len(parts) == 3 and all(parts) for parts in lines), "module name | part of the message | why"
    found = {}
    for where, part, _ in lines:
        stem, _, name = where.partition(" ")
        if stem == module.stem:
            found.setdefault(name, []).append(part)
    return found


@pytest.mark.parametrize("module", AUDITED, ids=lambda m: m.stem)
def test_unknown_dims(module, tmp_path):
    out = tmp_path / "found"
    found = ran(on_proa(HERE / "unknown_dims.py", module, out, cwd=tmp_path, TMPDIR=str(tmp_path), PYTHONWARNINGS="ignore"), out)
    known, bad = listed(module), []
    for name, outcomes in found.items():
        wrong = [(call, f"{what}: {text}") for call, what, text in outcomes if what != "agrees"]
        most = max([int(text.split()[0]) for _, what, text in outcomes if what == "agrees"], default=2)
        wrong += [("every call", f"runs at {most} other sizes, expected 2")] if most < 2 else []
        parts = known.pop(name, ()) if wrong else ()
        bad += [f"--- {name}\n{call}: {text}" for call, text in wrong if not any(part in text for part in parts)]
    bad += [f"--- {name}\nis listed in {LIST.name} and agrees: take it out" for name in known]
    print(f"{module.stem}: {len(found)} functions, {len(bad)} wrong")
    assert not bad, "\n".join(bad)
