"""Training and prediction from data sets of text files."""
import os
import tempfile

import numpy as np
import paddle
import paddle.static as static
from parity import array, case


def trained(make, steps, lod=False):
    """Parameters after training on the data set that make(variables, paths) gives."""
    paddle.enable_static()
    try:
        main, startup, scope = static.Program(), static.Program(), static.Scope()
        with static.scope_guard(scope), static.program_guard(main, startup), paddle.utils.unique_name.guard(), \
                tempfile.TemporaryDirectory() as folder:
            values, paths = array(8, 3), []
            for k in range(2):
                paths.append(os.path.join(folder, f"part-{k}"))
                with open(paths[-1], "w") as f:
                    for i, row in enumerate(values[4 * k:4 * k + 4]):
                        count = i % 3 + 1 if lod else 3
                        f.write(f"{count} {' '.join(f'{v:.4f}' for v in row[:count])} 1 {i % 2}\n")
            x = static.data("x", [None, 1 if lod else 3], lod_level=int(lod))
            label = static.data("label", [None, 1], "int64")
            w = paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(array(1 if lod else 3, 2).astype("float32")))
            h = static.nn.sequence_pool(x, "average") if lod else x
            loss = paddle.nn.functional.cross_entropy(static.nn.fc(h, 2, weight_attr=w), label).mean()
            paddle.optimizer.SGD(0.5).minimize(loss)
            exe = static.Executor(paddle.CPUPlace())
            exe.run(startup)
            seen = []
            for step in range(steps):
                make(exe, main, [x, label], paths, seen)
            return [np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()], seen
    finally:
        paddle.disable_static()


@case("paddle.distributed.QueueDataset", "paddle.distributed.QueueDataset.init",
      "paddle.distributed.QueueDataset.set_filelist", "paddle.static.Executor.train_from_dataset")
def queue():
    def run(exe, main, variables, paths, seen):
        dataset = paddle.distributed.QueueDataset()
        dataset.init(batch_size=3, thread_num=1, use_var=variables, pipe_command="cat")
        dataset.set_filelist(paths[:1])
        seen.append(exe.train_from_dataset(main, dataset))
    return trained(run, 2)


@case("paddle.distributed.InMemoryDataset", "paddle.distributed.InMemoryDataset.init",
      "paddle.distributed.InMemoryDataset.set_filelist", "paddle.distributed.InMemoryDataset.load_into_memory",
      "paddle.distributed.InMemoryDataset.get_memory_data_size", "paddle.distributed.InMemoryDataset.release_memory",
      "paddle.distributed.InMemoryDataset.get_shuffle_data_size",
      "paddle.distributed.InMemoryDataset.update_settings", "paddle.static.Executor.infer_from_dataset")
def in_memory():
    def run(exe, main, variables, paths, seen):
        dataset = paddle.distributed.InMemoryDataset()
        dataset.init(batch_size=2, thread_num=1, use_var=variables)
        dataset.update_settings(batch_size=8)
        dataset.set_filelist(paths)
        dataset.load_into_memory()
        seen += [dataset.get_memory_data_size(), dataset.get_shuffle_data_size()]
        exe.train_from_dataset(main, dataset)
        exe.infer_from_dataset(main, dataset)
        dataset.release_memory()
    return trained(run, 1)


@case("paddle.distributed.InMemoryDataset.local_shuffle",
      "paddle.distributed.InMemoryDataset.preload_into_memory", "paddle.distributed.InMemoryDataset.wait_preload_done")
def shuffled():
    """One batch of all samples: its mean does not depend on their order."""
    def run(exe, main, variables, paths, seen):
        dataset = paddle.distributed.InMemoryDataset()
        dataset.init(batch_size=8, thread_num=1, use_var=variables)
        dataset.set_filelist(paths)
        dataset.preload_into_memory()
        dataset.wait_preload_done()
        dataset.local_shuffle()
        seen += [dataset.get_memory_data_size(), dataset.get_shuffle_data_size()]
        exe.train_from_dataset(main, dataset)
    return trained(run, 1)


@case("paddle.static.Executor.train_from_dataset")
def of_different_lengths():
    def run(exe, main, variables, paths, seen):
        dataset = paddle.distributed.InMemoryDataset()
        dataset.init(batch_size=8, thread_num=1, use_var=variables)
        dataset.set_filelist(paths)
        dataset.load_into_memory()
        exe.train_from_dataset(main, dataset)
    return trained(run, 2, lod=True)


def kept_after(shuffle):
    """The ids and values of eight samples, sorted, as a program sees them after shuffle(data set), and its size."""
    paddle.enable_static()
    try:
        main, startup, scope = static.Program(), static.Program(), static.Scope()
        with static.scope_guard(scope), static.program_guard(main, startup), tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "part")
            with open(path, "w") as f:
                f.writelines(f"1 {10 + i} 2 {i}.25 {i}.5\n" for i in range(8))
            ids, x = static.data("ids", [None, 1], "int64", lod_level=1), static.data("x", [None, 2])
            kept = [static.create_global_var([8, var.shape[1]], 0, var.dtype, persistable=True) for var in (ids, x)]
            paddle.assign(ids, kept[0])
            paddle.assign(x, kept[1])
            exe = static.Executor(paddle.CPUPlace())
            exe.run(startup)
            dataset = paddle.distributed.InMemoryDataset()
            dataset.init(batch_size=8, thread_num=1, use_var=[ids, x])
            dataset.update_settings(fea_eval=True, candidate_size=100)
            dataset.set_filelist([path])
            dataset.load_into_memory()
            shuffle(dataset)
            size = dataset.get_memory_data_size()
            exe.train_from_dataset(main, dataset)
            found, values = [np.array(scope.find_var(var.name).get_tensor()) for var in kept]
            return sorted(found.ravel().tolist()), sorted(values.tolist()), size
    finally:
        paddle.disable_static()


@case("paddle.distributed.InMemoryDataset.slots_shuffle")
def shuffled_slots():
    """Ids change places (2.6.2 draws some twice), the other values stay."""
    ids, values, size = kept_after(lambda dataset: dataset.slots_shuffle(["ids"]))
    return [set(ids) <= set(range(10, 18)), len(ids), values, size]


@case("paddle.distributed.InMemoryDataset.global_shuffle")
def shuffled_globally():
    """One process: 2.6.2 ends there for want of servers, and shuffles locally instead."""
    here = paddle.__name__ == "proa"
    return kept_after(lambda dataset: dataset.global_shuffle() if here else dataset.local_shuffle())
