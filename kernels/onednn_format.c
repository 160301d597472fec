/* Converts tensors to and from blocked layouts by oneDNN: implements the hooks of core/blocked.h. Empty
 * without oneDNN. May use core only. */
#if PROA_HAVE_ONEDNN
#include "kernels/onednn_format.h"

dnnl_memory_desc_t proa__dnnl_blocked_md(const proa_tensor *t, proa_dtype dtype, int format)
{
    dnnl_data_type_t type;
    dnnl_memory_desc_t md = NULL;
    dnnl_dims_t dims;
    if (!proa__dnnl_dtype(dtype, &type)) return NULL;
    for (int i = 0; i < t->ndim; i++) dims[i] = t->shape[i];
    return dnnl_memory_desc_create_with_tag(&md, t->ndim, dims, type, (dnnl_format_tag_t)format) ? NULL : md;
}

static bool equal(const_dnnl_memory_desc_t a, const_dnnl_memory_desc_t b)
{
    return dnnl_memory_desc_equal(a, b);
}

/* True if elements have the same offsets from the first in both, which have the same dims and dtype. */
static bool same_offsets(const_dnnl_memory_desc_t a, const_dnnl_memory_desc_t b)
{
    static const dnnl_query_t lists[] = {dnnl_query_padded_dims, dnnl_query_strides, dnnl_query_inner_blks,
                                         dnnl_query_inner_idxs};
    int ndim = 0, blocks[2] = {0};
    if (dnnl_memory_desc_query(a, dnnl_query_ndims_s32, &ndim) != dnnl_success ||
        dnnl_memory_desc_query(a, dnnl_query_inner_nblks_s32, &blocks[0]) != dnnl_success ||
        dnnl_memory_desc_query(b, dnnl_query_inner_nblks_s32, &blocks[1]) != dnnl_success ||
        blocks[0] != blocks[1])
        return false;
    for (int i = 0; i < 4; i++) {
        dnnl_dims_t *x = NULL, *y = NULL;
        const size_t n = (size_t)(i < 2 ? ndim : blocks[0]);
        if (dnnl_memory_desc_query(a, lists[i], &x) != dnnl_success ||
            dnnl_memory_desc_query(b, lists[i], &y) != dnnl_success ||
            (n && memcmp(*x, *y, n * sizeof **x) != 0))
            return false;
    }
    return true;
}

dnnl_memory_desc_t proa__dnnl_slice(const_dnnl_memory_desc_t whole, const int64_t *dims, const int64_t *from,
                                    size_t *offset)
{
    int ndim = 0;
    dnnl_dims_t *strides = NULL, at;
    dnnl_data_type_t type = dnnl_data_type_undef;
    dnnl_memory_desc_t slice = NULL;
    if (dnnl_memory_desc_query(whole, dnnl_query_ndims_s32, &ndim) != dnnl_success ||
        dnnl_memory_desc_query(whole, dnnl_query_strides, &strides) != dnnl_success ||
        dnnl_memory_desc_query(whole, dnnl_query_data_type, &type) != dnnl_success)
        return NULL;
    memcpy(at, from, (size_t)ndim * sizeof *from);
    at[0] = 0;
    *offset = (size_t)(from[0] * (*strides)[0]) * dnnl_data_type_size(type);
    return dnnl_memory_desc_create_submemory(&slice, whole, dims, at) == dnnl_success ? slice : NULL;
}

int64_t proa__dnnl_offset(const_dnnl_memory_desc_t whole, const int64_t *from, const_dnnl_memory_desc_t part)
{
    dnnl_dims_t *dims = NULL;
    dnnl_data_type_t type = dnnl_data_type_undef;
    dnnl_memory_desc_t slice = NULL;
    int64_t elements = -1;
    if (dnnl_memory_desc_query(part, dnnl_query_dims, &dims) != dnnl_success ||
        dnnl_memory_desc_query(part, dnnl_query_data_type, &type) != dnnl_success ||
        dnnl_memory_desc_create_submemory(&slice, whole, *dims, from) != dnnl_success)
        return -1;
    if (!same_offsets(slice, part) ||
        dnnl_memory_desc_query(slice, dnnl_query_submemory_offset_s64, &elements) != dnnl_success)
        elements = -1;
    dnnl_memory_desc_destroy(slice);
    return elements < 0 ? -1 : elements * (int64_t)dnnl_data_type_size(type);
}

