"""References of the collectives in a group of one rank; several ranks are tested with processes."""


def all_reduce(x, op="SUM"):
    return x


def broadcast(x, src=0):
    return x


def all_gather(x):
    return x


def reduce_scatter(x, op="SUM"):
    return x


def barrier(x):
    return x
