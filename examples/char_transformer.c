/* A small decoder learns to write English, one character at a time, from "Alice's Adventures in Wonderland".
 * Usage: char_transformer [data folder] [--bf16] [--steps N]
 * Leaves char_transformer.pdmodel and .pdiparams where it runs.
 * --bf16 computes matrix products in bfloat16 (O1 autocast); parameters and their updates stay float32. */
#include <proa.h>

#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, FEATURES = 96, HEADS = 4, BLOCKS = 3, BATCH = 16 };

/* Characters and their places become vectors, pass the blocks, and become scores of the next character. */
typedef struct decoder {
    proa_layer base;
    proa_layer *characters, *blocks, *scores; /* children */
    proa_tensor *places;                      /* [WINDOW, FEATURES] */
} decoder;

static proa_tensor *decoder_forward(proa_layer *self, proa_tensor *ids)
{
    decoder *d = (decoder *)self;
    proa_tensor *places = proa_slice(d->places, PROA_INTS(0), PROA_INTS(0), PROA_INTS(proa_dim(ids, 1)));
    proa_tensor *x = proa_add(proa_forward(d->characters, ids), places);
    return proa_forward(d->scores, proa_forward(d->blocks, x));
}

static proa_layer *make_block(void)
{
    return proa_transformer_layer(FEATURES, HEADS, 4 * FEATURES, .causal = true, .norm_first = true,
                                  .dropout = 0.1);
}

static proa_layer *make_decoder(int64_t vocabulary)
{
    decoder *d = (decoder *)proa_layer_new(sizeof *d, "decoder", decoder_forward);
    if (!d) return NULL;
    d->places = proa_layer_parameter(&d->base, "places", PROA_SHAPE(WINDOW, FEATURES),
                                     (proa_init){.kind = PROA_INIT_NORMAL, .b = 0.02});
    d->characters = proa_layer_add(&d->base, "characters", proa_embedding_layer(vocabulary, FEATURES, -1));
    d->blocks = proa_layer_add(
        &d->base, "blocks",
        proa_sequential(make_block(), make_block(), make_block(), proa_layer_norm_layer(FEATURES)));
    d->scores = proa_layer_add(&d->base, "scores", proa_linear_layer(FEATURES, vocabulary));
    return &d->base;
}

/* Draws the next character from the softmax of its scores, made a little bolder. */
static int64_t draw(proa_tensor *scores, int64_t vocabulary)
{
    int64_t last = proa_dim(scores, 1) - 1;
    proa_tensor *row = proa_slice(scores, PROA_INTS(1), PROA_INTS(last), PROA_INTS(last + 1));
    proa_tensor *p = proa_softmax(proa_scale(row, .scale = PROA_SCALAR(1.25)));
    double rest = proa_item(proa_uniform(PROA_SHAPE(1), .min = PROA_SCALAR(0.0)));
    const float *chances = proa_data(p);
    int64_t next = 0;
    while (chances && next < vocabulary - 1 && rest >= (double)chances[next]) rest -= (double)chances[next++];
    return next;
}

static void write_text(proa_layer *net, const proa_text *text, const char *start, int length)
{
    int64_t ids[4096], vocabulary = proa_text_vocabulary(text), n = (int64_t)strlen(start);
    proa_tensor *encoded = proa_text_encode(text, start);
    if (!encoded || proa_copy_out(encoded, ids, (size_t)n * sizeof *ids) != PROA_OK) return;
    proa_eval(net);
    printf("%s", start);
    for (int i = 0; i < length && n < 4096 && !proa_error(); i++)
        PROA_SCOPE {
            PROA_NO_GRAD;
            int64_t from = n > WINDOW ? n - WINDOW : 0;
            proa_tensor *x = proa_from_data(ids + from, PROA_SHAPE(1, n - from), PROA_I64);
            char shown[5] = "";
            ids[n] = draw(proa_forward(net, x), vocabulary);
            proa_text_decode(text, ids[n++], shown);
            printf("%s", shown);
        }
    printf("\n");
    proa_train(net);
}

static proa_tensor *loss_of(proa_layer *net, const proa_batch *batch, bool bf16)
{
    proa_tensor *scores = NULL;
    PROA_AUTOCAST(bf16 ? PROA_AMP_O1 : PROA_AMP_OFF, .dtype = PROA_BF16) scores = proa_forward(net, batch->x);
    return proa_cross_entropy(proa_cast(scores, PROA_F32), batch->y);
}

int main(int argc, char **argv)
{
    const char *data = getenv("PROA_DATA") ? getenv("PROA_DATA") : "examples/data";
    int64_t steps = getenv("PROA_SHORT") ? 120 : 1500, step = 0;
    bool bf16 = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bf16") == 0) bf16 = true;
        else if (strcmp(argv[i], "--steps") == 0 && i + 1 < argc) steps = strtoll(argv[++i], NULL, 10);
        else data = argv[i];
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/alice.txt", data);
    proa_seed(7);
    proa_text *text = proa_text_load(path, false);
    if (!text) return proa_finish(stderr);
    proa_loader *batches =
        proa_load_text(text, .window = WINDOW, .batch = BATCH, .shuffle = true, .drop_last = true);
    proa_layer *net = make_decoder(proa_text_vocabulary(text));
    proa_optimizer *opt =
        proa_adamw(proa_parameters(net), .beta2 = 0.99, .clip = {PROA_CLIP_GLOBAL_NORM, 1},
                   .schedule = proa_linear_warmup(proa_cosine_decay(2e-3, steps, 1e-4), 20, 1e-4, 2e-3));
    printf("%lld parameters%s\n", (long long)proa_parameter_count(net), bf16 ? ", bfloat16" : "");

    proa_progress *bar = proa_progress_new(stdout, "steps", steps);
    double mean = 0;
    while (step < steps && !proa_error()) {
        proa_each (batch, batches) {
            proa_tensor *loss = loss_of(net, batch, bf16);
            proa_backward(loss);
            proa_step(opt);
            proa_schedule_step(proa_optimizer_schedule(opt));
            double value = proa_item(loss);
            mean = step == 0 ? value : 0.95 * mean + 0.05 * value;
            proa_progress_value(bar, "loss", mean);
            proa_progress_step(bar, 1);
            if (++step >= steps) break;
        }
    }
    proa_progress_end(bar);
    write_text(net, text, "Alice was ", getenv("PROA_SHORT") ? 120 : 600);
    printf("loss: %.2f nats a character\n", mean);
    proa_export(net, "char_transformer", PROA_INPUT_OF(PROA_I64, -1, WINDOW));
    proa_optimizer_free(opt);
    proa_layer_free(net);
    proa_loader_free(batches);
    proa_text_free(text);
    return proa_finish(stderr);
}
