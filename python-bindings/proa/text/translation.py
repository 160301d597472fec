"""WMT14 (French), WMT16 (German) and CoNLL-2005 from their archives; nothing is downloaded."""
import collections
import gzip
import tarfile

from ..io import Dataset
from .datasets import _arrays, _checked, _present


def _lines(archive, name):
    for line in archive.extractfile(name):
        yield line.decode()


def _reversed(words):
    return {i: w for w, i in words.items()}


class _Pairs(Dataset):
    """(source, target with its start, target with its end) as word numbers."""

    def __getitem__(self, idx):
        return _arrays((self.src_ids[idx], self.trg_ids[idx], self.trg_ids_next[idx]))

    def __len__(self):
        return len(self.src_ids)

    def _add(self, source, target, start, end):
        self.src_ids.append(source)
        self.trg_ids.append([start, *target])
        self.trg_ids_next.append([*target, end])


class WMT14(_Pairs):
    """English and French; dict_size words of each dictionary are known. Pairs of more than 80 words are left out."""

    def __init__(self, data_file=None, mode="train", dict_size=-1, download=True):
        self.mode, self.data_file = _checked("WMT14", mode, data_file, "wmt14", "wmt14.tgz", ("train", "test", "gen"))
        if dict_size <= 0:
            raise AssertionError(f"WMT14: dict_size must be positive, got {dict_size}")
        self.dict_size = dict_size
        self.src_ids, self.trg_ids, self.trg_ids_next = [], [], []
        with tarfile.open(self.data_file) as archive:
            names = archive.getnames()
            self.src_dict, self.trg_dict = (self._words(archive, [n for n in names if n.endswith(end)])
                                            for end in ("src.dict", "trg.dict"))
            for name in names:
                if name.endswith(f"{self.mode}/{self.mode}"):
                    self._read(_lines(archive, name))

    def _words(self, archive, names):
        if len(names) != 1:
            raise AssertionError(f"WMT14: {self.data_file} holds {len(names)} dictionaries of a kind, expected one")
        return {line.strip(): i for i, line in enumerate(_lines(archive, names[0])) if i < self.dict_size}

    def _read(self, lines, unknown=2):
        for line in lines:
            parts = line.strip().split("\t")
            if len(parts) != 2:
                continue
            source = [self.src_dict.get(w, unknown) for w in ["<s>", *parts[0].split(), "<e>"]]
            target = [self.trg_dict.get(w, unknown) for w in parts[1].split()]
            if len(source) <= 80 and len(target) <= 80:
                self._add(source, target, self.trg_dict["<s>"], self.trg_dict["<e>"])

    def get_dict(self, reverse=False):
        """Both dictionaries: word → number, or number → word."""
        both = self.src_dict, self.trg_dict
        return tuple(map(_reversed, both)) if reverse else both


class WMT16(_Pairs):
    """English and German; the dictionaries are the most frequent words of the training text."""
    _most = {"en": 11250, "de": 19220}

    def __init__(self, data_file=None, mode="train", src_dict_size=-1, trg_dict_size=-1, lang="en", download=True):
        self.mode, self.data_file = _checked("WMT16", mode, data_file, "wmt16", "wmt16.tar.gz", ("train", "test", "val"))
        if src_dict_size <= 0 or trg_dict_size <= 0:
            raise AssertionError(f"WMT16: src_dict_size and trg_dict_size must be positive, got {src_dict_size} and "
                                 f"{trg_dict_size}")
        self.lang = lang
        other = "de" if lang == "en" else "en"
        self.src_dict_size = min(src_dict_size, self._most["en" if lang == "en" else "de"])
        self.trg_dict_size = min(trg_dict_size, self._most[other])
        column = 0 if lang == "en" else 1
        self.src_ids, self.trg_ids, self.trg_ids_next = [], [], []
        with tarfile.open(self.data_file) as archive:
            # both dictionaries count the source language's words, as in Paddle
            counts = collections.Counter()
            for parts in self._split(archive, "train"):
                counts.update(parts[column].split())
            words = ["<s>", "<e>", "<unk>", *(w for w, _ in sorted(counts.items(), key=lambda x: -x[1]))]
            self.src_dict, self.trg_dict = ({w: i for i, w in enumerate(words[:n])}
                                            for n in (src_dict_size, trg_dict_size))
            start, end, unknown = (self.src_dict[w] for w in words[:3])
            for parts in self._split(archive, self.mode):
                self._add([start, *(self.src_dict.get(w, unknown) for w in parts[column].split()), end],
                          [self.trg_dict.get(w, unknown) for w in parts[1 - column].split()], start, end)

    @staticmethod
    def _split(archive, mode):
        for line in _lines(archive, f"wmt16/{mode}"):
            parts = line.strip().split("\t")
            if len(parts) == 2:
                yield parts

    def get_dict(self, lang, reverse=False):
        """The dictionary of a language: word → number, or number → word."""
        words = self.src_dict if lang == self.lang else self.trg_dict
        return _reversed(words) if reverse else words


