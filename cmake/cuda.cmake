# The CUDA plug-in, in two forms from one source: libproa_cuda.so by nvcc, and libproa_cuda_emulated.so by the C++ compiler
# against devices/cuda/emulate, which runs kernels on the host and is for tests alone.
option(PROA_WITH_CUDA "Build the CUDA plug-in where nvcc is found" OFF)
option(PROA_WITH_CUDA_EMULATOR "Build the CUDA kernels for the host, for tests" OFF)
# By default those of this machine's GPUs, else that of Hopper.
set(cuda_here "")
find_program(PROA_NVIDIA_SMI nvidia-smi)
mark_as_advanced(PROA_NVIDIA_SMI)
if(PROA_WITH_CUDA AND PROA_NVIDIA_SMI)
    execute_process(COMMAND "${PROA_NVIDIA_SMI}" --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE cuda_here ERROR_QUIET)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]+" cuda_here "${cuda_here}")
    list(REMOVE_DUPLICATES cuda_here)
    string(REPLACE "." "" cuda_here "${cuda_here}")
endif()
if(NOT cuda_here)
    set(cuda_here 90)
endif()
set(PROA_CUDA_ARCHITECTURES "${cuda_here}" CACHE STRING "GPU architectures: 80;90, or 90-virtual for PTX")

