"""paddle.distributed.rpc between real processes: results, exceptions, futures, timeouts, workers that die, strangers; and gloo_*,
passes and paddle.distributed.io."""
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import proa as paddle
from _job import passes as passes_of_launcher
from conftest import ROOT
from proa.distributed import passes, rpc
from proa.distributed.rpc import wire
from proa.distributed.spawn import free_ports

HEAD = """
import os, sys, time
sys.path.insert(0, {package!r})
import numpy as np
import proa as paddle
from proa.distributed import rpc
rank, size, master = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

def add(a, b, scale=1):
    return (a + b) * scale

def fails(text):
    raise KeyError(text)

def slow(seconds):
    time.sleep(seconds)
    return rank

def dies():
    os._exit(3)

def back(name):
    return rpc.rpc_sync(name, add, args=(rank, 100))

rpc.init_rpc(f"worker{{rank}}", rank, size, master)
"""


def start(tmp_path, size, body):
    """Processes that each run the body as a worker of their own."""
    script = tmp_path / "worker.py"
    script.write_text(HEAD.format(package=str(ROOT / "build/python")) + textwrap.dedent(body))
    master = f"127.0.0.1:{free_ports(1)[0]}"
    return [subprocess.Popen([sys.executable, script, str(r), str(size), master], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for r in range(size)]


def end(processes, limit=60):
    try:
        return [(p.communicate(timeout=limit)[0], p.returncode) for p in processes]
    finally:
        for p in processes:
            p.kill()


def all_well(done):
    assert all(code == 0 for _, code in done), "\n".join(text for text, _ in done)


def test_calls(tmp_path):
    all_well(end(start(tmp_path, 3, """
        infos = rpc.get_all_worker_infos()
        assert [i.name for i in infos] == ["worker0", "worker1", "worker2"] and [i.rank for i in infos] == [0, 1, 2]
        assert rpc.get_current_worker_info().rank == rank and rpc.get_worker_info("worker1").ip == "127.0.0.1"
        other = f"worker{(rank + 1) % size}"
        assert rpc.rpc_sync(other, add, args=(2, 3), kwargs={"scale": 4}) == 20
        t = rpc.rpc_sync(other, add, args=(paddle.ones([2]), paddle.ones([2])))
        assert isinstance(t, paddle.Tensor) and t.tolist() == [2.0, 2.0]
        big = np.arange(3_000_000.0)
        np.testing.assert_array_equal(rpc.rpc_sync(other, add, args=(big, 1)), big + 1)
        futures = [rpc.rpc_async(f"worker{i % size}", slow, args=(0.2,)) for i in range(12)]
        began = time.time()
        assert [f.wait() for f in futures] == [i % size for i in range(12)] and time.time() - began < 2
        assert rpc.rpc_sync(other, back, args=(f"worker{rank}",)) == (rank + 1) % size + 100  # a call within a call
        try:
            rpc.rpc_sync(other, fails, args=("lost",))
        except KeyError as e:
            assert e.args == ("lost",)
        try:
            rpc.rpc_sync(other, slow, args=(3,), timeout=0.2)
        except TimeoutError as e:
            assert other in str(e) and "0.2" in str(e)
        else:
            raise AssertionError
        for bad in (lambda: rpc.rpc_sync("nobody", add), lambda: rpc.init_rpc("again"), lambda: rpc.rpc_sync(other, 3)):
            try:
                bad()
            except (ValueError, RuntimeError, TypeError) as e:
                assert "nobody" in str(e) or "already" in str(e) or "callable" in str(e), e
            else:
                raise AssertionError
        rpc.shutdown()
        try:
            rpc.get_worker_info("worker0")
        except RuntimeError as e:
            assert "init_rpc" in str(e)
    """)))


def test_a_worker_that_dies(tmp_path):
    done = end(start(tmp_path, 3, """
        if rank == 2:
            time.sleep(60)
        if rank == 0:
            for _ in range(2):
                began = time.time()
                try:
                    rpc.rpc_sync("worker2", dies)
                except RuntimeError as e:
                    assert "worker2" in str(e) and "gone" in str(e), e
                else:
                    raise AssertionError
                assert time.time() - began < 5
        try:
            rpc.shutdown()
        except RuntimeError as e:
            assert "worker2" in str(e)
            print("told")
        os._exit(0)
    """))
    assert [code for _, code in done] == [0, 0, 3] and all("told" in text for text, _ in done[:2]), done


def test_strangers_are_not_heard():
    rpc.init_rpc("worker0", rank=0, world_size=1)
    try:
        import socket
        me = rpc.get_current_worker_info()
        for secret in (b"", b"guess", bytes(32)):
            with socket.create_connection((me.ip, me.port)) as sock, pytest.raises((EOFError, OSError)):
                wire.introduce(sock, secret)
        silent = socket.create_connection((me.ip, me.port))  # nor do they keep others from being heard
        assert rpc.rpc_sync("worker0", max, args=(1, 2)) == 2
        silent.close()
        with pytest.raises(AttributeError):
            rpc.rpc_sync("worker0", lambda: 1)  # no function that another process could import
    finally:
        rpc.shutdown()
    with pytest.raises(ValueError, match="rank"):
        rpc.init_rpc("worker0", rank=2, world_size=1)


def test_gloo(tmp_path):
    script, port = tmp_path / "gloo.py", free_ports(1)[0]
    script.write_text(textwrap.dedent(f"""
        import sys, time
        sys.path.insert(0, {str(ROOT / "build/python")!r})
        import proa as paddle
        import proa.distributed as dist
        rank = int(sys.argv[1])
        for _ in range(2):
            dist.gloo_init_parallel_env(rank, 2, "127.0.0.1:{port}")
            if rank == 0:
                time.sleep(0.3)
            began = time.time()
            dist.gloo_barrier()
            assert rank == 0 or time.time() - began > 0.1
            t = paddle.ones([2])
            dist.all_reduce(t)
            assert t.tolist() == [2.0, 2.0]
            dist.gloo_release()
        for bad in ((0, 1, "a:1"), (2, 2, "a:1"), (0, 2, "a")):
            try:
                dist.gloo_init_parallel_env(*bad)
            except ValueError as e:
                assert "gloo_init_parallel_env" in str(e)
            else:
                raise AssertionError(bad)
    """))
    all_well(end([subprocess.Popen([sys.executable, script, str(r)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                  for r in range(2)]))


def test_passes():
    class Seen(passes.PassBase):
        def _apply_single_impl(self, main_program, startup_program, context):
            context.set_attr("seen", (main_program, startup_program, self.get_attr("by")))

    passes.register_pass("test_seen")(Seen)
    main, startup = paddle.static.Program(), paddle.static.Program()
    made = passes.PassManager([passes.new_pass("fuse_all_reduce"), passes.new_pass("test_seen", {"by": 3}),
                               passes.new_pass("fuse_gemm_epilogue"), passes.new_pass("inplace_addto_op"), passes.new_pass("test_seen")])
    assert made.names == ["fuse_all_reduce", "test_seen", "fuse_gemm_epilogue"]  # nothing behind a fusion; each once
    context = made.apply([main], [startup])
    assert context is made.context and context.get_attr("seen") == (main, startup, 3) and context.get_attr("none", 1) == 1
    assert [p.name for p in context.passes] == made.names and len(made.passes) == 3
    with pytest.raises(ValueError, match="no pass 'none'"):
        passes.new_pass("none")
    with pytest.raises(NotImplementedError, match="auto_parallel_sharding.*to_static"):
        passes.new_pass("auto_parallel_sharding").apply([main], [startup])
    with pytest.raises(TypeError, match="lists"):
        made.passes[0].apply(main, startup)


def test_io(tmp_path):
    from proa.distributed import io
    paddle.enable_static()
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            x = paddle.static.data("x", [None, 3])
            y = paddle.static.nn.fc(x, 2)
        exe = paddle.static.Executor()
        exe.run(startup)
        feed = {"x": np.ones([1, 3], "float32")}
        want, = exe.run(main, feed, [y])
        io.save_persistables(exe, str(tmp_path / "saved"), main)
        exe.run(startup)
        io.load_persistables(exe, str(tmp_path / "saved"), main)
        np.testing.assert_array_equal(exe.run(main, feed, [y])[0], want)
        assert [io.is_persistable(v) for v in (x, main.all_parameters()[0])] == [False, True]
        from proa.fluid.io import save_inference_model
        save_inference_model(str(tmp_path / "model"), ["x"], [y], exe, main)
        program, names, fetched = io.load_inference_model_distributed(str(tmp_path / "model"), exe)
        np.testing.assert_array_equal(exe.run(program, {names[0]: feed["x"]}, fetched)[0], want)
    finally:
        paddle.disable_static()


def test_waits_are_bounded():
    began = time.time()
    rpc.init_rpc("alone", rank=0, world_size=1)
    with pytest.raises(TimeoutError, match="alone"):
        rpc.rpc_sync("alone", time.sleep, args=(1.5,), timeout=0.1)
    rpc.shutdown()
    assert time.time() - began < 10


def test_in_a_launched_job(tmp_path):
    passes_of_launcher(tmp_path, 2, """
        from proa.distributed import rpc
        import math
        for again in range(2):
            rpc.init_rpc(f"w{rank}")  # where and as whom: the launcher's environment says
            assert rpc.rpc_sync(f"w{1 - rank}", math.pow, args=(2, 3 + again)) == 8 * (1 + again)
            t = paddle.ones([2]) * (rank + 1)
            dist.all_reduce(t)  # collectives go on beside it
            assert t.tolist() == [3.0, 3.0]
            assert rpc.rpc_async(f"w{1 - rank}", os.getpid).wait() != os.getpid()
            rpc.shutdown()
        assert dist.is_initialized()
    """)
