/* A program written for Paddle's C++ interface, built against the installed library as C++11. */
#include "paddle_inference_api.h"

int main()
{
    try {
        paddle_infer::Config config("/no/model", "/no/params");
        paddle_infer::CreatePredictor(config);
    } catch (const std::exception &error) {
        std::printf("%s\n", error.what());
        return 0;
    }
    return 1;
}
