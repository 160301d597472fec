"""paddle.distributed.fleet on one process: strategies and their files, topologies, roles, metrics, generators, recompute."""
import contextlib
import io
import os
import tempfile

import numpy as np
import paddle
import paddle.distributed.fleet as fleet
from parity import array, case, fill
from paddle.distributed.fleet.utils import LocalFS, recompute

F = "paddle.distributed.fleet."


def raised(call):
    try:
        call()
    except Exception as e:
        return type(e).__name__
    return "nothing"


@case(*(F + "DistributedStrategy" + n for n in (
    "", ".amp", ".amp_configs", ".recompute", ".recompute_configs", ".gradient_merge", ".gradient_merge_configs", ".localsgd",
    ".localsgd_configs", ".lars", ".lars_configs", ".lamb", ".lamb_configs", ".dgc", ".dgc_configs", ".pipeline",
    ".pipeline_configs", ".sharding", ".sharding_configs", ".hybrid_configs", ".tensor_parallel", ".tensor_parallel_configs",
    ".a_sync", ".a_sync_configs", ".adaptive_localsgd", ".adaptive_localsgd_configs", ".fuse_grad_size_in_MB",
    ".last_comm_group_size_MB", ".find_unused_parameters", ".fp16_allreduce", ".sync_batch_norm", ".nccl_comm_num",
    ".save_to_prototxt", ".load_from_prototxt", ".elastic", ".auto", ".without_graph_optimization", ".fuse_all_reduce_ops",
    ".use_hierarchical_allreduce", ".hierarchical_allreduce_inter_nranks", ".gradient_scale_configs", ".qat", ".qat_configs")))
def strategies():
    s, seen = fleet.DistributedStrategy(), []
    for name in ("amp", "recompute", "gradient_merge", "localsgd", "lars", "lamb", "dgc", "pipeline", "sharding", "a_sync",
                 "tensor_parallel", "adaptive_localsgd", "find_unused_parameters", "fp16_allreduce", "sync_batch_norm", "elastic",
                 "auto", "without_graph_optimization", "fuse_all_reduce_ops", "use_hierarchical_allreduce", "qat"):
        seen.append((name, getattr(s, name)))
        setattr(s, name, True)
    for name in ("amp", "recompute", "gradient_merge", "localsgd", "lars", "lamb", "dgc", "pipeline", "a_sync", "tensor_parallel",
                 "adaptive_localsgd", "gradient_scale", "qat"):
        seen.append((name, sorted((k, v) for k, v in getattr(s, name + "_configs").items() if k != "refined_ops_patterns")))
    s.amp_configs = {"init_loss_scaling": 1024.0, "custom_white_list": ["a", "b"], "decr_ratio": 0.75}
    s.recompute_configs = {"checkpoints": ["x", "y"]}
    s.hybrid_configs = {"dp_degree": 2, "mp_degree": 4}
    s.fuse_grad_size_in_MB, s.last_comm_group_size_MB, s.nccl_comm_num = 16, 2.5, 2
    s.hierarchical_allreduce_inter_nranks = 4
    seen += [s.hybrid_configs[k] for k in ("dp_degree", "mp_degree", "pp_degree", "sharding_degree")]
    seen.append(raised(lambda: setattr(s, "nothing", 1)))
    seen.append(raised(lambda: setattr(s, "amp_configs", {"nothing": 1})))
    seen.append(raised(lambda: setattr(s, "amp_configs", {"init_loss_scaling": "x"})))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.prototxt")
        s.save_to_prototxt(path)
        text = open(path).read()
        t = fleet.DistributedStrategy()
        t.load_from_prototxt(path)
    return seen, text, t.amp_configs["custom_white_list"], t.fuse_grad_size_in_MB, t.last_comm_group_size_MB


@case(*(F + "CommunicateTopology" + n for n in (
    "", ".get_hybrid_group_names", ".get_dim", ".get_dim_size", ".world_size", ".get_rank", ".get_coord", ".get_axis_list",
    ".get_comm_list", ".get_rank_from_stage", ".get_fused_ranks")))
