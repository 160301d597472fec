/* oneDNN format tags of the blocked layouts of blocks.h. May use core only. */
#include "ops/conv/blocks.h"

#if PROA_HAVE_ONEDNN
#include <dnnl.h>

int proa__conv_image_format(void) { return dnnl_aBcd16b; }
int proa__conv_filter_format(void) { return dnnl_ABcd16b16a; }
#else
int proa__conv_image_format(void) { return 0; }
int proa__conv_filter_format(void) { return 0; }
#endif
