/* nms and multiclass_nms on a GPU. Boxes are in descending order of score (multiclass_nms sorts each class).
 * nms computes as bits which boxes suppress which, then one block decides box after box; multiclass_nms has a
 * block per class, whose threads compare each box with those that were kept. The host waits once, for the
 * sizes of the results. */
#include "devices/cuda/sort.h"

/* Intersection over union; `more` is added to each side length. */
template <class T> CUDA_FN T nms_overlap(const T *a, const T *b, T more)
{
    if (b[0] > a[2] || b[2] < a[0] || b[1] > a[3] || b[3] < a[1]) return 0;
    T w = (a[2] < b[2] ? a[2] : b[2]) - (a[0] > b[0] ? a[0] : b[0]) + more;
    T h = (a[3] < b[3] ? a[3] : b[3]) - (a[1] > b[1] ? a[1] : b[1]) + more;
    T one = a[2] < a[0] || a[3] < a[1] ? 0 : (a[2] - a[0] + more) * (a[3] - a[1] + more);
    T other = b[2] < b[0] || b[3] < b[1] ? 0 : (b[2] - b[0] + more) * (b[3] - b[1] + more);
    return w * h / (one + other - w * h);
}

static proa_status nms_output(cuda_context *c, const void *args, int index, const proa_meta &meta,
                              char **data)
{
    proa_tensor *t = cuda_host->output_resize((void *)(uintptr_t)args, c->running, index, &meta);
    if (!t) return cuda_host->error();
    *data = cuda_look(t).data;
    return PROA_OK;
}

/* ---- nms ------------------------------------------------------------------------------- */

/* Bit j of word w of box i: box i suppresses box 64 · w + j, which has a lower score. */
template <class T>
__global__ void nms_bits_kernel(const T *boxes, int64_t n, int64_t words, T threshold, uint64_t *bits)
{
    for (CUDA_EACH(k, n * words)) {
        int64_t i = k / words, first = k % words * 64;
        uint64_t word = 0;
        for (int64_t j = first; j < first + 64 && j < n; j++)
            if (j > i && nms_overlap(boxes + 4 * i, boxes + 4 * j, (T)0) > threshold)
                word |= (uint64_t)1 << (j - first);
        bits[k] = word;
    }
}

/* One block: writes the number of remaining boxes to kept[0], and their indices behind it. */
__global__ void nms_keep_kernel(const uint64_t *bits, int64_t n, int64_t words, uint64_t *gone, int64_t *kept)
{
    int64_t count = 0;
    for (int64_t w = threadIdx.x; w < words; w += blockDim.x) gone[w] = 0;
    __syncthreads();
    for (int64_t i = 0; i < n; i++) {
        bool stays = !(gone[i / 64] >> (i % 64) & 1);
        __syncthreads();
        if (!stays) continue;
        for (int64_t w = i / 64 + threadIdx.x; w < words; w += blockDim.x) gone[w] |= bits[i * words + w];
        count++;
        if (threadIdx.x == 0) kept[count] = i;
        __syncthreads();
    }
    if (threadIdx.x == 0) kept[0] = count;
}

static proa_status nms_find(cuda_context *c, const cuda_tensor &boxes, double threshold, int64_t words,
                            uint64_t *bits, uint64_t *gone, int64_t *kept)
{
    int64_t n = boxes.shape[0];
    if (n > 0 && boxes.dtype == PROA_F64)
        PROA_TRY(cuda_launch(c, cuda_blocks(n * words), CUDA_BLOCK, nms_bits_kernel<double>,
                             boxes.as<double>(), n, words, threshold, bits));
    else if (n > 0)
        PROA_TRY(cuda_launch(c, cuda_blocks(n * words), CUDA_BLOCK, nms_bits_kernel<float>, boxes.as<float>(),
                             n, words, (float)threshold, bits));
    return cuda_launch(c, 1, CUDA_BLOCK, nms_keep_kernel, bits, n, words, gone, kept);
}

