"""DataGenerator: a user's generate_sample makes samples of a line; a run writes them as MultiSlot lines
(for each slot the number of its values, then the values)."""
import sys


class DataGenerator:
    """Base. A subclass defines generate_sample(line), which returns a function that yields samples:
    [(slot, [values]), …] each; generate_batch may look at several at once."""

    def __init__(self):
        self.batch_size_ = 32
        self._proto_info = None

    def set_batch(self, batch_size):
        """Sets the number of samples that generate_batch sees."""
        self.batch_size_ = batch_size

    def _samples(self, lines):
        batch = []
        for line in lines:
            for sample in self.generate_sample(line)():
                if sample is None:
                    continue
                batch.append(sample)
                if len(batch) == self.batch_size_:
                    yield from self.generate_batch(batch)()
                    batch = []
        if batch:
            yield from self.generate_batch(batch)()

    def run_from_memory(self):
        """Samples that generate_sample(None) makes, on standard output."""
        for sample in self._samples([None]):
            sys.stdout.write(self._gen_str(sample))

    def run_from_stdin(self):
        """Samples of the lines of standard input, on standard output."""
        for sample in self._samples(sys.stdin):
            sys.stdout.write(self._gen_str(sample))

    def _gen_str(self, line):
        raise NotImplementedError("pls use MultiSlotDataGenerator or PairWiseDataGenerator")

    def generate_sample(self, line):
        """For subclasses: a function that yields the samples of a line."""
        raise NotImplementedError("Please rewrite this function to return a list or tuple: "
                                  "[(name, [feasign, ...]), ...] or ((name, [feasign, ...]), ...)")

    def generate_batch(self, samples):
        """For subclasses: a function that yields samples, having seen several."""

        def local_iter():
            yield from samples

        return local_iter

    @staticmethod
    def _checked(line):
        if not isinstance(line, (list, tuple)):
            raise ValueError("the output of process() must be in list or tuple type"
                             "Examples: [('words', ['1926', '08', '17']), ('label', ['1'])]")
        return line


class MultiSlotStringDataGenerator(DataGenerator):
    """Writes values as they are: `n v1 … vn` a slot."""

    def _gen_str(self, line):
        return " ".join(" ".join([str(len(values)), *values]) for _, values in self._checked(line)) + "\n"


class MultiSlotDataGenerator(DataGenerator):
    """Writes numbers; a slot has the same name and, but for floats among integers, type in every sample."""

    def _gen_str(self, line):
        line = self._checked(line)
        if self._proto_info is None:
            self._proto_info = [(name, "uint64") for name, _ in line]
        elif len(line) != len(self._proto_info):
            raise ValueError(f"the complete field set of two given line are inconsistent: {len(line)} slots, expected "
                             f"{len(self._proto_info)}")
        parts = []
        for at, (name, values) in enumerate(line):
            if not isinstance(name, str):
                raise ValueError(f"name{type(name)} must be in str type")
            if not isinstance(values, list):
                raise ValueError(f"elements{type(values)} must be in list type")
            if not values:
                raise ValueError("the elements of each field can not be empty, you need padding it in process().")
            if name != self._proto_info[at][0]:
                raise ValueError(f"the field name of two given line are not match: require<{self._proto_info[at][0]}>, "
                                 f"get<{name}>.")
            parts.append(str(len(values)))
            for value in values:
                if isinstance(value, float):
                    self._proto_info[at] = (name, "float")
                elif not isinstance(value, int):
                    raise ValueError(f"the type of element{type(value)} must be in int or float")
                parts.append(str(value))
        return " ".join(parts) + "\n"
