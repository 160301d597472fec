/* Which of oneDNN's layouts small.h means. May use core only. */
#include "ops/conv/small.h"

#if PROA_HAVE_ONEDNN
#include <dnnl.h>

int proa__small_image_format(void) { return dnnl_aBcd16b; }
int proa__small_filter_format(void) { return dnnl_ABcd16b16a; }
#else
int proa__small_image_format(void) { return 0; }
int proa__small_filter_format(void) { return 0; }
#endif
