/* A library that calls a function of OpenMP's which Proa does not serve: it must be left with libgomp. */
#include "openmp/user.h"

#include <omp.h>

double other_clock(void)
{
    double sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
    sum += omp_get_wtime() + omp_get_num_threads();
    return sum;
}
