"""The transducer's loss: minus the log-likelihood of labels under a model that emits any number of them a frame."""
from ... import _core
from ..._asks import asks


@asks("input.shape eager:input:Tensor!InvalidArgument eager:label:Tensor!InvalidArgument "
      "eager:input_lengths:Tensor!InvalidArgument eager:label_lengths:Tensor!InvalidArgument eager:blank:int!InvalidArgument "
      "eager:fastemit_lambda:number,bool!InvalidArgument input~f4,f8 label~i4 input_lengths~i4 label_lengths~i4 "
      "eager:input.dtype=f4,f8!NotFound eager:input#4!InvalidArgument")
def rnnt_loss(input, label, input_lengths, label_lengths, blank=0, fastemit_lambda=0.001, reduction="mean", name=None):
    """The loss of Graves (2012), summed over all alignments. input: [batch, frames, labels + 1, classes] logarithms of
    probabilities. fastemit_lambda strengthens the gradients of emissions (Yu et al., 2021); the value stays.

    >>> x = paddle.log(paddle.full([1, 1, 2, 2], 0.5))
    >>> one = paddle.ones([1], "int32")
    >>> round(paddle.nn.functional.rnnt_loss(x, paddle.ones([1, 1], "int32"), one, one).item(), 4)
    1.3863
    """
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f"rnnt_loss: reduction must be 'none', 'sum' or 'mean', got {reduction!r}")
    if len(input.shape) != 4 or list(label.shape) != [input.shape[0], input.shape[2] - 1]:
        raise ValueError("rnnt_loss: input must be [batch, frames, labels + 1, classes] and label [batch, labels], got shapes "
                         f"{list(input.shape)} and {list(label.shape)}")
    batch, frames, places, _ = input.shape
    wide = _core.cast(input, "float64")  # sums of a row's emissions are taken apart again below
    empty = _core.squeeze(_core.slice(wide, [3], [blank], [blank + 1]), [3])
    index = _core.expand(_core.reshape(_core.cast(label, "int64"), [batch, 1, places - 1, 1]), [batch, frames, places - 1, 1])
    emit = _core.take_along_axis(_core.slice(wide, [2], [0], [places - 1]), index, 3)
    emit = _core.squeeze(emit, [3])
    if fastemit_lambda:
        emit = _core.subtract(_core.scale(emit, 1 + fastemit_lambda), _core.scale(emit, fastemit_lambda).detach())
    start = _core.full([batch, frames, 1], 0, "float64")
    sums = _core.concat([start, _core.cumsum(emit, 2)], 2) if places > 1 else start
    rows = [sums[:, 0]]  # log-probabilities of having emitted u labels when frame t begins, and then some within it
    for t in range(1, frames):
        reached = _core.subtract(_core.add(rows[-1], empty[:, t - 1]), sums[:, t])
        rows.append(_core.add(sums[:, t], _core.logcumsumexp(reached, 1)))
    whole = _core.add(_core.stack(rows, 1), empty)
    ends = (_core.cast(input_lengths, "int64") - 1) * places + _core.cast(label_lengths, "int64")
    last = _core.take_along_axis(_core.reshape(whole, [batch, frames * places]), _core.reshape(ends, [batch, 1]), 1)
    loss = _core.cast(_core.neg(_core.squeeze(last, [1])), input.dtype)
    return loss if reduction == "none" else _core.sum(loss) if reduction == "sum" else _core.mean(loss)
