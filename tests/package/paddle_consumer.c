/* A program written for Paddle's C interface, built against the installed library: C99 and C++11. */
#include "pd_inference_api.h"

int main(void)
{
    PD_Config *config = PD_ConfigCreate();
    PD_ConfigDisableGlogInfo(config);
    PD_ConfigSetModel(config, "/no/model", "/no/params");
    PD_Predictor *predictor = PD_PredictorCreate(config);
    printf("%s", PD_GetVersion());
    PD_ConfigDestroy(config);
    return predictor == NULL ? 0 : 1;
}