CUDA_KERNEL(nms, true)
{
    cuda_tensor boxes = cuda_look(a->boxes);
    int64_t n = boxes.shape[0], words = (n + 63) / 64, count = 0;
    uint64_t *bits = (uint64_t *)cuda_scratch(c, (size_t)((n + 1) * words + n + 1) * sizeof *bits);
    if (!bits) return cuda_host->error();
    int64_t *kept = (int64_t *)(bits + (n + 1) * words);
    proa_status s = nms_find(c, boxes, a->threshold, words, bits, bits + n * words, kept);
    if (s == PROA_OK) s = cuda_read(c, &count, kept, sizeof count);
    char *out = NULL;
    if (s == PROA_OK) s = nms_output(c, a, 0, {PROA_I64, 1, {count}}, &out);
    if (s == PROA_OK) s = cuda_move(c, out, kept + 1, (size_t)count * sizeof *kept);
    cuda_scratch_free(c, bits);
    return s;
}

/* ---- multiclass_nms -------------------------------------------------------------------- */

/* A line is a class of an image: line = image · classes + class. Images have `boxes` boxes each, common to
 * all classes; or, with `first`, rows of their own with a box for each class, at most `boxes` of them. */
struct detect_plan {
    int64_t images, classes, boxes, top, keep, background; /* top, keep: −1: all */
    bool normalized;
    float least, threshold, eta;
    int64_t *kept;  /* [lines, boxes]: numbers of boxes within the image, best first */
    int64_t *count; /* [lines]; then where each line begins in the result */
    int32_t *per_image;
    int64_t
        *first; /* [images + 2] or NULL: rows before each image, the end; then 1 + the first wrong image */

    CUDA_MEMBER int64_t row(int64_t line, int64_t i) const
    {
        return (first ? first[line / classes] : line / classes * boxes) + i;
    }
    CUDA_MEMBER int64_t box(int64_t line, int64_t i) const
    {
        return first ? row(line, i) * classes + line % classes : row(line, i);
    }
    CUDA_MEMBER int64_t score(int64_t line, int64_t i) const
    {
        return first ? box(line, i) : line * boxes + i;
    }
    CUDA_MEMBER int64_t rows(int64_t line) const
    {
        return first ? first[line / classes + 1] - first[line / classes] : boxes;
    }
};

/* Fills p.first from the number of each image's rows; what is no part of all rows counts as none. */
__global__ void detect_rows_kernel(detect_plan p, const int32_t *number)
{
    if (blockIdx.x || threadIdx.x) return;
    int64_t wrong = 0;
    p.first[0] = 0;
    for (int64_t i = 0; i < p.images; i++) {
        const bool fits = number[i] >= 0 && number[i] <= p.boxes - p.first[i];
        if (!fits && !wrong) wrong = i + 1;
        p.first[i + 1] = p.first[i] + (fits ? number[i] : 0);
    }
    p.first[p.images + 1] = wrong;
}

/* Sorts by descending score, with rejected candidates last. */
template <class T>
__global__ void detect_keys_kernel(cuda_order o, detect_plan p, const T *scores, proa_dtype d)
{
    for (CUDA_EACH(i, o.lines * o.length)) {
        const int64_t line = i / o.length, at = i % o.length;
        const T *score = scores + p.score(line, at);
        bool counts = line % p.classes != p.background && at < p.rows(line) && *score > (T)p.least;
        uint64_t all = UINT64_MAX >> (64 - sizeof(T) * 8);
        o.put_key(i, counts ? all - cuda_key(d, (const char *)score) : all);
    }
}

template <class T>
__global__ void detect_keep_kernel(cuda_order o, detect_plan p, const T *boxes, const T *scores)
{
    for (int64_t line = blockIdx.x; line < p.images * p.classes; line += gridDim.x) {
        int64_t *kept = p.kept + line * p.boxes, count = 0, rows = p.rows(line);
        int64_t most = line % p.classes == p.background ? 0 : p.top > -1 && p.top < rows ? p.top : rows;
        T threshold = (T)p.threshold, more = p.normalized ? 0 : 1;
        for (int64_t i = 0; i < most; i++) {
            int64_t mine = o.place(line * p.boxes + i);
            if (mine >= rows || !(scores[p.score(line, mine)] > (T)p.least)) break;
            const T *box = boxes + 4 * p.box(line, mine);
            int removed = 0;
            for (int64_t k = threadIdx.x; k < count && !removed; k += blockDim.x)
                removed = !(nms_overlap(box, boxes + 4 * p.box(line, kept[k]), more) <= threshold);
            removed = cuda_block_reduce<cuda_max>(removed);
            if (removed) continue;
            if (threadIdx.x == 0) kept[count] = mine;
            count++;
            if (p.eta < 1 && threshold > (T)0.5) threshold *= (T)p.eta;
            __syncthreads();
        }
        if (threadIdx.x == 0) p.count[line] = count;
    }
}

