"""Text data sets from the archives that their makers publish; nothing is downloaded."""
import collections
import os
import re
import string
import tarfile
import zipfile

from ..io import Dataset


def _present(who, given, folder, name, argument="data_file"):
    path = given or os.path.join(os.path.expanduser("~/.cache/paddle/dataset"), folder, name)
    if not os.path.exists(path):
        raise FileNotFoundError(f"{who}: there is no {path}; get {name} and name it by {argument} "
                                "(Proa downloads nothing)")
    return path


def _checked(who, mode, data_file, folder, name, modes=("train", "test")):
    if mode.lower() not in modes:
        raise AssertionError(f"{who}: mode must be one of {list(modes)}, got {mode!r}")
    return mode.lower(), _present(who, data_file, folder, name)


def _numbered(counts, least):
    """The words that come more than `least` times, most frequent first, as {word: number}, and <unk> at the end."""
    words = sorted(((w, n) for w, n in counts.items() if n > least), key=lambda x: (-x[1], x[0]))
    index = {w: i for i, (w, _) in enumerate(words)}
    index["<unk>"] = len(index)
    return index


def _arrays(sample):
    import numpy as np
    return tuple(np.array(part) for part in sample)


class Imdb(Dataset):
    """Film reviews as word numbers; label 0 is a kind one, 1 an unkind. Words at most `cutoff` times are <unk>."""

    def __init__(self, data_file=None, mode="train", cutoff=150, download=True):
        self.mode, self.data_file = _checked("Imdb", mode, data_file, "imdb", "imdb%2FaclImdb_v1.tar.gz")
        found = {}
        pattern = re.compile(r"aclImdb/(train|test)/(pos|neg)/.*\.txt$")
        with tarfile.open(self.data_file) as archive:
            for member in archive:
                matched = pattern.match(member.name)
                if matched:
                    found.setdefault(matched.groups(), []).append(self._words(archive.extractfile(member).read()))
        counts = collections.Counter(w for docs in found.values() for doc in docs for w in doc)
        self.word_idx = _numbered(counts, cutoff)
        unknown = self.word_idx["<unk>"]
        self.docs, self.labels = [], []
        for label, kind in enumerate(("pos", "neg")):
            for doc in found.get((self.mode, kind), []):
                self.docs.append([self.word_idx.get(w, unknown) for w in doc])
                self.labels.append(label)

    @staticmethod
    def _words(text):
        return text.rstrip(b"\n\r").translate(None, string.punctuation.encode("latin-1")).lower().split()

    def __getitem__(self, idx):
        return _arrays((self.docs[idx], [self.labels[idx]]))

    def __len__(self):
        return len(self.docs)


class Imikolov(Dataset):
    """The Penn treebank as windows of word numbers (data_type 'NGRAM') or as (sequence, next words) ('SEQ')."""

    def __init__(self, data_file=None, data_type="NGRAM", window_size=-1, mode="train", min_word_freq=50,
                 download=True):
        self.data_type = data_type.upper()
        if self.data_type not in ("NGRAM", "SEQ"):
            raise AssertionError(f"Imikolov: data_type must be 'NGRAM' or 'SEQ', got {data_type!r}")
        self.mode, self.data_file = _checked("Imikolov", mode, data_file, "imikolov", "simple-examples.tgz")
        if self.data_type == "NGRAM" and window_size < 0:
            raise AssertionError(f"Imikolov: data_type 'NGRAM' needs a window_size, got {window_size}")
        self.window_size, self.min_word_freq = window_size, min_word_freq
        folder = "./simple-examples/data/ptb."
        with tarfile.open(self.data_file) as archive:
            counts = self.word_count(archive.extractfile(folder + "train.txt"))
            counts = self.word_count(archive.extractfile(folder + "valid.txt"), counts)
            counts.pop("<unk>", None)
            self.word_idx = _numbered(counts, min_word_freq)
            self.data = list(self._samples(archive.extractfile(f"{folder}{self.mode}.txt")))

    def word_count(self, f, word_freq=None):
        """Adds the words of a file's lines, with <s> and <e> for each line, to a count."""
        counts = collections.defaultdict(int) if word_freq is None else word_freq
        for line in f:
            for word in line.strip().split():
                counts[word] += 1
            counts["<s>"] += 1
            counts["<e>"] += 1
        return counts

    def _samples(self, lines):
        unknown, n = self.word_idx["<unk>"], self.window_size
        for line in lines:
            words = line.strip().split()
            if self.data_type == "NGRAM":
                ids = [self.word_idx.get(w, unknown) for w in ["<s>", *words, "<e>"]]
                if len(ids) >= n:
                    yield from (tuple(ids[i - n:i]) for i in range(n, len(ids) + 1))
                continue
            ids = [self.word_idx.get(w, unknown) for w in words]
            source, target = [self.word_idx["<s>"], *ids], [*ids, self.word_idx["<e>"]]
            if n <= 0 or len(source) <= n:
                yield source, target

    def __getitem__(self, idx):
        return _arrays(self.data[idx])

    def __len__(self):
        return len(self.data)


