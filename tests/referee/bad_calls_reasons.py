"""Why a bad call may end otherwise on Proa than on real Paddle: rules over what both raised. A row without a rule is a
difference that nobody has explained. Read by tools/compatibility.py and bad_calls.py."""
import re

# Texts of Python's own exceptions: nothing has looked at the argument before an operation on it failed.
PYTHONS = re.compile(
    r"has no attribute|is not iterable|not supported between instances|unsupported operand type|is not subscriptable|"
    r"is not callable|has no len\(\)|unhashable type|index out of range|values to unpack|cannot unpack|"
    r"truth value of an array|bad operand type|must be real number|argument must be a string|division by zero|"
    r"name '\w+' is not defined|can only concatenate|can't multiply sequence|indices must be integers|"
    r"cannot be interpreted as an integer|not understood|len\(\) of a 0-D|only length-1 arrays|only integer scalar arrays|"
    r"only one element variable can|When Variable is used as the condition|could not convert string|can't concat|"
    r"did not contain a loop with signature|not all arguments converted|expected str instance|"
    r"takes from \d+ to \d+ positional arguments|Cannot interpret|cannot reshape array|a bytes-like object is required|expected str, bytes or os.PathLike")
PYBIND = re.compile(r"incompatible function arguments|Unable to cast Python instance|"
                    r"_M_range_check|Can't not find expected num of args|Could not parse args and kwargs")
EMPTY = re.compile(r"must not (be )?empty|dims size must not be equal 0|Tensor has not been initialized|is not initialized|"
                   r"meta data must be valid when call|can't be 0|should be greater than 0|must be greater than 0, but the value|"
                   r"input variable X has not been initialized|should not be zero", re.I)
RANKS = re.compile(r"rank of input should be less than 7|range of \[1, 6\]|Maximum supported rank for broadcast")
MIXED = re.compile(r"but the first operand is|but \w+ is \w+\[|expected x's dtype|out in place must be|of another floating dtype")


# Arguments that Paddle keeps as they come, and fails with where it uses them.
KEPT = {("InputSpec", "dtype"), ("set_init_loss_scaling", "new_init_loss_scaling"), ("Conv1DTranspose", "output_padding"),
        ("Conv2DTranspose", "output_padding")}
# (function, argument) of calls with two mistakes, of which each finds another first.
TWO_MISTAKES = {("margin_cross_entropy", "group"), ("cholesky", "upper"), ("eval_batch", "inputs"), ("Pad2D.forward", "x")}
# (function, argument) of what Proa checks itself, and Paddle hands to an operator or to NumPy, which refuses it.
HANDED_ON = {("ifftshift", "axes"), ("Beta.sample", "shape")}
# (function, argument) of what Paddle computes with bools or whole numbers, and Proa with floats alone.
FLOATS_ALONE = {("jvp", "xs"), ("Dropout3D.forward", "input")}
# (function, argument) of what Paddle takes without a look at it: what counts as false for None, a variable for True, an array or a
# text for a list, the first entries of a longer vector.
UNLOOKED = {("layer_norm", "bias"), ("instance_norm", "param_attr"), ("pca_lowrank", "center"), ("LayerNorm", "normalized_shape"),
            ("forward_shape", "shape"), ("vector_to_parameters", "parameters"), ("elu_", "alpha"), ("py_func", "out"),
            ("row_conv", "input")}


def refuses(outcome):
    return outcome != "ok" and not outcome.startswith(("unmade", "crash", "late", "lost"))


def type_of(outcome):
    return outcome.partition("|")[0]


# Texts of Paddle's own: its build for CPUs has no kernel for the call's dtype, or none of the operator's dtypes is this one.
KERNEL = re.compile(r"The kernel with key \(CPU, .*\b(float16|bfloat16)\) of kernel|There are no kernels which are registered in the \w+ operator")
# Its Python's lists of dtypes, which it reads in programs.
LISTED = re.compile(r"The data type of '[^']*' in .* must be")


class Row:
    """A row of results.tsv."""

    def __init__(self, cells):
        cells = cells + [""] * (11 - len(cells))
        (self.name, self.mode, self.mistake, self.parameter, self.call, _, self.theirs, self.ours, self.text, self.own,
         self.run) = cells[:11]
        self.takes, self.refuses = self.ours == "ok", refuses(self.ours)
        self.both = self.refuses and refuses(self.theirs)

    def is_of(self, pairs):
        """True if the row is of one of these (function, argument)."""
        return any(self.parameter == argument and f".{self.name}".endswith(f".{function}") for function, argument in pairs)


