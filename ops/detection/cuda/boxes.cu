/* yolo_box, prior_box and box_coder on a GPU, one thread per box. */
#include "devices/cuda/kernel.h"

#include "ops/detection/ratios.h"

CUDA_FN float box_exp(float v) { return expf(v); }
CUDA_FN double box_exp(double v) { return exp(v); }
CUDA_FN float box_log(float v) { return logf(v); }
CUDA_FN double box_log(double v) { return log(v); }
CUDA_FN float box_pow(float v, float e) { return powf(v, e); }
CUDA_FN double box_pow(double v, double e) { return pow(v, e); }
template <class T> CUDA_FN T box_logistic(T v) { return 1 / (1 + box_exp(-v)); }

/* ---- yolo_box -------------------------------------------------------------------------- */

enum { YOLO_ANCHORS = 64 };
struct yolo_plan {
    int64_t images, anchors, channels, h, w, classes, downsample;
    int64_t sides[2 * YOLO_ANCHORS];
    float threshold, scale, factor;
    bool clips, aware;
};

template <class T>
__global__ void yolo_kernel(yolo_plan p, const T *x, const int32_t *size, T *boxes, T *scores)
{
    const int64_t pixels = p.h * p.w, each = 5 + p.classes;
    for (CUDA_EACH(k, p.images * p.anchors * pixels)) {
        int64_t i = k % pixels, anchor = k / pixels % p.anchors, image = k / pixels / p.anchors;
        const T *all = x + image * p.channels * pixels;
        const T *at = all + ((p.aware ? p.anchors : 0) + anchor * each) * pixels + i;
        T *box = boxes + k * 4, *score = scores + k * p.classes;
        T tall = (T)size[2 * image], wide = (T)size[2 * image + 1];
        T across = (T)p.sides[2 * anchor] / (T)(p.downsample * p.w);
        T down = (T)p.sides[2 * anchor + 1] / (T)(p.downsample * p.h);
        T scale = (T)p.scale, shift = (T)-0.5 * (scale - 1), factor = (T)p.factor;
        T sure = box_logistic(at[4 * pixels]);
        if (p.aware)
            sure = box_pow(sure, 1 - factor) * box_pow(box_logistic(all[anchor * pixels + i]), factor);
        if (sure < (T)p.threshold) {
            for (int c = 0; c < 4; c++) box[c] = 0;
            for (int64_t c = 0; c < p.classes; c++) score[c] = 0;
            continue;
        }
        T cx = ((T)(i % p.w) + box_logistic(at[0]) * scale + shift) * wide / (T)p.w;
        T cy = ((T)(i / p.w) + box_logistic(at[pixels]) * scale + shift) * tall / (T)p.h;
        T half_w = box_exp(at[2 * pixels]) * across * wide / 2,
          half_h = box_exp(at[3 * pixels]) * down * tall / 2;
        box[0] = cx - half_w, box[1] = cy - half_h, box[2] = cx + half_w, box[3] = cy + half_h;
        if (p.clips) {
            for (int c = 0; c < 2; c++) box[c] = box[c] > 0 ? box[c] : 0;
            box[2] = box[2] < wide - 1 ? box[2] : wide - 1;
            box[3] = box[3] < tall - 1 ? box[3] : tall - 1;
        }
        for (int64_t c = 0; c < p.classes; c++) score[c] = sure * box_logistic(at[(5 + c) * pixels]);
    }
}

CUDA_KERNEL(yolo_box, a->anchors.count <= 2 * YOLO_ANCHORS)
{
    cuda_tensor x = cuda_look(a->x), size = cuda_look(a->img_size), boxes = cuda_look(a->boxes);
    cuda_tensor scores = cuda_look(a->scores);
    yolo_plan p = {};
    if (boxes.numel == 0) return PROA_OK;
    p.images = x.shape[0], p.channels = x.shape[1], p.h = x.shape[2], p.w = x.shape[3];
    p.anchors = a->anchors.count / 2;
    p.classes = a->class_num;
    p.downsample = a->downsample_ratio;
    for (int64_t i = 0; i < a->anchors.count; i++) p.sides[i] = a->anchors.at[i];
    p.threshold = (float)a->conf_thresh, p.scale = (float)a->scale_x_y, p.factor = (float)a->iou_aware_factor;
    p.clips = a->clip_bbox, p.aware = a->iou_aware;
    CUDA_SWITCH_WIDE(x.dtype, T, {
        return cuda_launch(c, cuda_blocks(boxes.numel / 4), CUDA_BLOCK, yolo_kernel<T>, p, x.as<T>(),
                           size.as<int32_t>(), boxes.as<T>(), scores.as<T>());
    });
}

/* ---- prior_box ------------------------------------------------------------------------- */

enum { PRIOR_SIZES = 64 };
struct prior_plan {
    int64_t h, w, each, ratios, per_size; /* each: boxes of a cell */
    bool clip, square_first, has_means;
    float offset, step_w, step_h; /* steps of 0: image / input */
    int64_t tall, wide;
    float variance[4];
    double ratio[DETECTION_RATIOS];
    float least[PRIOR_SIZES], most[PRIOR_SIZES];
};

/* Half the sides of box k of a cell. */
template <class T> CUDA_FN void prior_sides(const prior_plan &p, int64_t k, T *w, T *h)
{
    int64_t size = k / p.per_size, r = k % p.per_size, first = p.square_first && p.has_means ? 1 : p.ratios;
    T least = (T)p.least[size];
    if (p.has_means && r == first) {
        *w = *h = (T)sqrt((double)(least * (T)p.most[size])) / 2;
        return;
    }
    T root = (T)sqrt(p.ratio[p.has_means && r > first ? r - 1 : r]);
    *w = least * root / 2;
    *h = least / root / 2;
}

