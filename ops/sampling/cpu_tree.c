/* Kernels of trees of items: children of nodes, and samples of each layer. Compiled once per CPU level;
 * static functions and kernels only. */
#include "kernels/iterator.h"
#include "ops/ints.h"
#include "ops/sampling/sampler.h"
#include "impl/sampling.h"

static int64_t number(const proa_tensor *t, int64_t i)
{
    return rows_get_int((proa_dtype)t->dtype, t->data, i);
}

static void put(proa_tensor *t, int64_t i, int64_t v)
{
    if (t->dtype == PROA_I64) ((int64_t *)(void *)t->data)[i] = v;
    else ((int32_t *)(void *)t->data)[i] = (int32_t)v;
}

static proa_status check_index(const char *op, const char *name, int64_t v, int64_t count)
{
    if (v >= 0 && v < count) return PROA_OK;
    return OP_FAIL(op, OUT_OF_RANGE, name, "has %lld; expected one of %lld", (long long)v, (long long)count);
}

PROA_KERNEL(tdm_child_cpu, tdm_child)
{
    const proa_tensor *info = a->tree_info;
    int64_t nodes = info->shape[0], width = info->shape[1];
    for (int64_t i = 0; i < a->x->numel; i++) {
        int64_t node = number(a->x, i);
        PROA_TRY(check_index("tdm_child", "x", node, nodes));
        bool leaf = node == 0 || number(info, node * width + 3) == 0;
        for (int64_t k = 0; k < a->child_nums; k++) {
            int64_t child = leaf ? 0 : number(info, node * width + 3 + k), at = i * a->child_nums + k;
            PROA_TRY(check_index("tdm_child", "tree_info", child, nodes));
            put(a->child, at, child);
            put(a->leaf_mask, at, !leaf && number(info, child * width) != 0);
        }
    }
    return PROA_OK;
}

/* One sample of a layer: its node, its label, and whether it is one at all. */
static void put_sample(const proa_tdm_sampler_args *a, int64_t at, int64_t node, bool label, bool is)
{
    put(a->out, at, node);
    put(a->labels, at, label);
    put(a->mask, at, is);
}

/* `count` nodes of a layer but `positive`, from `at` on. One more is drawn, each once (Floyd's sampling
 * without replacement, Bentley and Floyd, 1987): the positive one goes, or any. */
static void draw_nodes(const proa_tdm_sampler_args *a, class_sampler *s, int64_t begin, int64_t nodes,
                       int64_t positive, int64_t count, int64_t at, int64_t *chosen)
{
    int64_t found = 0, drop = sampler_below(s, count + 1);
    for (int64_t k = 0; k <= count; k++) {
        int64_t last = nodes - count - 1 + k, pick = sampler_below(s, last + 1);
        for (int64_t i = 0; i < k; i++)
            if (chosen[i] == pick) pick = last;
        chosen[k] = pick;
        if (number(a->layer, begin + pick) == positive) drop = -1;
    }
    for (int64_t k = 0; k <= count; k++) {
        int64_t node = number(a->layer, begin + chosen[k]);
        if (k != drop && node != positive) put_sample(a, at + found++, node, false, true);
    }
    while (found < count) put_sample(a, at + found++, 0, false, false);
}

PROA_KERNEL(tdm_sampler_cpu, tdm_sampler)
{
    int64_t layers = a->neg_samples_num_list.count, items = a->x->shape[0], most = 1, at = 0;
    const int64_t *counts = a->neg_samples_num_list.at, *begin = a->layer_offset_lod.at;
    if (a->x->numel != items)
        return OP_FAIL("tdm_sampler", INVALID_ARGUMENT, "x", "is %s; expected items, [N, 1]",
                       proa__tensor_text(a->x));
    for (int64_t l = 0; l < layers; l++) most = counts[l] >= most ? counts[l] + 1 : most;
    int64_t *chosen = proa_scratch((size_t)most * sizeof *chosen);
    if (!chosen) return proa_error();
    class_sampler s = {0};
    sampler_start(&s, a->seed, (uint64_t)a->out->numel);
    proa_status status = PROA_OK;
    for (int64_t i = 0; i < items && status == PROA_OK; i++) {
        int64_t item = number(a->x, i);
        status = check_index("tdm_sampler", "x", item, a->travel->shape[0]);
        for (int64_t l = 0; l < layers && status == PROA_OK; at += counts[l++]) {
            int64_t node = number(a->travel, item * layers + l), nodes = begin[l + 1] - begin[l];
            if (a->output_positive) put_sample(a, at++, node, node != 0, node != 0);
            if (node) draw_nodes(a, &s, begin[l], nodes, node, counts[l], at, chosen);
            for (int64_t k = 0; !node && k < counts[l]; k++) put_sample(a, at + k, 0, false, false);
        }
    }
    proa_scratch_free(chosen);
    return status;
}
