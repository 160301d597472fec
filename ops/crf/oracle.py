"""Real Paddle's public function of viterbi_decode."""
import paddle


def viterbi_decode(potentials, transition, length, include_bos_eos_tag=True):
    return paddle.text.viterbi_decode(potentials, transition, length, include_bos_eos_tag)