/* Rank in its image of a box with this score, which is number `at` of line `mine`: the number of better
 * boxes. */
template <class T>
CUDA_FN int64_t detect_rank(const detect_plan &p, const T *scores, int64_t image, int64_t mine, int64_t at,
                            T score)
{
    int64_t before = 0;
    for (int64_t line = image * p.classes; line < (image + 1) * p.classes; line++)
        for (int64_t k = 0; k < p.count[line]; k++) {
            T other = scores[p.score(line, p.kept[line * p.boxes + k])];
            bool first = line < mine || (line == mine && k < at);
            if (!(other > score || (other == score && first))) break; /* scores of a line descend */
            before++;
        }
    return before;
}

/* Keeps the `keep` best boxes of each image. Lines are in order of score, so each is shortened at its end;
 * left: the new count of each line. */
template <class T> __global__ void detect_limit_kernel(detect_plan p, const T *scores, int64_t *left)
{
    for (int64_t line = blockIdx.x; line < p.images * p.classes; line += gridDim.x) {
        int64_t stays = 0;
        for (int64_t k = threadIdx.x; k < p.count[line]; k += blockDim.x) {
            T score = scores[p.score(line, p.kept[line * p.boxes + k])];
            stays += p.keep < 0 || detect_rank(p, scores, line / p.classes, line, k, score) < p.keep;
        }
        stays = cuda_block_reduce<cuda_sum>(stays);
        if (threadIdx.x == 0) left[line] = stays;
    }
}

/* per_image[image]: the sum of the counts in `left` of the image's lines. */
__global__ void detect_count_kernel(detect_plan p, const int64_t *left)
{
    for (CUDA_EACH(image, p.images)) {
        int64_t sum = 0;
        for (int64_t k = 0; k < p.classes; k++) sum += left[image * p.classes + k];
        p.per_image[image] = (int32_t)sum;
    }
}

template <class T>
__global__ void detect_write_kernel(detect_plan p, const T *boxes, const T *scores, const int64_t *begin,
                                    int64_t lines, T *out, int32_t *index)
{
    for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
        const int64_t *kept = p.kept + line * p.boxes, n = begin[line + 1] - begin[line];
        for (int64_t k = threadIdx.x; k < n; k += blockDim.x) {
            int64_t at = p.first ? 0 : k, box = p.box(line, kept[k]);
            for (int64_t j = 0; p.first && j < n; j++) at += kept[j] < kept[k]; /* in the order of rows */
            T *to = out + 6 * (begin[line] + at);
            to[0] = (T)(line % p.classes);
            to[1] = scores[p.score(line, kept[k])];
            for (int i = 0; i < 4; i++) to[2 + i] = boxes[4 * box + i];
            index[begin[line] + at] = (int32_t)box;
        }
    }
}

/* Runs all steps up to the numbers of results: line i starts at begin[i] (lines + 1 entries) in the
 * result. */
