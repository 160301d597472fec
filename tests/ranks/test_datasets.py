"""Data sets of text files whose samples travel between ranks."""
import pytest

import proa as paddle
from _job import passes
from proa.distributed import fleet

SHUFFLE = """
import proa.static as static
from proa.distributed import fleet

fleet.init(is_collective=True)
paddle.enable_static()
ids, x = static.data("ids", [None, 1], "int64", lod_level=1), static.data("x", [None, 2])
count = 0 if rank == 2 else 60 * (rank + 1)
path = f"{sys.argv[1]}/part-{rank}"
with open(path, "w") as f:
    for n in range(1000 * rank, 1000 * rank + count):
        f.write(f"{n % 3 + 1} {' '.join(str(n * 10 + k) for k in range(n % 3 + 1))} 2 {n}.1 {n}.25\\n")
dataset = dist.InMemoryDataset()
dataset.init(batch_size=4, use_var=[ids, x])
dataset.update_settings(fleet_send_batch_size=512, fleet_send_sleep_seconds=0)
dataset.set_filelist([path])
dataset.load_into_memory()

def everybody():
    held = []
    dist.all_gather_object(held, [[list(map(list, sample)) for sample in dataset._samples()]])
    return [sorted(samples) for samples, in held]

def of(samples):
    return {int(values[0]) // 1000 for _, values in samples}  # the ranks that read them

before = everybody()
assert [len(b) for b in before] == [60, 120, 0][:size]
assert dataset.get_memory_data_size() == count and dataset.get_memory_data_size(fleet) == 180
dataset.global_shuffle(fleet)
after = everybody()
assert sorted(sum(after, [])) == sorted(sum(before, [])), "a sample is lost, or there twice"
assert all(of(a) == {0, 1} for a in after), "each rank has some of each rank's"
assert dataset.get_shuffle_data_size() == len(after[rank]) and dataset.get_shuffle_data_size(fleet) == 180
order = [values[0] for _, values in dataset._samples()]
assert order != sorted(order)
dataset.global_shuffle(fleet.fleet)
again = everybody()
assert again != after and sorted(sum(again, [])) == sorted(sum(before, []))
dataset.global_shuffle()
assert everybody() == again, "without fleet samples stay with their rank"
"""


@pytest.mark.parametrize("ranks", [2, 3])
def test_global_shuffle(tmp_path, ranks):
    passes(tmp_path, ranks, SHUFFLE)


def test_workers_that_have_not_joined():
    other = fleet.Fleet()
    other.init(fleet.UserDefinedRoleMaker(current_id=0, role=fleet.Role.WORKER, worker_num=2, server_endpoints=["127.0.0.1:1"]))
    dataset = paddle.distributed.InMemoryDataset()
    dataset._memory = []
    with pytest.raises(ValueError, match=r"2 workers meet at the first one's address, and 0 addresses are known; .*worker_endpoints"):
        dataset.global_shuffle(other)
