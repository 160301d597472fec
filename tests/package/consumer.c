/* A program of somebody else's, built against the installed Proa alone: header, library, pkg-config file.
 * Compiled as C11 and as C++17. */
#include <proa.h>

#include <stdio.h>

int main(void)
{
    const float x[] = {1, 2, 3, 4}, y[] = {5, 6, 7, 8};
    const int64_t sizes[] = {2, 2};
    proa_ints shape = {2, sizes, NULL, NULL};
    proa_tensor *product =
        proa_matmul(proa_from_data(x, shape, PROA_F32), proa_from_data(y, shape, PROA_F32));
    float out[4] = {0, 0, 0, 0};
    if (proa_copy_out(product, out, sizeof out) != PROA_OK) return proa_finish(stderr);
    printf("proa %s: %g %g %g %g\n", proa_version(), (double)out[0], (double)out[1], (double)out[2],
           (double)out[3]);
    if (out[0] != 19 || out[1] != 22 || out[2] != 43 || out[3] != 50) return 1;
    return proa_finish(stderr);
}
