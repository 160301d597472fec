# Compiler flags: proa_flags (an interface target) is what every file of Proa is compiled with.
add_library(proa_flags INTERFACE)
target_compile_definitions(proa_flags INTERFACE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE)
target_compile_options(proa_flags INTERFACE
    -Wall -Wextra -Wshadow -Wconversion
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
    # errno and floating-point traps are never read, which frees the vectorizer; infinities, NaNs and the
    # order of sums stay as written, so -ffast-math is out.
    -fno-math-errno -fno-trapping-math
    # A function begins on a cache line, so that its speed does not depend on the size of the code before it: on Zen 4
    # ResNet-50 takes 7 % longer without. The way of an op call (PROA_DISPATCHES) is thirty short functions, which
    # half lines keep close together: there whole lines cost a recorded call 10 %.
    -falign-functions=$<IF:$<BOOL:$<TARGET_PROPERTY:PROA_DISPATCHES>>,32,64>
    $<$<C_COMPILER_ID:GNU>:-fno-semantic-interposition>)
if(PROA_WERROR)
    target_compile_options(proa_flags INTERFACE -Werror)
endif()
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    # Converting an int to float and back is what kernels do; GCC's -Wconversion does not warn there.
    target_compile_options(proa_flags INTERFACE -Wno-implicit-int-float-conversion -Wno-sign-conversion)
    # It does not know GCC's loop pragmas, warns where it does not vectorize a loop as asked, and of nested
    # initializers that leave fields out on purpose.
    target_compile_options(proa_flags INTERFACE -Wno-unknown-pragmas -Wno-pass-failed
                           -Wno-missing-field-initializers)
endif()

if(PROA_SANITIZE)
    set(flags -fsanitize=${PROA_SANITIZE} -fno-omit-frame-pointer)
    if(PROA_SANITIZE MATCHES "undefined")
        list(APPEND flags -fno-sanitize-recover=undefined)
    endif()
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
        list(APPEND flags -Wno-maybe-uninitialized) # GCC loses track in instrumented code
    endif()
    add_compile_options(${flags})
    add_link_options(${flags})
endif()

find_package(Threads REQUIRED)
target_link_libraries(proa_flags INTERFACE Threads::Threads m ${CMAKE_DL_LIBS})
