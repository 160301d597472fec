"""NumPy references of sampled losses and of trees of items. One function per op, named as the op: tests/ops/test_ops.py calls it
with the op's fields, tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns (None: not compared)."""
import numpy as np


def chances(classes, sampler, total, probs):
    """The probability of each class."""
    if sampler == 0:
        return np.full(np.shape(classes), 1 / total)
    return np.log((classes + 2) / (classes + 1)) / np.log(total) if sampler == 1 else np.asarray(probs, "float64")[classes]


def nce(input, label, weight, bias=None, sample_weight=None, probs=None, alias=None, alias_probs=None, num_total_classes=0,
        custom_neg_classes=(), num_neg_samples=10, sampler=0, seed=0):
    drawn = np.concatenate([label, np.tile(np.array(custom_neg_classes, "int64"), (len(label), 1))], 1)
    scores = np.einsum("nd,nkd->nk", input, weight[drawn]) + (0 if bias is None else bias.reshape(-1)[drawn])
    made = 1 / (1 + np.exp(-scores))
    noise = chances(drawn, sampler, num_total_classes, probs) * num_neg_samples
    cost = -np.log(np.where(np.arange(drawn.shape[1]) < label.shape[1], made, noise) / (made + noise)).sum(1, keepdims=True)
    return cost * (1 if sample_weight is None else sample_weight.reshape(-1, 1)), made, drawn


def nce_grad(input, label, weight, bias, sample_weight, probs, sample_logits, sample_labels, d_cost, num_total_classes,
             custom_neg_classes=(), num_neg_samples=10, sampler=0):
    o, noise = sample_logits, chances(sample_labels, sampler, num_total_classes, probs) * num_neg_samples
    d = np.where(np.arange(o.shape[1]) < label.shape[1], noise / (o + noise) * (o - 1), o * (1 - o) / (o + noise)) * d_cost
    d = d * (1 if sample_weight is None else sample_weight.reshape(-1, 1))
    d_weight, d_bias = np.zeros_like(weight), np.zeros(len(weight))
    np.add.at(d_weight, sample_labels, d[..., None] * input[:, None])
    np.add.at(d_bias, sample_labels, d)
    return np.einsum("nk,nkd->nd", d, weight[sample_labels]), d_weight, None if bias is None else d_bias.reshape(bias.shape)


def sample_logits(logits, labels, customized_samples, customized_probabilities, num_samples, use_customized_samples=True,
                  uniq=True, remove_accidental_hits=True, seed=0):
    found = np.take_along_axis(logits, customized_samples, 1) - np.log(customized_probabilities)
    hits = (customized_samples[:, :, None] == labels[:, None]).any(-1) & (np.arange(found.shape[1]) >= labels.shape[1])
    found = np.where(hits & remove_accidental_hits, found - 1e20, found)
    return customized_samples, customized_probabilities, found, np.tile(np.arange(labels.shape[1]), (len(labels), 1))


def sample_logits_grad(logits, samples, d_sampled_logits):
    out = np.zeros_like(logits)
    np.add.at(out, (np.arange(len(logits))[:, None], samples), d_sampled_logits)
    return out


def tdm_child(x, tree_info, child_nums, dtype=None):
    child = np.where((x != 0)[..., None], tree_info[x][..., 3:], 0)
    return child, ((tree_info[child][..., 0] != 0) & (child != 0)).astype(child.dtype)


def tdm_sampler(x, travel, layer, neg_samples_num_list, layer_offset_lod, output_positive=True, seed=0, dtype=None):
    """Samples of layers of two nodes: there is one other."""
    rows = []
    for item in x[:, 0]:
        row = []
        for node, count, begin, end in zip(travel[item], neg_samples_num_list, layer_offset_lod, layer_offset_lod[1:]):
            others = [n for n in layer[begin:end, 0] if n != node]
            row += [(node, node != 0, node != 0)] * output_positive
            row += [(n if node else 0, 0, node != 0) for n in others[:count]]
        rows.append(row)
    return tuple(np.array(rows)[..., i] for i in range(3))
