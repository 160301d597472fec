"""Losses over sequences and class trees, and decoding step by step."""
import paddle
from parity import case, fill, ints, rand

F = paddle.nn.functional
N = "paddle.nn.functional."


def ctc_inputs(dtype="float32", blank=0):
    low = 1 if blank == 0 else 0
    return (rand(6, 3, 4, dtype=dtype), ints(3, 3, low=low, high=low + 3, dtype="int32"), paddle.to_tensor([6, 5, 4]),
            paddle.to_tensor([3, 2, 1]))


@case(N + "ctc_loss", tol=1e-4)  # sums of logarithms over paths
def ctc_options():
    logits, labels, times, lengths = ctc_inputs()
    return (F.ctc_loss(logits, labels, times, lengths, norm_by_times=True),
            F.ctc_loss(logits, labels, times, lengths, reduction="none", norm_by_times=True),
            F.ctc_loss(*ctc_inputs(blank=3), blank=3, reduction="sum"))


@case(N + "ctc_loss", tol=1e-7)
def ctc_double():
    return F.ctc_loss(*ctc_inputs("float64"), reduction="none")


@case(N + "ctc_loss", tol=1e-4)
def ctc_edges():
    """Labels that are empty, and that do not fit into their frames."""
    logits, labels = rand(4, 3, 5), paddle.to_tensor([[1, 1, 1], [2, 3, 1], [4, 0, 0]], "int32")
    return F.ctc_loss(logits, labels, paddle.to_tensor([4, 2, 4]), paddle.to_tensor([3, 3, 0]), reduction="none")


@case(N + "hsigmoid_loss", "paddle.nn.HSigmoidLoss")
def hsigmoid_trees():
    table = paddle.to_tensor([[0, 2, -1, -1], [0, 1, 3, -1], [0, 1, 4, -1]])
    code = paddle.to_tensor([[0, 0, -1, -1], [1, 1, 0, -1], [1, 0, 1, -1]])
    layer = fill(paddle.nn.HSigmoidLoss(3, 5))
    custom = fill(paddle.nn.HSigmoidLoss(3, 5, is_custom=True))
    label = paddle.to_tensor([[0], [3], [4]])
    return (F.hsigmoid_loss(rand(8, 3), ints(8, 1, high=8), 8, rand(7, 3)),
            F.hsigmoid_loss(rand(3, 3), label, 5, rand(5, 3), rand(5, 1), table, code),
            F.hsigmoid_loss(rand(5, 3, dtype="float64"), ints(5, 1, high=5), 5, rand(4, 3, dtype="float64")),
            layer(rand(3, 3), label), custom(rand(3, 3), label, table, code))


class Attention(paddle.nn.Layer):
    """A cell whose states are nested and whose step takes an argument more."""

    def __init__(self):
        super().__init__()
        self.cell = paddle.nn.LSTMCell(4, 5)
        self.mix = paddle.nn.Linear(8, 5)

    def forward(self, inputs, states, memory):
        out, states = self.cell(inputs, states)
        return self.mix(paddle.concat([out, memory], -1)), states


def parts(cell):
    return fill(cell), fill(paddle.nn.Embedding(7, 4), 0.8), fill(paddle.nn.Linear(5, 7), 0.9)


@case("paddle.nn.BeamSearchDecoder", "paddle.nn.BeamSearchDecoder.initialize", "paddle.nn.BeamSearchDecoder.step",
      "paddle.nn.BeamSearchDecoder.finalize", "paddle.nn.BeamSearchDecoder.tracks_own_finished",
      "paddle.nn.dynamic_decode", grad=False)
def beam_search():
    cell, table, head = parts(paddle.nn.GRUCell(4, 5))
    decoder = paddle.nn.BeamSearchDecoder(cell, 0, 1, 3, table, head)
    first = decoder.initialize(rand(2, 5, grad=False))
    step = decoder.step(paddle.to_tensor([0]), first[0], first[1])
    ids, states, lengths = paddle.nn.dynamic_decode(decoder, rand(2, 5, grad=False), max_step_num=6,
                                                    return_length=True)
    major, _ = paddle.nn.dynamic_decode(decoder, rand(2, 5, grad=False), max_step_num=4, output_time_major=True)
    return [list(first[1]), list(step[0]), list(step[1]), step[2], step[3], ids, list(states), lengths, major,
            decoder.tracks_own_finished]


class OwnStep(paddle.nn.BeamSearchDecoder):
    """As translation models make it: a step of its own from the decoder's parts."""

    def step(self, time, inputs, states, **kwargs):
        merged = paddle.reshape(states.cell_states, [self.batch_size * self.beam_size, -1])
        outputs, cell_states = self.cell(self._merge_batch_beams(inputs), merged)
        outputs = self.output_fn(self._split_batch_beams(outputs))
        output, state = self._beam_search_step(time, outputs, self._split_batch_beams(cell_states), states)
        return output, state, self.embedding_fn(output.predicted_ids), state.finished


@case("paddle.nn.BeamSearchDecoder", grad=False)
def beam_search_of_a_subclass():
    decoder = OwnStep(parts(paddle.nn.GRUCell(4, 5))[0], 0, 1, 3, *parts(paddle.nn.GRUCell(4, 5))[1:])
    ids, states = paddle.nn.dynamic_decode(decoder, rand(2, 5, grad=False), max_step_num=5)
    return [ids, list(states), decoder._expand_to_beam_size(rand(2, 5, grad=False))]


@case("paddle.nn.BeamSearchDecoder.tile_beam_merge_with_batch", "paddle.nn.dynamic_decode", grad=False)
def beam_search_with_memory():
    cell, table, head = parts(Attention())
    tile = paddle.nn.BeamSearchDecoder.tile_beam_merge_with_batch
    decoder = paddle.nn.BeamSearchDecoder(cell, 0, 1, 4, table, head)
    memory = tile(rand(2, 3, grad=False), 4)
    states = (rand(2, 5, grad=False), rand(2, 5, grad=False))
    ids, last = paddle.nn.dynamic_decode(decoder, states, max_step_num=5, memory=memory)
    return memory, tile(rand(2, 3, 2), 2), ids, list(last.cell_states), last.log_probs


@case("paddle.nn.dynamic_decode")
def own_decoder():
    """Greedy decoding by a decoder without finalize that leaves the finished to dynamic_decode."""
    cell, table, head = parts(paddle.nn.GRUCell(4, 5))

    class Greedy:
        tracks_own_finished = False

        def initialize(self, inits):
            n = inits.shape[0]
            return table(paddle.zeros([n], "int64")), inits, paddle.zeros([n], "bool")

        def step(self, time, inputs, states):
            out, states = cell(inputs, states)
            scores = head(out)
            best = scores.argmax(-1)
            return {"scores": scores, "ids": best}, states, table(best), paddle.logical_or(best == 1, best == 5)

        def finalize(self, outputs, states, lengths):
            raise NotImplementedError

    results = []
    for impute in (False, True):
        out, last, lengths = paddle.nn.dynamic_decode(Greedy(), rand(3, 5), max_step_num=5, impute_finished=impute,
                                                      return_length=True)
        results += [out["scores"], out["ids"], last, lengths]
    return results