template <class T>
static proa_status detect_find(cuda_context *c, const detect_plan &p, cuda_order *o, const cuda_tensor &boxes,
                               const cuda_tensor &scores, int64_t *begin)
{
    int64_t lines = p.images * p.classes;
    const T *s = scores.as<T>();
    if (p.boxes) {
        PROA_TRY(cuda_launch(c, cuda_blocks(lines * p.boxes), CUDA_BLOCK, detect_keys_kernel<T>, *o, p, s,
                             scores.dtype));
        PROA_TRY(cuda_sort(c, o));
    }
    PROA_TRY(
        cuda_launch(c, cuda_blocks(lines, 1), CUDA_BLOCK, detect_keep_kernel<T>, *o, p, boxes.as<T>(), s));
    PROA_TRY(cuda_launch(c, cuda_blocks(lines, 1), CUDA_BLOCK, detect_limit_kernel<T>, p, s, begin));
    PROA_TRY(cuda_launch(c, cuda_blocks(p.images), CUDA_BLOCK, detect_count_kernel, p, begin));
    return cuda_scan(c, begin, lines + 1);
}

template <class T>
static proa_status detect_write(cuda_context *c, const void *args, const detect_plan &p,
                                const cuda_tensor &boxes, const cuda_tensor &scores, const int64_t *begin)
{
    int64_t lines = p.images * p.classes, n = 0, wrong = 0;
    char *out, *index;
    if (p.first) PROA_TRY(cuda_read(c, &wrong, p.first + p.images + 1, sizeof wrong));
    if (wrong)
        return cuda_fail(PROA_ERR_OUT_OF_RANGE,
                         "multiclass_nms: boxes_num: gives image %lld rows that are not left",
                         (long long)wrong - 1);
    PROA_TRY(cuda_read(c, &n, begin + lines, sizeof n));
    PROA_TRY(nms_output(c, args, 0, {boxes.dtype, 2, {n, 6}}, &out));
    PROA_TRY(nms_output(c, args, 1, {PROA_I32, 2, {n, 1}}, &index));
    if (n == 0) return PROA_OK;
    return cuda_launch(c, cuda_blocks(lines, 1), CUDA_BLOCK, detect_write_kernel<T>, p, boxes.as<T>(),
                       scores.as<T>(), begin, lines, (T *)(void *)out, (int32_t *)(void *)index);
}

template <class T>
static proa_status detect(cuda_context *c, const void *args, detect_plan p, const cuda_tensor &boxes,
                          const cuda_tensor &scores, const int32_t *number)
{
    int64_t lines = p.images * p.classes;
    cuda_order o = {};
    proa_status s = PROA_OK;
    p.kept = (int64_t *)cuda_scratch(c, (size_t)(lines * (p.boxes + 2) + p.images + 3) * sizeof *p.kept);
    if (!p.kept) return cuda_host->error();
    p.count = p.kept + lines * p.boxes;
    int64_t *begin = p.count + lines;
    if (number) {
        p.first = begin + lines + 1;
        s = cuda_launch(c, 1, 1, detect_rows_kernel, p, number);
    }
    if (s == PROA_OK && p.boxes && lines) s = cuda_order_new(c, &o, lines, p.boxes, (int)sizeof(T) * 8);
    if (s == PROA_OK) s = detect_find<T>(c, p, &o, boxes, scores, begin);
    if (s == PROA_OK) s = detect_write<T>(c, args, p, boxes, scores, begin);
    cuda_order_free(c, &o);
    cuda_scratch_free(c, p.kept);
    return s;
}

CUDA_KERNEL(multiclass_nms, true)
{
    const bool by_class = cuda_given(a->boxes_num);
    cuda_tensor boxes = cuda_look(a->bboxes), scores = cuda_look(a->scores), number = {};
    if (by_class) number = cuda_look(a->boxes_num);
    detect_plan p = {by_class ? number.shape[0] : boxes.shape[0],
                     scores.shape[1],
                     boxes.shape[by_class ? 0 : 1],
                     a->nms_top_k,
                     a->keep_top_k,
                     a->background_label,
                     a->normalized,
                     (float)a->score_threshold,
                     (float)a->nms_threshold,
                     (float)a->nms_eta};
    char *per_image;
    PROA_TRY(nms_output(c, a, 2, {PROA_I32, 1, {p.images}}, &per_image));
    p.per_image = (int32_t *)(void *)per_image;
    const int32_t *rows = by_class ? number.as<int32_t>() : nullptr;
    return boxes.dtype == PROA_F64 ? detect<double>(c, a, p, boxes, scores, rows)
                                   : detect<float>(c, a, p, boxes, scores, rows);
}
