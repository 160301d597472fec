"""Weak scaling of GPT models on paper beside Megatron-LM's published figures: achieved TFLOP/s of one GPU as Narayanan et al. count
them (recomputation included), from 32 to 3072 A100s.

    benchmarks/megatron.py [--chunks N]

Facts of the table: D. Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, SC '21
(arXiv 2104.04473), table 1. One number is fitted: the rate of products is what makes the first row agree, where no model is divided.
All other rows follow from it and from the machine's data sheet: memory 2.0 TB/s, NVLink 300 GB/s and InfiniBand 25 GB/s a GPU and
direction, eight GPUs a host. Micro-batches have one sequence, as the table does not say."""
import argparse

from proa import _core

# billions of parameters, heads, hidden, layers, tensor-parallel, pipeline-parallel, GPUs, batch, TFLOP/s a GPU
TABLE = [(1.7, 24, 2304, 24, 1, 1, 32, 512, 137), (3.6, 32, 3072, 30, 2, 1, 64, 512, 138), (7.5, 32, 4096, 36, 4, 1, 128, 512, 142),
         (18.4, 48, 6144, 40, 8, 1, 256, 1024, 135), (39.1, 64, 8192, 48, 8, 2, 512, 1536, 138),
         (76.1, 80, 10240, 60, 8, 4, 1024, 1792, 140), (145.6, 96, 12288, 80, 8, 8, 1536, 2304, 148),
         (310.1, 128, 16384, 96, 8, 16, 1920, 2160, 155), (529.6, 128, 20480, 105, 8, 35, 2520, 2520, 163),
         (1008.0, 160, 25600, 128, 8, 64, 3072, 3072, 163)]
O2 = 2  # 16-bit parameters and a master copy


def predicted(row, flops, chunks=1):
    """(result, TFLOP/s of a GPU with recomputation) of a row."""
    _, heads, hidden, layers, model, pipe, ranks, batch, _ = row
    data = ranks // model // pipe
    gpt = {"layers": layers, "hidden": hidden, "heads": heads, "vocabulary": 51200, "sequence": 2048}
    fits = pipe > 1 and layers % (pipe * chunks) == 0 and batch // data % pipe == 0
    job = {"data": data, "pipe": pipe, "model": model, "micro_batch": 1, "micro_batches": batch // data, "recompute": True,
           "precision": O2, "chunks": chunks if fits else 1}
    machine = {"flops": flops, "memory_bandwidth": 2.0e12, "link": 25e9, "latency": 5e-6, "local_link": 300e9, "local_latency": 2e-6,
               "host_ranks": 8}
    result = _core.plan_simulate(gpt, job, machine)
    return result, result["model_flops"] * 4 / 3 / result["step"] / ranks / 1e12


def fitted(row):
    """The rate of products at which a row's prediction is what was published, by bisection."""
    low, high = 1e12, 1e15
    for _ in range(60):
        middle = (low + high) / 2
        if predicted(row, middle)[1] < row[-1]:
            low = middle
        else:
            high = middle
    return low


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=1, help="chunks of a pipeline stage, where the layers divide by them")
    options = parser.parse_args()
    flops = fitted(TABLE[0])
    print(f"products: {flops / 1e12:.0f} TFLOP/s, fitted to the first row\n")
    print("parameters, 10⁹ | GPUs | data × pipe × model | published TFLOP/s | predicted | difference | bubble | memory, GB\n---|---|---|---|---|---|---|---")
    for row in TABLE:
        result, rate = predicted(row, flops, options.chunks)
        size, *_, model, pipe, ranks, _, published = row
        print(f"{size} | {ranks} | {ranks // model // pipe} × {pipe} × {model} | {published} | {rate:.0f} | {rate / published - 1:+.0%} | "
              f"{result['bubble']:.1%} | {result['memory'] / 1e9:.0f}")


if __name__ == "__main__":
    main()
