"""fleet's roles of a parameter-server job, from the environment and from scripts; file systems and generators of data."""
import contextlib
import io
import os
import sys
import tempfile
from unittest import mock

import paddle
import paddle.distributed.fleet as fleet
from parity import case, raised, since_removed
from paddle.distributed.fleet.utils import HDFSClient, LocalFS

F = "paddle.distributed.fleet."
JOB = {"TRAINING_ROLE": "TRAINER", "PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.1:4001,127.0.0.1:4002",
       "PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:5001,127.0.0.1:5002", "PADDLE_TRAINERS_NUM": "2", "PADDLE_TRAINER_ID": "1",
       "PADDLE_CURRENT_ENDPOINT": "127.0.0.1:5002", "POD_IP": "127.0.0.1", "PADDLE_PORT": "5002"}


@contextlib.contextmanager
def environment(**values):
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def described(role):
    """All that fleet says of the process whose role it is."""
    f = fleet.fleet
    return [f.is_worker(), f.is_server(), f.is_first_worker(), f.worker_num(), f.worker_endpoints(), f.worker_endpoints(to_string=True),
            f.server_num(), f.server_endpoints(), f.server_endpoints(to_string=True), f.worker_index(), f.server_index(),
            f.node_num(), role.to_string()]


@case(*(F + "Fleet." + n for n in ("init", "is_worker", "is_server", "is_first_worker", "worker_num", "worker_endpoints", "worker_index",
                                   "server_num", "server_endpoints", "server_index", "node_num")),
      *(F + n for n in ("Fleet", "PaddleCloudRoleMaker.to_string", "UserDefinedRoleMaker.to_string", "Role.WORKER", "Role.SERVER",
                        "Role.HETER_WORKER", "Role.ALL", "worker_endpoints", "server_endpoints", "server_num", "server_index")),
      grad=False)
def roles_of_servers_and_workers():
    paddle.enable_static()
    found = []
    try:
        for changes in ({}, {"PADDLE_TRAINER_ID": "0"}, {"TRAINING_ROLE": "PSERVER", "PADDLE_PORT": "4002"}):
            with environment(**{**JOB, **changes}):
                role = fleet.PaddleCloudRoleMaker(is_collective=False)
                fleet.init(role)
                found.append(described(role))
        found.append([fleet.worker_endpoints(), fleet.server_endpoints(), fleet.server_num(), fleet.server_index()])
        for role in (fleet.Role.WORKER, fleet.Role.SERVER):
            made = fleet.UserDefinedRoleMaker(is_collective=False, init_gloo=False, current_id=1, role=role,
                                              worker_endpoints=["127.0.0.1:1", "127.0.0.1:2"],
                                              server_endpoints=["127.0.0.1:3", "127.0.0.1:4"])
            fleet.init(made)
            found.append(described(made))
        found.append([fleet.Role.WORKER, fleet.Role.SERVER, fleet.Role.HETER_WORKER, fleet.Role.ALL])
        with environment(**{**JOB, "TRAINING_ROLE": "COOK"}):
            found.append(raised(lambda: fleet.init(fleet.PaddleCloudRoleMaker(is_collective=False)), ValueError))
        found.append(raised(lambda: fleet.init("worker"), ValueError))
    finally:
        paddle.disable_static()
    return found


# ---- file systems ----

@case(*(F + "utils.LocalFS." + n for n in ("ls_dir", "list_dirs", "mkdirs", "rename", "delete", "need_upload_download", "is_file", "is_dir",
                                           "is_exist", "touch", "mv", "upload", "upload_dir", "download")), grad=False)
def local_files():
    fs, found = LocalFS(), []
    with tempfile.TemporaryDirectory() as folder:
        at = lambda *names: os.path.join(folder, *names)
        state = lambda name: [fs.is_file(at(name)), fs.is_dir(at(name)), fs.is_exist(at(name))]
        fs.mkdirs(at("d", "e"))
        fs.touch(at("d", "a"))
        fs.touch(at("d", "a"))
        found += [raised(lambda: fs.touch(at("d", "a"), exist_ok=False), Exception), sorted(map(sorted, fs.ls_dir(at("d")))),
                  fs.ls_dir(at("none")), fs.list_dirs(at("d")), fs.list_dirs(at("none")), [state(n) for n in ("d", "d/a", "none")]]
        fs.rename(at("d", "a"), at("b"))
        fs.mv(at("b"), at("c"))
        found += [state("b"), state("c"), raised(lambda: fs.mv(at("b"), at("x")), Exception)]
        fs.touch(at("b"))
        found += [raised(lambda: fs.mv(at("b"), at("c")), Exception)]
        fs.mv(at("b"), at("c"), overwrite=True)
        found += [state("b"), [raised(lambda n=n: getattr(fs, n)("a", "b"), NotImplementedError) for n in ("upload", "upload_dir", "download")],
                  raised(lambda: fs.mkdirs(at("c")), AssertionError)]
        fs.delete(at("d"))
        fs.delete(at("c"))
        fs.delete(at("none"))
        found += [state("d"), state("c"), fs.need_upload_download()]
    return found