file(GLOB cuda_kernels CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/ops/*/cuda*.cu"
     "${PROJECT_SOURCE_DIR}/ops/*/cuda/*.cu")
set(cuda_runtime devices/cuda/runtime.c devices/cuda/memory.c devices/cuda/plugin.c devices/cuda/record.c
                 devices/cuda/transfer.c devices/cuda/fuse.c devices/cuda/module.c devices/cuda/module_file.c
                 devices/cuda/communicator.c)
list(TRANSFORM cuda_runtime PREPEND "${PROJECT_SOURCE_DIR}/")

# What sources that are compiled at run time include, as text.
file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/devices/cuda/device.h"
     "${PROJECT_SOURCE_DIR}/devices/cuda/approximate.h"
     "${PROJECT_SOURCE_DIR}/kernels/scalar_*.h" "${PROJECT_SOURCE_DIR}/kernels/activations*.h" "${PROJECT_SOURCE_DIR}/ops/elementwise/formulas*.h"
     "${PROJECT_SOURCE_DIR}/ops/elementwise/cuda/fused*.h" "${PROJECT_SOURCE_DIR}/ops/elementwise/cuda/numbers.h"
     "${PROJECT_SOURCE_DIR}/ops/elementwise/cuda/halves.h")
set(cuda_headers "")
foreach(file IN LISTS files)
    file(RELATIVE_PATH part "${PROJECT_SOURCE_DIR}" "${file}")
    list(APPEND cuda_headers "${part}")
endforeach()
set(cuda_embedded "${PROJECT_BINARY_DIR}/gen/cuda_headers.c")
add_custom_command(OUTPUT "${cuda_embedded}"
    COMMAND "${CMAKE_COMMAND}" "-DOUT=${cuda_embedded}" "-DROOT=${PROJECT_SOURCE_DIR}"
            -P "${PROJECT_SOURCE_DIR}/cmake/embed.cmake" -- ${cuda_headers}
    DEPENDS ${files} "${PROJECT_SOURCE_DIR}/cmake/embed.cmake" VERBATIM)

# What the C++ dialect of CUDA is not clean of: sign and width conversions are what kernels do.
set(cuda_warnings -Wall -Wextra -Wno-clobbered -Wno-missing-field-initializers -Wno-unused-function -Wno-unknown-pragmas -Wno-unused-parameter)
if(PROA_WERROR)
    list(APPEND cuda_warnings -Werror)
endif()

function(proa_cuda_device name)
    proa_device(${name} ${cuda_runtime} "${cuda_embedded}" ${ARGN})
    target_include_directories(proa_${name} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_compile_definitions(proa_${name} PRIVATE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE)
    target_compile_options(proa_${name} PRIVATE
        "$<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wshadow;-Wconversion;-Wstrict-prototypes>")
    target_link_libraries(proa_${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

# The emulator's driver (tests/c/test_cuda_dnn.c needs it, too); what chains are compiled with while a test runs.
set(cuda_emulated_driver compiler.cc dnn.cc driver.cc fibers.cc)
list(TRANSFORM cuda_emulated_driver PREPEND "${PROJECT_SOURCE_DIR}/devices/cuda/emulate/")
set_source_files_properties("${PROJECT_SOURCE_DIR}/devices/cuda/emulate/compiler.cc" PROPERTIES
    COMPILE_DEFINITIONS "EMULATE_CXX=\"${CMAKE_CXX_COMPILER}\";EMULATE_ROOT=\"${PROJECT_SOURCE_DIR}\"")

# Devices of tests/c/test_dist_devices.c: the plug-in's communicators over the emulator's driver and its stand-in for NCCL.
if(PROA_BUILD_TESTS AND CMAKE_CXX_COMPILER AND NOT CMAKE_CROSSCOMPILING)
    proa_device(several "${PROJECT_SOURCE_DIR}/tests/devices/several.c" "${PROJECT_SOURCE_DIR}/devices/cuda/communicator.c"
                        "${PROJECT_SOURCE_DIR}/devices/cuda/emulate/nccl.cc" ${cuda_emulated_driver})
    target_include_directories(proa_several PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(proa_several PRIVATE proa_flags)
endif()

# A GPU faults where an access to memory is not aligned to its type; so does what is compiled so.
set(cuda_emulated_options ${cuda_warnings} -O1 -fsanitize=alignment -fsanitize-undefined-trap-on-error
    "SHELL:-include \"${PROJECT_SOURCE_DIR}/devices/cuda/emulate/cuda.h\"")
if(PROA_WITH_CUDA_EMULATOR AND CMAKE_CXX_COMPILER)
    file(GLOB emulate CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/devices/cuda/emulate/*.cc")
    # A .cu file as C++: a file of one line includes it, so that no rule for CUDA is asked for.
    set(copies "")
    foreach(file IN LISTS cuda_kernels ITEMS "${PROJECT_SOURCE_DIR}/devices/cuda/copy.cu"
                                             "${PROJECT_SOURCE_DIR}/devices/cuda/convolution.cu"
                                             "${PROJECT_SOURCE_DIR}/devices/cuda/sort.cu")
        file(RELATIVE_PATH part "${PROJECT_SOURCE_DIR}" "${file}")
        string(REPLACE "/" "_" part "${part}")
        set(copy "${PROJECT_BINARY_DIR}/gen/emulated/${part}.cc")
        file(CONFIGURE OUTPUT "${copy}" CONTENT "#include \"${file}\"\n" @ONLY)
        list(APPEND copies "${copy}")
    endforeach()
    proa_cuda_device(cuda_emulated ${copies} ${emulate})
    target_compile_options(proa_cuda_emulated PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${cuda_emulated_options}>")
endif()

if(PROA_WITH_CUDA)
    find_program(PROA_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_PATH PATH_SUFFIXES bin)
    if(NOT PROA_NVCC)
        list(APPEND PROA_MISSING "nvcc: no CUDA plug-in (libproa_cuda.so)")
        return()
    endif()
    set(CMAKE_CUDA_COMPILER "${PROA_NVCC}")
    set(CMAKE_CUDA_ARCHITECTURES "${PROA_CUDA_ARCHITECTURES}")
    if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
        set(CMAKE_CUDA_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
    endif()
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 17)
    find_package(CUDAToolkit REQUIRED)
    list(APPEND PROA_FOUND "CUDA ${CUDAToolkit_VERSION}")
    file(GLOB libraries CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/devices/cuda/*.cu")
    proa_cuda_device(cuda ${cuda_kernels} ${libraries} "${PROJECT_SOURCE_DIR}/devices/cuda/dnn.c"
                     "${PROJECT_SOURCE_DIR}/devices/cuda/compiler.c" "${PROJECT_SOURCE_DIR}/devices/cuda/nccl.c")
    string(REPLACE ";" " " made_for "${PROA_CUDA_ARCHITECTURES}")
    set_source_files_properties("${PROJECT_SOURCE_DIR}/devices/cuda/driver.cu" PROPERTIES
        COMPILE_DEFINITIONS "MADE_FOR=\"${made_for}\"")
    # cuDNN is opened at run time; its headers, where they are, check our declarations of it.
    find_path(PROA_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(PROA_CUDNN_INCLUDE)
        set_source_files_properties("${PROJECT_SOURCE_DIR}/devices/cuda/dnn.c" PROPERTIES
            COMPILE_DEFINITIONS PROA_CUDNN_HEADERS INCLUDE_DIRECTORIES "${PROA_CUDNN_INCLUDE};${CUDAToolkit_INCLUDE_DIRS}")
        list(APPEND PROA_FOUND "cuDNN's headers (the library is looked for at run time)")
    else()
        list(APPEND PROA_MISSING "cuDNN's headers: convolutions on a GPU are not checked against them")
    endif()
    # So is NCCL.
    find_path(PROA_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(PROA_NCCL_INCLUDE)
        set_source_files_properties("${PROJECT_SOURCE_DIR}/devices/cuda/nccl.c" PROPERTIES
            COMPILE_DEFINITIONS PROA_NCCL_HEADERS INCLUDE_DIRECTORIES "${PROA_NCCL_INCLUDE};${CUDAToolkit_INCLUDE_DIRS}")
        list(APPEND PROA_FOUND "NCCL's header (the library is looked for at run time)")
    else()
        list(APPEND PROA_MISSING "NCCL's header: collectives between GPUs are not checked against it")
    endif()
    # Positions and sums of bytes are to the bit.
    set_source_files_properties("${PROJECT_SOURCE_DIR}/ops/vision/cuda/interpolate.cu" PROPERTIES COMPILE_OPTIONS -fmad=false)
    string(REPLACE ";" "," host_warnings "${cuda_warnings}")
    target_compile_options(proa_cuda PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${host_warnings};--expt-relaxed-constexpr;-diag-suppress=177,550>")
    if(PROA_WERROR)
        target_compile_options(proa_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings>)
    endif()
    target_link_libraries(proa_cuda PRIVATE CUDA::cublasLt)
    set_target_properties(proa_cuda PROPERTIES CUDA_STANDARD 17 CUDA_RUNTIME_LIBRARY Static)
endif()