template <class T> CUDA_FN T prior_clipped(T v, bool clip) { return !clip ? v : v < 0 ? 0 : v > 1 ? 1 : v; }

template <class T> __global__ void prior_kernel(prior_plan p, T *boxes, T *variances)
{
    T tall = (T)p.tall, wide = (T)p.wide;
    bool given = p.step_w != 0 && p.step_h != 0;
    T step_w = given ? (T)p.step_w : wide / (T)p.w, step_h = given ? (T)p.step_h : tall / (T)p.h;
    for (CUDA_EACH(i, p.h * p.w * p.each)) {
        int64_t cell = i / p.each;
        T cx = ((T)(cell % p.w) + (T)p.offset) * step_w, cy = ((T)(cell / p.w) + (T)p.offset) * step_h, w, h;
        prior_sides(p, i % p.each, &w, &h);
        boxes[4 * i] = prior_clipped((cx - w) / wide, p.clip);
        boxes[4 * i + 1] = prior_clipped((cy - h) / tall, p.clip);
        boxes[4 * i + 2] = prior_clipped((cx + w) / wide, p.clip);
        boxes[4 * i + 3] = prior_clipped((cy + h) / tall, p.clip);
        for (int k = 0; k < 4; k++) variances[4 * i + k] = (T)p.variance[k];
    }
}

CUDA_KERNEL(prior_box, a->min_sizes.count <= PRIOR_SIZES)
{
    cuda_tensor input = cuda_look(a->input), image = cuda_look(a->image), boxes = cuda_look(a->boxes);
    prior_plan p = {input.shape[2], input.shape[3], boxes.shape[2], 1};
    if (boxes.numel == 0) return PROA_OK;
    p.ratio[0] = 1;
    for (int64_t i = 0; i < a->aspect_ratios.count; i++)
        p.ratios = detection_add_ratio(p.ratio, p.ratios, (float)a->aspect_ratios.at[i], a->flip);
    p.has_means = a->max_sizes.count > 0;
    p.per_size = p.ratios + p.has_means;
    p.clip = a->clip, p.square_first = a->min_max_aspect_ratios_order;
    p.offset = (float)a->offset, p.step_w = (float)a->step_w, p.step_h = (float)a->step_h;
    p.tall = image.shape[2], p.wide = image.shape[3];
    for (int k = 0; k < 4; k++) p.variance[k] = (float)a->variances.at[k];
    for (int64_t i = 0; i < a->min_sizes.count; i++) {
        p.least[i] = (float)a->min_sizes.at[i];
        if (p.has_means) p.most[i] = (float)a->max_sizes.at[i];
    }
    CUDA_SWITCH_WIDE(boxes.dtype, T, {
        return cuda_launch(c, cuda_blocks(boxes.numel / 4), CUDA_BLOCK, prior_kernel<T>, p, boxes.as<T>(),
                           cuda_look(a->variance).as<T>());
    });
}

/* ---- box_coder ------------------------------------------------------------------------- */

struct coder_plan {
    int64_t rows, columns;
    bool encode, by_rows, normalized; /* by_rows: priors go with rows of the result, not columns */
    float variance[4];
};

template <class T>
__global__ void coder_kernel(coder_plan p, const T *priors, const T *targets, const T *given, T *out)
{
    for (CUDA_EACH(k, p.rows * p.columns)) {
        int64_t i = k / p.columns, j = k % p.columns, at = 4 * (p.by_rows ? i : j);
        const T *prior = priors + at, *t = targets + 4 * (p.encode ? i : k);
        T var[4], *to = out + 4 * k, more = p.normalized ? 0 : 1;
        for (int d = 0; d < 4; d++) var[d] = given ? given[at + d] : (T)p.variance[d];
        T pw = prior[2] - prior[0] + more, ph = prior[3] - prior[1] + more;
        T cx = prior[0] + pw / 2, cy = prior[1] + ph / 2;
        if (p.encode) {
            T w = (t[2] - t[0] + more) / pw, h = (t[3] - t[1] + more) / ph;
            to[0] = ((t[0] + t[2]) / 2 - cx) / pw / var[0];
            to[1] = ((t[1] + t[3]) / 2 - cy) / ph / var[1];
            to[2] = box_log(w < 0 ? -w : w) / var[2];
            to[3] = box_log(h < 0 ? -h : h) / var[3];
            continue;
        }
        T x = var[0] * t[0] * pw + cx, y = var[1] * t[1] * ph + cy;
        T w = box_exp(var[2] * t[2]) * pw / 2, h = box_exp(var[3] * t[3]) * ph / 2;
        to[0] = x - w, to[1] = y - h, to[2] = x + w - more, to[3] = y + h - more;
    }
}

CUDA_KERNEL(box_coder, true)
{
    cuda_tensor prior = cuda_look(a->prior_box), target = cuda_look(a->target_box), out = cuda_look(a->out);
    coder_plan p = {out.shape[0], out.shape[1], false, false, a->box_normalized, {1, 1, 1, 1}};
    p.encode = a->code_type == PROA_BOX_CODE_ENCODE_CENTER_SIZE;
    p.by_rows = !p.encode && a->axis == 1;
    for (int64_t i = 0; i < a->variance.count && i < 4; i++) p.variance[i] = (float)a->variance.at[i];
    if (out.numel == 0) return PROA_OK;
    CUDA_SWITCH_WIDE(out.dtype, T, {
        const T *given = cuda_given(a->prior_box_var) ? cuda_look(a->prior_box_var).as<T>() : NULL;
        return cuda_launch(c, cuda_blocks(out.numel / 4), CUDA_BLOCK, coder_kernel<T>, p, prior.as<T>(),
                           target.as<T>(), given, out.as<T>());
    });
}