class UCIHousing(Dataset):
    """Houses of Boston: 13 features, scaled by their range about their mean, and the price."""

    def __init__(self, data_file=None, mode="train", download=True):
        import numpy as np
        from ..framework import get_default_dtype
        self.mode, self.data_file = _checked("UCIHousing", mode, data_file, "uci_housing", "housing.data")
        data = np.fromfile(self.data_file, sep=" ")
        data = data.reshape(data.shape[0] // 14, 14)
        features = data[:, :-1]
        spread = features.max(axis=0) - features.min(axis=0)
        data[:, :-1] = (features - features.sum(axis=0) / len(data)) / spread
        cut = int(len(data) * 0.8)
        self.data = data[:cut] if self.mode == "train" else data[cut:]
        self.dtype = get_default_dtype()

    def __getitem__(self, idx):
        row = self.data[idx]
        return row[:-1].astype(self.dtype), row[-1:].astype(self.dtype)

    def __len__(self):
        return len(self.data)


class Movielens(Dataset):
    """Ratings of films: user, sex, age group, job, film, its categories and title's words, rating in −3 … 5."""
    _ages = (1, 18, 25, 35, 45, 50, 56)

    def __init__(self, data_file=None, mode="train", test_ratio=0.1, rand_seed=0, download=True):
        import numpy as np
        self.mode, self.data_file = _checked("Movielens", mode, data_file, "movielens", "ml-1m.zip")
        self.test_ratio, self.rand_seed = test_ratio, rand_seed
        np.random.seed(rand_seed)
        with zipfile.ZipFile(self.data_file) as archive:
            def rows(name):
                for line in archive.read(f"ml-1m/{name}.dat").decode("latin").splitlines():
                    yield line.strip().split("::")
            self._films(rows("movies"))
            users = {int(u): [[int(u)], [0 if sex == "M" else 1], [self._ages.index(int(age))], [int(job)]]
                     for u, sex, age, job, _ in rows("users")}
            test = self.mode == "test"
            self.data = [users[int(u)] + self.movie_info[int(m)] + [[float(r) * 2 - 5.0]]
                         for u, m, r, _ in rows("ratings") if (np.random.random() < test_ratio) == test]

    def _films(self, rows):
        films = []
        for number, title, categories in rows:
            films.append((int(number), re.match(r"^(.*)\((\d+)\)$", title).group(1).lower().split(),
                          categories.split("|")))
        # in Paddle these numbers differ from run to run; here they go by the alphabet
        self.movie_title_dict = {w: i for i, w in enumerate(sorted({w for _, t, _ in films for w in t}))}
        self.categories_dict = {c: i for i, c in enumerate(sorted({c for _, _, cs in films for c in cs}))}
        self.movie_info = {n: [[n], [self.categories_dict[c] for c in cs], [self.movie_title_dict[w] for w in t]]
                           for n, t, cs in films}

    def __getitem__(self, idx):
        return _arrays(self.data[idx])

    def __len__(self):
        return len(self.data)
