/* Saves a model that gives the row sums of x [N, 3], for the tests of other languages. Usage: sums PREFIX */
#include <proa.h>

static proa_tensor *forward(proa_layer *self, proa_tensor *x)
{
    (void)self;
    return proa_sum(x, .axis = PROA_INTS(1));
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    proa_layer *net = proa_layer_new(sizeof *net, "sums", forward);
    proa_export(net, argv[1], PROA_INPUT(-1, 3));
    proa_layer_free(net);
    return proa_finish(stderr);
}
