#!/usr/bin/env python3
"""Turns exported models into seeds for fuzz_pdmodel: parameters become inputs, so that a seed needs no
parameter file and the fuzzer reaches the ops. Without such seeds it stops at "no parameter file".

    make_seeds.py MODELS OUT      (run with the oracle's Python; MODELS as export_models.py writes them)
"""
import pathlib
import sys

from paddle.base.proto import framework_pb2

HINTS = ("op_callstack", "op_namescope", "op_role_var", "op_device", "with_quant_attr")


def main():
    models, out = map(pathlib.Path, sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(models.glob("*.pdmodel")):
        program = framework_pb2.ProgramDesc.FromString(path.read_bytes())
        program.ClearField("op_version_map")
        block = program.blocks[0]
        n = sum(op.type == "feed" for op in block.ops)
        for var in block.vars:
            if not var.persistable or var.name in ("feed", "fetch"):
                continue
            var.persistable = False
            op = block.ops.add(type="feed")
            op.inputs.add(parameter="X").arguments.append("feed")
            op.outputs.add(parameter="Out").arguments.append(var.name)
            op.attrs.add(name="col", type=0, i=n)
            n += 1
        for op in (op for b in program.blocks for op in b.ops):
            kept = [a for a in op.attrs if a.name not in HINTS]
            del op.attrs[:]
            op.attrs.extend(kept)
        (out / path.name).write_bytes(program.SerializeToString())
    return 0


if __name__ == "__main__":
    sys.exit(main())
