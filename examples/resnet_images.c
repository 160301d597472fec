/* A residual network learns small color images, which a dataset of one's own shifts at random.
 * Usage: resnet_images [--steps N] [CIFAR-10 batch.bin …]
 * Files: CIFAR-10's binary form (a label byte, 3·32·32 bytes a sample); without one, shapes are drawn. */
#include <proa.h>

#include <stdlib.h>
#include <string.h>

enum { SIDE = 32, PIXELS = 3 * SIDE * SIDE, RECORD = 1 + PIXELS, CLASSES = 10 };

/* ---- images ------------------------------------------------------------------------------ */

typedef struct images {
    uint8_t *records; /* label and pixels, one after the other */
    int64_t count;
    bool augment; /* a shift by up to 4 pixels, up or down */
} images;

/* A file's records behind those that are there. */
static bool read_records(images *d, const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t record[RECORD];
    while (f && fread(record, RECORD, 1, f) == 1) {
        uint8_t *more = realloc(d->records, (size_t)(d->count + 1) * RECORD);
        if (!more) break;
        d->records = more;
        memcpy(more + d->count++ * RECORD, record, RECORD);
    }
    bool good = f && feof(f);
    if (f) fclose(f);
    if (!good) fprintf(stderr, "cannot read %s\n", path);
    return good;
}

/* Class c is a rectangle of color c % 5 on the left or right, on noise. */
static void draw_records(images *d, int64_t count)
{
    static const uint8_t colors[5][3] = {
        {220, 40, 40}, {40, 200, 60}, {50, 80, 230}, {230, 210, 40}, {200, 60, 200}};
    d->records = malloc((size_t)count * RECORD);
    for (; d->records && d->count < count; d->count++) {
        uint8_t *r = d->records + d->count * RECORD;
        r[0] = (uint8_t)(rand() % CLASSES);
        for (int i = 1; i < RECORD; i++) r[i] = (uint8_t)(rand() % 120);
        int wide = 6 + rand() % 8, high = 4 + rand() % 20, top = rand() % (SIDE - high),
            left = r[0] < 5 ? 1 : 17;
        for (int c = 0; c < 3; c++)
            for (int y = top; y < top + high; y++)
                memset(r + 1 + (c * SIDE + y) * SIDE + left, colors[r[0] % 5][c], (size_t)wide);
    }
}

/* One sample: x [3, 32, 32] in float32 around 0, y [1]. Runs on the loader's thread. */
static proa_status sample(void *context, int64_t index, proa_tensor **to)
{
    const images *d = context;
    const uint8_t *r = d->records + index * RECORD;
    int64_t label = r[0];
    proa_tensor *x = proa_zeros(PROA_SHAPE(3, SIDE, SIDE), PROA_F32);
    to[0] = x;
    to[1] = proa_from_data(&label, PROA_SHAPE(1), PROA_I64);
    float *pixels = proa_data(x);
    if (!pixels || !to[1]) return proa_error();
    int down = d->augment ? rand() % 9 - 4 : 0;
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < SIDE; y++)
            for (int i = 0; i < SIDE && y + down >= 0 && y + down < SIDE; i++)
                pixels[(c * SIDE + y) * SIDE + i] = (float)r[1 + (c * SIDE + y + down) * SIDE + i] / 64 - 2;
    return PROA_OK;
}

static proa_loader *load(images *d)
{
    proa_dataset *set =
        proa_dataset_new(&(proa_dataset_desc){.count = d->count, .fields = 2, .item = sample, .context = d});
    return proa_loader_new(set, .batch = 32, .shuffle = true, .drop_last = true);
}

/* ---- the network ------------------------------------------------------------------------- */

static proa_layer *convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride)
{
    return proa_sequential(
        proa_conv2d_layer(in, out, kernel, .stride = stride, .padding = kernel / 2, .no_bias = true),
        proa_batch_norm_layer(out));
}

static proa_layer *block(int64_t in, int64_t out, int64_t stride)
{
    proa_layer *body =
        proa_sequential(convolution(in, out, 3, stride), proa_relu_layer(), convolution(out, out, 3, 1));
    return proa_sequential(proa_residual_layer(body, in == out ? NULL : convolution(in, out, 1, stride)),
                           proa_relu_layer());
}

static proa_layer *make_net(void)
{
    return proa_sequential(convolution(3, 16, 3, 1), proa_relu_layer(), block(16, 16, 1), block(16, 32, 2),
                           block(32, 64, 2), proa_adaptive_avg_pool2d_layer(1), proa_flatten_layer(),
                           proa_linear_layer(64, CLASSES));
}

int main(int argc, char **argv)
{
    int64_t steps = getenv("PROA_SHORT") ? 60 : 400, step = 0;
    images d = {.augment = true};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--steps") == 0 && i + 1 < argc) steps = strtoll(argv[++i], NULL, 10);
        else if (!read_records(&d, argv[i])) return 1;
    }
    if (!d.count) draw_records(&d, 2048);
    proa_seed(1);
    proa_loader *batches = load(&d);
    proa_layer *net = make_net();
    proa_optimizer *opt = proa_momentum(proa_parameters(net), .weight_decay = 1e-4,
                                        .schedule = proa_one_cycle(0.1, steps, 10, 1e-3, 0.3));
    proa_progress *bar = proa_progress_new(stdout, "steps", steps);
    double right = 0;
    while (step < steps && !proa_error()) {
        proa_each (batch, batches) {
            proa_tensor *scores = proa_forward(net, batch->x);
            proa_backward(proa_cross_entropy(scores, batch->y));
            proa_step(opt);
            proa_schedule_step(proa_optimizer_schedule(opt));
            right = 0.9 * right + 0.1 * proa_top_accuracy(scores, batch->y, 1);
            proa_progress_value(bar, "accuracy", right);
            proa_progress_step(bar, 1);
            if (++step >= steps) break;
        }
    }
    proa_progress_end(bar);
    printf("%lld parameters, accuracy of the last steps %.2f\n", (long long)proa_parameter_count(net), right);
    proa_optimizer_free(opt);
    proa_layer_free(net);
    proa_loader_free(batches);
    free(d.records);
    return proa_finish(stderr);
}
