"""paddle.text: data sets in local files, and Viterbi decoding."""
from . import datasets
from .datasets import Imdb, Imikolov, Movielens, UCIHousing
from .viterbi import ViterbiDecoder, viterbi_decode

__all__ = ["Imdb", "Imikolov", "Movielens", "UCIHousing", "ViterbiDecoder", "datasets", "viterbi_decode"]