class Conll05st(Dataset):
    """Semantic role labels: the words of each sentence, the predicate and its neighbors, and a label a word."""

    def __init__(self, data_file=None, word_dict_file=None, verb_dict_file=None, target_dict_file=None, emb_file=None,
                 download=True):
        names = {"data_file": (data_file, "conll05st-tests.tar.gz"), "word_dict_file": (word_dict_file, "wordDict.txt"),
                 "verb_dict_file": (verb_dict_file, "verbDict.txt"), "emb_file": (emb_file, "emb"),
                 "target_dict_file": (target_dict_file, "targetDict.txt")}
        for argument, (given, name) in names.items():
            setattr(self, argument, _present("Conll05st", given, "conll05st", name, argument))
        self.word_dict, self.predicate_dict = self._numbers(self.word_dict_file), self._numbers(self.verb_dict_file)
        with open(self.target_dict_file) as f:
            # in Paddle these numbers differ from run to run; here they go by the alphabet
            tags = sorted({line.strip()[2:] for line in f if line[:2] in ("B-", "I-")})
        self.label_dict = {f"{kind}-{tag}": 2 * i + k for i, tag in enumerate(tags) for k, kind in enumerate("BI")}
        self.label_dict["O"] = 2 * len(tags)
        self.sentences, self.predicates, self.labels = [], [], []
        with tarfile.open(self.data_file) as archive:
            parts = (archive.extractfile(f"conll05st-release/test.wsj/{n}/test.wsj.{n}.gz") for n in ("words", "props"))
            words, props = (gzip.decompress(p.read()).decode().splitlines() for p in parts)
        sentence, rows = [], []
        for word, row in zip(words, (p.split() for p in props)):
            if row:
                sentence.append(word.strip())
                rows.append(row)
                continue
            self._add(sentence, rows)
            sentence, rows = [], []

    @staticmethod
    def _numbers(path):
        with open(path) as f:
            return {line.strip(): i for i, line in enumerate(f)}

    def _add(self, sentence, rows):
        """One sample a predicate: column 0 names the predicates, each further column labels the words for one."""
        columns = list(zip(*rows))
        verbs = [v for v in columns[0] if v != "-"]
        for verb, column in zip(verbs, columns[1:]):
            tag, inside, labels = "O", False, []
            for mark in column:
                if mark.startswith("("):
                    tag, inside = mark[1:mark.index("*")], ")" not in mark
                    labels.append(f"B-{tag}")
                elif mark in ("*", "*)"):
                    labels.append(f"I-{tag}" if inside or mark == "*)" else "O")
                    inside = inside and mark == "*"
                else:
                    raise RuntimeError(f"Conll05st: unexpected label {mark!r}")
            self.sentences.append(sentence)
            self.predicates.append(verb)
            self.labels.append(labels)

    def __getitem__(self, idx):
        sentence, labels = self.sentences[idx], self.labels[idx]
        n, verb = len(sentence), labels.index("B-V")
        mark = [int(abs(i - verb) <= 2) for i in range(n)]
        # the predicate's neighbors, from two before it to two behind
        near = [sentence[i] if 0 <= i < n else "bos" if i < 0 else "eos" for i in range(verb - 2, verb + 3)]

        def number(word):
            return self.word_dict.get(word, 0)
        return _arrays(([number(w) for w in sentence], *([number(w)] * n for w in near),
                        [self.predicate_dict.get(self.predicates[idx])] * n, mark, [self.label_dict.get(v) for v in labels]))

    def __len__(self):
        return len(self.sentences)

    def get_dict(self):
        """The dictionaries of words, predicates and labels."""
        return self.word_dict, self.predicate_dict, self.label_dict

    def get_embedding(self):
        """The path of the file of word vectors."""
        return self.emb_file