# Stands for the command `hadoop fs`, on a folder of this machine. In sh, which starts soonest.
HADOOP = """#!/bin/sh
shift
while [ "${1#-D}" != "$1" ]; do shift; done
name=$1 option=
shift
while [ "${1#-}" != "$1" ]; do
    option=$1
    shift
done
case $name in
-test) test "$option" "$1" ;;
-ls)
    test -d "$1" || exit 1
    for entry in "$1"/*; do
        kind=-
        if [ -d "$entry" ]; then kind=d; fi
        if [ -e "$entry" ]; then echo "${kind}rw-r--r-- 1 u g 0 2021-01-01 00:00 $entry"; fi
    done ;;
-mkdir) mkdir $option "$1" ;;
-rm | -rmr) rm -r "$1" ;;
-touchz) : >"$1" ;;
-mv) mv "$1" "$2" ;;
-cat) cat "$1" ;;
-put | -get) cp -r "$1" "$2" ;;
*)
    echo "unknown command $name" >&2
    exit 1 ;;
esac
"""


def hadoop(folder):
    """Writes the command below a folder; returns a client of it."""
    os.makedirs(os.path.join(folder, "bin"))
    path = os.path.join(folder, "bin", "hadoop")
    with open(path, "w") as f:
        f.write(HADOOP)
    os.chmod(path, 0o755)
    return HDFSClient(folder, {"fs.default.name": "hdfs://host:1", "hadoop.job.ugi": "a,b"}, time_out=20000, sleep_inter=10)


@case(*(F + "utils.HDFSClient" + n for n in ("", ".is_exist", ".is_dir", ".is_file", ".mkdirs", ".mv", ".rename", ".delete", ".touch",
                                             ".upload", ".download", ".need_upload_download", ".upload_dir", ".ls_dir",
                                             ".list_dirs")), grad=False)
def remote_files():
    """Real Paddle waits three seconds after a command that fails, as one does that answers "no": here nobody sleeps."""
    found = []
    with tempfile.TemporaryDirectory() as folder, mock.patch("time.sleep"):
        fs, at = hadoop(os.path.join(folder, "home")), lambda *names: os.path.join(folder, *names)
        fs.mkdirs(at("r"))
        found += [fs.is_exist(at("r")), fs.is_dir(at("r")), fs.is_file(at("r"))]
        with open(at("local"), "w") as f:
            f.write("one\ntwo")
        fs.upload(at("local"), at("r"))
        found += [fs.is_file(at("r", "local")), fs.cat(at("r", "local"))]
        fs.mv(at("r", "local"), at("r", "b"), test_exists=False)
        fs.download(at("r", "b"), at("back"))
        found += [os.path.isfile(at("back")) and open(at("back")).read(), sorted(os.listdir(at("r")))]
        fs.touch(at("r", "b"))
        os.makedirs(at("tree", "deep"))
        fs.upload_dir(at("tree"), at("r"))
        rename = since_removed(F + "utils.HDFSClient.rename", lambda: HDFSClient.mv)  # not implemented in 2.6.2
        rename(fs, at("r", "b"), at("r", "c"), test_exists=False)
        found += [os.path.isdir(at("r", "tree", "deep")), sorted(os.listdir(at("r")))]
        listed = lambda name, heir: since_removed(F + "utils.HDFSClient." + name, lambda: heir)(fs, at("r"))  # 2.6.2's fail in any call
        found += [[sorted(names) for names in listed("ls_dir", lambda fs, path: (["tree"], ["c"]))],
                  listed("list_dirs", lambda fs, path: ["tree"])]
        fs.delete(at("r", "tree"))
        found += [sorted(os.listdir(at("r"))), fs.need_upload_download()]
    return found


# ---- generators ----

class Words(fleet.MultiSlotDataGenerator):
    def generate_sample(self, line):
        def samples():
            words = line.split()
            yield [("words", [int(w) for w in words[:-1]]), ("score", [float(words[-1])])]
        return samples


class Texts(fleet.MultiSlotStringDataGenerator):
    def generate_sample(self, line):
        def samples():
            yield [("words", line.split()), ("label", ["0"])]
        return samples


@case(F + "MultiSlotDataGenerator.run_from_stdin", F + "MultiSlotStringDataGenerator.run_from_stdin", grad=False)
def lines_of_standard_input():
    out = []
    for make in (Words, Texts):
        generator, text, before = make(), io.StringIO(), sys.stdin
        generator.set_batch(2)
        sys.stdin = io.StringIO("1 2 3 0.5\n4 1\n5 6 2.5\n")
        try:
            with contextlib.redirect_stdout(text):
                generator.run_from_stdin()
        finally:
            sys.stdin = before
        out.append(text.getvalue())
    return out