def topologies():
    t = fleet.CommunicateTopology(["data", "pipe", "sharding", "sep", "model"], [2, 2, 1, 1, 2])
    return [t.get_hybrid_group_names(), t.get_dim("pipe"), t.get_dim_size("model"), t.world_size(),
            t.get_rank(data=1, pipe=0, sharding=0, sep=0, model=1), list(t.get_coord(5)), t.get_axis_list("pipe", 1),
            [t.get_comm_list(n) for n in ("data", "pipe", "model")], t.get_rank_from_stage(1, pipe=1),
            sorted(t.get_fused_ranks(["data", "model"])), raised(lambda: t.get_coord(8)), raised(lambda: t.get_rank(data=0))]


@case(*(F + n for n in ("PaddleCloudRoleMaker", "UserDefinedRoleMaker", "Role", "init", "worker_num", "worker_index", "is_worker",
                        "is_server", "is_first_worker", "UtilBase", "UtilBase.get_file_shard", "UtilBase.all_reduce",
                        "UtilBase.all_gather")))
def roles():
    made = []
    for at in range(2):
        role = fleet.UserDefinedRoleMaker(is_collective=False, init_gloo=False, current_id=at, role=fleet.Role.WORKER,
                                          worker_endpoints=["127.0.0.1:1", "127.0.0.1:2"], server_endpoints=["127.0.0.1:3"])
        made.append([role._worker_index(), role._is_worker(), role._is_first_worker(), role._worker_num(), role._is_server()])
        util = fleet.UtilBase()
        util._set_role_maker(role)
        made.append(util.get_file_shard(["a", "b", "c"]))
        made.append(raised(lambda util=util: util.get_file_shard("a")))
    return made, [fleet.Role.WORKER, fleet.Role.SERVER, fleet.Role.HETER_WORKER, fleet.Role.ALL]


class Words(fleet.MultiSlotDataGenerator):
    def generate_sample(self, line):
        def samples():
            yield [("words", [1, 2, 3]), ("score", [0.5])]
            yield [("words", [4]), ("score", [1])]
        return samples


class Texts(fleet.MultiSlotStringDataGenerator):
    def generate_sample(self, line):
        def samples():
            yield [("words", ["1", "2"]), ("label", ["0"])]
        return samples


@case(*(F + g + n for g in ("MultiSlotDataGenerator", "MultiSlotStringDataGenerator") for n in (
    "", ".generate_sample", ".generate_batch", ".run_from_memory", ".set_batch")))
def generators():
    out = []
    for make in (Words, Texts):
        generator, text = make(), io.StringIO()
        generator.set_batch(2)
        with contextlib.redirect_stdout(text):
            generator.run_from_memory()
        out.append(text.getvalue())
    return out


@case(*(F + "utils." + n for n in ("LocalFS", "recompute")))
def recomputed():
    fs = LocalFS()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a")
        fs.touch(path)
        fs.mkdirs(os.path.join(folder, "d"))
        fs.mv(path, os.path.join(folder, "b"))
        files = fs.ls_dir(folder), fs.is_file(path), fs.is_exist(folder), fs.is_dir(folder), fs.list_dirs(folder)
    net = fill(paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.Tanh(), paddle.nn.Linear(8, 2)))
    x = paddle.to_tensor(array(3, 4).astype("float32"), stop_gradient=False)
    out = recompute(net, x)
    (out * out).sum().backward()
    return files, out, x.grad, [p.grad for p in net.parameters()]


@case("paddle.distributed.fleet.metrics.auc")
def areas():
    pos, neg = np.array([[1, 2, 5, 9.0]]), np.array([[8, 4, 1, 1.0]])
    fleet.init(is_collective=True)
    return float(fleet.metrics.auc(pos, neg)), float(fleet.metrics.acc(np.array([3.0]), np.array([4.0])))
