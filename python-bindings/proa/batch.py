"""paddle.batch: turns a reader of samples into a reader of lists of samples (batches)."""


def batch(reader, batch_size, drop_last=False):
    """A function like reader whose generator gives lists of batch_size samples; the last may be shorter, or is
    left out with drop_last."""
    size = int(batch_size)
    if size <= 0:
        raise ValueError(f"batch: batch_size must be positive, got {batch_size!r}")

    def batched():
        samples = []
        for sample in reader():
            samples.append(sample)
            if len(samples) == size:
                yield samples
                samples = []
        if samples and not drop_last:
            yield samples
    return batched
