"""paddle.text: data sets in local files, and Viterbi decoding."""
from . import datasets
from .datasets import Imdb, Imikolov, Movielens, UCIHousing
from .translation import WMT14, WMT16, Conll05st
from .viterbi import ViterbiDecoder, viterbi_decode

datasets.Conll05st, datasets.WMT14, datasets.WMT16 = Conll05st, WMT14, WMT16

__all__ = ["Conll05st", "Imdb", "Imikolov", "Movielens", "UCIHousing", "ViterbiDecoder", "WMT14", "WMT16", "datasets",
           "viterbi_decode"]
