#!/usr/bin/env python3
"""Runs exported programs in real Paddle: run_wire.py PROGRAMS.pickle OUT.pickle

PROGRAMS is a list of (id, model bytes, parameter bytes, feeds by name). OUT is a dict of id to the list of fetched
arrays, or to the error text of a program that Paddle refuses or that ends its process.
"""
import os
import pickle
import signal
import sys
import warnings

os.environ.setdefault("GLOG_minloglevel", "3")
warnings.filterwarnings("ignore")
import numpy as np
import paddle

SECONDS = 20  # for one program: some of Paddle's aborts are deadlocks


def run(model, params, feeds):
    paddle.enable_static()
    exe, scope = paddle.static.Executor(paddle.CPUPlace()), paddle.static.Scope()
    with paddle.static.scope_guard(scope):
        program, _, targets = paddle.static.load_inference_model(None, exe, model_filename=model, params_filename=params)
        return [np.asarray(a) for a in exe.run(program, feed=feeds, fetch_list=targets)]


def run_all(programs, run, pipe):
    """In a child: answers in order, one pickle each. A program that hangs ends the child by its alarm."""
    with os.fdopen(pipe, "wb") as to:
        for name, *program in programs:
            signal.alarm(SECONDS)
            try:
                answer = run(*program)
            except Exception as e:
                answer = f"{type(e).__name__}: {e}"
            pickle.dump((name, answer), to)
            to.flush()
    os._exit(0)


def answers(programs, run=run):
    """{id: run(…)} of programs (id, …). A program that ends its process is answered with how the process ended."""
    results = {}
    while programs:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            run_all(programs, run, write)
        os.close(write)
        done = 0
        with os.fdopen(read, "rb") as source:
            while done < len(programs):
                try:
                    name, answer = pickle.load(source)
                except EOFError:
                    break
                results[name] = answer
                done += 1
        _, status = os.waitpid(child, 0)
        if done < len(programs):
            results[programs[done][0]] = f"Paddle's process ended (wait status {status})"
            done += 1
        programs = programs[done:]
    return results


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as source:
        listed = pickle.load(source)
    with open(sys.argv[2], "wb") as target:
        pickle.dump(answers(listed), target)