def lacks_kernel(cells):
    """True for a call that is no bad one: Proa computes it, and Paddle says that its build for CPUs has no kernel for float16 or
    bfloat16. Those that a list of Paddle's Python refuses in programs (LISTED) are left to the caller."""
    row = Row(cells)
    return row.takes and row.mistake == "dtype" and bool(re.search(r'"b?float16"', row.call) and KERNEL.search(row.text))


# The cause of a call that ends otherwise: the caller's mistake; a limit of Paddle's build for CPUs (it lacks the kernel or the operator,
# stops at some dims or at tensors without elements, or fails by accident where the call has an answer); or memory that Paddle reads
# outside the argument, or as of another dtype.
MISTAKE, LIMIT, UNDEFINED = "mistake", "limit", "undefined"

RULES = [
    (MISTAKE, "windows of a pooling that begin inside x: Paddle takes a negative padding for that",
     lambda r: r.theirs == "ok" and "padding must not be negative" in r.own),
    (MISTAKE, "a label of input's shape: Paddle takes its first entries for the classes",
     lambda r: r.theirs == "ok" and r.own.startswith("nll_loss: input must be [N, C, ...] and label [N, ...]")),
    (MISTAKE, "Paddle takes any text that it does not know for another of the choices",
     lambda r: r.theirs == "ok" and r.mistake == "range" and re.search(r"argument (reduction: '' is no loss_reduction|"
                                                                      r"UPLO: '' is no uplo)", r.own)),
    (UNDEFINED, "Paddle does not compare the lengths of statistics with the channels, and reads past their ends or a part",
     lambda r: r.theirs == "ok" and r.mode == "dynamic" and re.search(r"running_\w+ must have \d+ values", r.own)),
    (MISTAKE, "no file: Paddle reads an empty state", lambda r: r.theirs == "ok" and r.own.startswith("load_program_state: there is no")),
    (MISTAKE, "Proa has four levels of sequences", lambda r: r.theirs == "ok" and "levels of sequences; expected 0 to 4" in r.own),
    (MISTAKE, "Proa refuses while the program is built a condition of several elements, which Paddle refuses when it is run",
     lambda r: r.theirs == "ok" and r.own.startswith("cond: pred must have one element")),
    (MISTAKE, "Paddle takes rows that form no sequences for one", lambda r: r.theirs == "ok" and r.own.startswith("(InvalidArgument) row_conv: ")),
    (LIMIT, "Paddle's OpenCV refuses what Proa does with NumPy", lambda r: r.takes and r.theirs == "error|" and "OpenCV" in r.text),
    (LIMIT, "Proa takes a number where Paddle reads a Tensor's dtype",
     lambda r: r.takes and r.name.startswith("paddle.distribution.") and r.parameter == "value" and
     re.fullmatch(r"'(int|float|complex|bool)' object has no attribute 'dtype'", r.text)),
    (LIMIT, "Proa's Tensor has __abs__", lambda r: r.takes and "bad operand type for abs(): 'Tensor'" in r.text),
    (MISTAKE, "Paddle's parameter takes the shape of the values",
     lambda r: r.theirs == "ok" and r.name.endswith("Assign.forward") and r.own.startswith("the initial value's shape")),
    (LIMIT, "Paddle's kernel takes int32 and int64 alone for indices, Proa's any integers",
     lambda r: r.takes and "emebdding input only support int32 and int64" in r.text),
    (LIMIT, "Proa has a kernel of a dtype that Paddle's CPU lacks (bool, small integers, complex), or takes it in programs",
     lambda r: r.takes and ("The kernel with key" in r.text or
                            r.mistake == "dtype" and "There are no kernels which are registered" in r.text or
                            r.mode == "static" and re.search(r"The data type of '[^']*' in .* must be", r.text))),
    (LIMIT, "Proa converts operands of two dtypes in programs, as in eager calls; Paddle in eager calls alone",
     lambda r: r.takes and r.mode == "static" and re.search(r"Variable must be consistent|Input tensors must be same type", r.text)),
    (LIMIT, "operands of two dtypes: Paddle fails inside its kernel, Proa converts one",
     lambda r: r.takes and "type of data we are trying to retrieve" in r.text),
    (MISTAKE, "operands of two dtypes: Paddle fails inside its kernel, Proa names them",
     lambda r: "type of data we are trying to retrieve" in r.text),
    (UNDEFINED, "in place with two dtypes: Paddle reads the memory of one as the other and changes the tensor's dtype",
     lambda r: r.name.endswith("_") and (r.refuses and MIXED.search(r.own) and r.theirs == "ok" or
                                         r.mistake == "dtype" and "Integer division by zero" in r.text)),
    (UNDEFINED, "Paddle reads the memory of a floating or shorter tensor as indices",
     lambda r: r.theirs == "ok" and r.refuses and re.search(r"(indices|index|label|segment_ids|y|src_index|dst_index) is \w+"
                                                            r"(\[[^]]*\])?; expected (int|class)|indices must be int32 or int64, got float",
                                                            r.own)),
    (UNDEFINED, "as_strided with more or fewer strides than dims: Paddle computes with strides that are not there",
     lambda r: r.theirs == "ok" and r.refuses and "as_strided" in r.name),
    (MISTAKE, "both refuse, Proa while the program is built, Paddle when it is run",
     lambda r: r.both and r.run not in ("", "ok")),
    (LIMIT, "both refuse; Paddle for want of a kernel of the dtype, Proa for what else is wrong with the call",
     lambda r: r.both and "The kernel with key" in r.text and "NotFound" not in r.ours),
    (LIMIT, "Paddle has no such operator, or none for CPUs",
     lambda r: re.search(r"has not been registered|module 'paddle\.base\.libpaddle[\w.]*' has no attribute|"
                         r"The kernel `\w+` is not registered|no kernels which are registered|only supports GPU now|"
                         r"is unimplemented in CPU", r.text)),
    (MISTAKE, "both refuse; Proa an unknown or surplus argument, Paddle what it looks at before",
     lambda r: r.both and r.mistake in ("keyword", "many") and r.ours == "TypeError|" and not r.theirs.startswith("TypeError")),
    (MISTAKE, "Paddle keeps the argument unseen, and fails where it uses it",
     lambda r: r.theirs == "ok" and r.refuses and (r.name.rpartition(".")[2], r.parameter) in KEPT),
    (MISTAKE, "Paddle takes a text or a float for a number and computes with 0 or what is left of it",
     lambda r: r.theirs == "ok" and r.refuses and re.search(r"expected (a number|an int)|must be of type (int|number|float)", r.own) and
     re.search(r"got (str|float|complex)\b", r.own)),
    (UNDEFINED, "Paddle does not compare the shapes, and reads outside the smaller tensor",
     lambda r: r.theirs == "ok" and r.refuses and re.search(r"atan2|index_add", r.name) and "shape" in r.own),
    (MISTAKE, "Paddle draws numbers of a negative deviation, or scales by a negative norm",
     lambda r: r.theirs == "ok" and r.refuses and re.search(r"(std|max_norm) is (-[\d.e+]+|nan); expected 0 or more", r.own)),
    (LIMIT, "Proa takes tensors without elements, and lengths of 0",
     lambda r: r.takes and EMPTY.search(r.text)),
    (LIMIT, "samples of no elements: Paddle cannot broadcast a shape of zeros",
     lambda r: r.takes and r.name.startswith("paddle.distribution.") and "Broadcast dimension mismatch" in r.text and
     '["list", 0, 0]' in r.call),
    (UNDEFINED, "Paddle reads the memory of a tensor as of another dtype",
     lambda r: r.theirs == "ok" and r.refuses and re.search(r"fill_diagonal_tensor: y is \w+\[[^]]*\]; expected x's dtype", r.own)),
    (UNDEFINED, "Paddle does not look at the axis, and reads outside the tensor",
     lambda r: r.refuses and "unfold: axis must be in" in r.own and (r.theirs == "ok" or "unfold size" in r.text)),
    (MISTAKE, "Paddle does not compare the lengths of the parts with that of a tensor without elements",
     lambda r: r.theirs == "ok" and r.refuses and re.search(r"split: sections .* of x has 0$", r.own)),
    (MISTAKE, "Paddle takes None for an empty list of axes",
     lambda r: r.theirs == "ok" and r.refuses and "expected an int or a list of ints, got NoneType" in r.own),
    (MISTAKE, "Paddle reads the argument's shape alone, of an array, too",
     lambda r: r.theirs == "ok" and r.refuses and "expand_as: argument y: expected a Tensor, got numpy.ndarray" in r.own),
    (MISTAKE, "programs of Paddle take a list of one variable for a variable, and any object for a bool",
     lambda r: r.theirs == "ok" and r.refuses and r.mode == "static" and
     ("expected a bool, got" in r.own or '[["list", ["tensor"' in r.call and r.own.endswith("got list"))),
    (MISTAKE, "Proa takes whole numbers for tolerances", lambda r: r.takes and re.search(r"Input ?\((Rtol|Atol)\) type must be", r.text)),
    (MISTAKE, "Paddle's check of the diagonal's axes in programs refuses vectors",
     lambda r: r.mode == "static" and r.name.endswith("diag_embed") and "Dim1 is out of range" in r.text),
    (LIMIT, "Paddle's Python reads a dim that a 0-D tensor does not have, which Proa takes",
     lambda r: r.takes and r.mistake == "rank" and r.text == "tuple index out of range"),
    (MISTAKE, "Proa has no tensors that are texts or vocabularies", lambda r: r.ours.startswith("unmade") and re.search(
        r"has no attribute '(get_map_tensor|set_string_list|set_vocab)'", r.own)),
    (MISTAKE, "both refuse; Paddle leaves out an argument that is no variable, and its operator misses it",
     lambda r: r.both and "CompatMetaTensor is not initialized" in r.text),
    (MISTAKE, "both refuse; Paddle where it takes or reads memory, Proa by the argument",
     lambda r: r.both and re.search(r"meta data must be valid|memory's size is 0|Fail to alloc memory", r.text)),
    (MISTAKE, "both refuse; Paddle in an operation inside the function, which Proa computes otherwise",
     lambda r: r.both and re.search(r"in `shape` must be less than the input tensor X's dimensions|"
                                    r"rank of input should be less than 7|when no input coordinates", r.text)),
    (LIMIT, "Proa takes tensors of more dims: Paddle stops at 6 or fewer",
     lambda r: r.takes and RANKS.search(r.text)),
    (MISTAKE, "both refuse; Paddle's Python fails by accident, in an operation on an argument that it has not looked at",
     lambda r: r.both and r.theirs.endswith("|") and (PYTHONS.search(r.text) or type_of(r.theirs) in
                                                      ("UnboundLocalError", "NameError", "ZeroDivisionError", "KeyError"))),
    (MISTAKE, "both refuse; Paddle's OpenCV in its own type", lambda r: r.both and r.theirs == "error|" and "OpenCV" in r.text),
    (MISTAKE, "both refuse; Paddle's binding of C++ finds no signature or cannot convert, and says so in its own type",
     lambda r: r.both and PYBIND.search(r.text)),
    (MISTAKE, "both refuse a call with two mistakes, of which each finds another first", lambda r: r.both and r.is_of(TWO_MISTAKES)),
    (MISTAKE, "both refuse; Proa checks the argument, Paddle's operators or NumPy what they are handed",
     lambda r: r.both and r.is_of(HANDED_ON)),
    (MISTAKE, "Paddle computes with bools or whole numbers where Proa wants floats",
     lambda r: r.theirs == "ok" and r.is_of(FLOATS_ALONE) and re.search(r"\b(bool|u?int\d+)\b", r.call)),
    (MISTAKE, "Paddle takes the argument without a look at it", lambda r: r.theirs == "ok" and r.is_of(UNLOOKED)),
    (MISTAKE, "a variable that is neither fed nor made is fetched: Paddle gives what its scope holds",
     lambda r: r.theirs == "ok" and r.mode == "static" and "is neither fed nor made by an op" in r.own),
    (MISTAKE, "Proa takes a bool for a whole number, or None for the default",
     lambda r: r.takes and re.search(r"must be list of int, but got bool|but received <class 'bool'>|Received Attr\(axis\): None",
                                     r.text)),
    (LIMIT, "Paddle's Python fails by accident where Proa has an answer",
     lambda r: r.takes and re.search(r"should be called first|truth value of an array|can only concatenate tuple|^\(\(-1, -1\), 0\)$",
                                     r.text)),
]


def explanation(cells):
    """(kind, text) of the first rule that explains a row of results.tsv that differs; (MISTAKE, None) if none does."""
    row = Row(cells)
    return next(((kind, text) for kind, text, holds in RULES if holds(row)), (MISTAKE, None))