/* Finds md's format by comparison with all format tags: slow, but done only while a primitive is created,
 * which takes longer, or a weight is packed. */
static int find_format(const_dnnl_memory_desc_t md,
                       bool (*same)(const_dnnl_memory_desc_t, const_dnnl_memory_desc_t))
{
    int ndim = 0;
    dnnl_dims_t *dims = NULL;
    dnnl_data_type_t type = dnnl_data_type_undef;
    if (dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &ndim) != dnnl_success ||
        dnnl_memory_desc_query(md, dnnl_query_dims, &dims) != dnnl_success ||
        dnnl_memory_desc_query(md, dnnl_query_data_type, &type) != dnnl_success)
        return 0;
    for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; tag++) {
        dnnl_memory_desc_t one = NULL;
        if (dnnl_memory_desc_create_with_tag(&one, ndim, *dims, type, (dnnl_format_tag_t)tag) != dnnl_success)
            continue;
        bool found = same(one, md);
        dnnl_memory_desc_destroy(one);
        if (found) return tag;
    }
    return 0;
}

int proa__dnnl_format(const_dnnl_memory_desc_t md) { return find_format(md, equal); }

int proa__dnnl_format_of_elements(const_dnnl_memory_desc_t md) { return find_format(md, same_offsets); }

static int64_t channel_block(const proa_tensor *t, int format)
{
    switch ((dnnl_format_tag_t)format) {
    case dnnl_aBc16b:
    case dnnl_aBcd16b:
    case dnnl_aBcde16b: return 16;
    case dnnl_aBc8b:
    case dnnl_aBcd8b:
    case dnnl_aBcde8b: return 8;
    case dnnl_aBc4b:
    case dnnl_aBcd4b:
    case dnnl_aBcde4b: return 4;
    case dnnl_acb:
    case dnnl_acdb:
    case dnnl_acdeb: return t->shape[1];
    default: return 0;
    }
}

static size_t bytes_of(const proa_tensor *t, proa_dtype dtype, int format)
{
    int64_t block = channel_block(t, format);
    if (block) {
        size_t bytes = proa_dtype_size(dtype);
        if (dtype != PROA_F32 && dtype != PROA_BF16 && dtype != PROA_F16) return 0;
        for (int i = 0; i < t->ndim; i++)
            bytes *= (size_t)(i == 1 ? (t->shape[1] + block - 1) / block * block : t->shape[i]);
        return bytes;
    }
    dnnl_memory_desc_t md = proa__dnnl_blocked_md(t, dtype, format);
    size_t bytes = md ? dnnl_memory_desc_get_size(md) : 0;
    if (md) dnnl_memory_desc_destroy(md);
    return bytes;
}

static dnnl_memory_desc_t md_of(const proa_tensor *t, int format)
{
    return format ? proa__dnnl_blocked_md(t, (proa_dtype)t->dtype, format)
                  : proa__dnnl_md(t->ndim, t->shape, NULL, (proa_dtype)t->dtype);
}

/* oneDNN caches the primitives of recent calls, so creating the reorder again is cheap. */
static proa_status convert(const proa_tensor *t, int from_format, const void *from, int to_format, void *to)
{
    dnnl_memory_desc_t a = md_of(t, from_format), b = md_of(t, to_format);
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t reorder = NULL;
    bool ok = a && b && proa__dnnl_usable() &&
              dnnl_reorder_primitive_desc_create(&desc, a, proa__dnnl_engine(), b, proa__dnnl_engine(),
                                                 NULL) == dnnl_success &&
              dnnl_primitive_create(&reorder, desc) == dnnl_success &&
              proa__dnnl_reorder(reorder, a, (void *)(uintptr_t)from, b, to);
    if (reorder) dnnl_primitive_destroy(reorder);
    if (desc) dnnl_primitive_desc_destroy(desc);
    if (a) dnnl_memory_desc_destroy(a);
    if (b) dnnl_memory_desc_destroy(b);
    if (ok) return PROA_OK;
    return proa_fail(PROA_ERR_OUT_OF_MEMORY,
                     "layout: %s could not be copied to another layout; most likely "
                     "out of memory",
                     proa__tensor_text(t));
}

static const proa__blocked_hooks hooks = {bytes_of, convert, channel_block};

__attribute__((constructor)) static void install(void) { proa__blocked_install(&hooks); }
#endif
