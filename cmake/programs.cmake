# Programs: the command, C tests (Check; linked statically, so that they see internals), the smoke test (no library but
# Proa), examples and benchmarks (linked as a user's program would be).
function(proa_program target file folder library)
    add_executable(${target} "${file}")
    get_filename_component(name "${file}" NAME_WE)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${folder}"
                                               OUTPUT_NAME ${name})
    target_link_libraries(${target} PRIVATE ${library} proa_flags)
    if(library STREQUAL "proa_static" AND PROA_HAVE_GLOO)
        set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX) # the archive hides its C++ from CMake
    endif()
endfunction()

# The `proa` command, a program on the public headers like a user's.
file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cli/*.c")
add_executable(proa_cli ${files})
set_target_properties(proa_cli PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin" OUTPUT_NAME proa)
target_link_libraries(proa_cli PRIVATE proa proa_flags)

if(PROA_BUILD_TESTS)
    enable_testing()
    file(GLOB smoke CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/smoke/*.c")
    foreach(file IN LISTS smoke)
        get_filename_component(name "${file}" NAME_WE)
        proa_program(test_${name} "${file}" tests proa_static)
        # On the example device: ops that it has no kernel for go through the CPU.
        add_test(NAME ${name}_example_device COMMAND test_${name} example:0)
        set_tests_properties(${name}_example_device PROPERTIES LABELS smoke ENVIRONMENT
            "FLAGS_device_plugins=$<TARGET_FILE:proa_example>;FLAGS_device_fallback=1")
        # Once at each CPU level: a level above this CPU's runs at this CPU's.
        foreach(level RANGE 2)
            add_test(NAME ${name}_level${level} COMMAND test_${name})
            set_tests_properties(${name}_level${level} PROPERTIES LABELS smoke
                                 ENVIRONMENT "FLAGS_cpu_level=${level}")
        endforeach()
    endforeach()
    if(CMAKE_CXX_COMPILER AND PROA_HAVE_PROTOBUF_C AND NOT CMAKE_CROSSCOMPILING) # Paddle's C++ interface, as users call it
        proa_program(test_paddle_infer "${PROJECT_SOURCE_DIR}/tests/c/test_paddle_infer.cc" tests proa)
        target_link_libraries(test_paddle_infer PRIVATE Threads::Threads)
        target_compile_options(test_paddle_infer PRIVATE -Wno-missing-field-initializers) # options structs
        add_test(NAME test_paddle_infer COMMAND test_paddle_infer)
        set_tests_properties(test_paddle_infer PROPERTIES LABELS c
            ENVIRONMENT "PROA_TEST_TMP=${PROJECT_BINARY_DIR}/tests/tmp")
    endif()
    if(NOT CMAKE_CROSSCOMPILING) # the library as a plug-in: dlopen, dlclose
        add_executable(test_unload "${PROJECT_SOURCE_DIR}/tests/c/unload/unload.c")
        set_target_properties(test_unload PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
        target_link_libraries(test_unload PRIVATE proa_flags Threads::Threads ${CMAKE_DL_LIBS})
        target_include_directories(test_unload PRIVATE $<TARGET_PROPERTY:proa,INTERFACE_INCLUDE_DIRECTORIES>)
        add_dependencies(test_unload proa)
        add_test(NAME test_unload COMMAND test_unload "$<TARGET_FILE:proa>")
        set_tests_properties(test_unload PROPERTIES LABELS c)
    endif()
    # Programs that Python tests start (and kill); they see internals.
    file(GLOB started CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/robustness/kill/*.c"
                                        "${PROJECT_SOURCE_DIR}/tests/autograd/*.c")
    foreach(file IN LISTS started)
        get_filename_component(name "${file}" NAME_WE)
        proa_program(started_${name} "${file}" tests proa_static)
        target_include_directories(started_${name} PRIVATE "${PROJECT_SOURCE_DIR}")
    endforeach()
    # Preloaded into programs that save: system calls that fail.
    add_library(proa_faults MODULE "${PROJECT_SOURCE_DIR}/tests/robustness/kill/preload/faults.c")
    set_target_properties(proa_faults PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests"
                          OUTPUT_NAME faults PREFIX lib C_VISIBILITY_PRESET default)
    proa_program(stress_planner "${PROJECT_SOURCE_DIR}/tests/fuzz/stress.c" tests proa_static)
    set_target_properties(stress_planner PROPERTIES OUTPUT_NAME stress_planner)
    target_sources(stress_planner PRIVATE "${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_planner.c")
    target_include_directories(stress_planner PRIVATE "${PROJECT_SOURCE_DIR}")
    add_test(NAME stress_planner COMMAND stress_planner 5000 1)
    if(PROA_CHECK_LIBRARY AND PROA_CHECK_INCLUDE)
        file(GLOB tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/c/test_*.c")
        if(NOT PROA_HAVE_PROTOBUF_C) # it loads models
            list(FILTER tests EXCLUDE REGEX "test_(capi|predictor|allocation_paths|packed_weights)")
        endif()
        foreach(file IN LISTS tests)
            get_filename_component(name "${file}" NAME_WE)
            proa_program(${name} "${file}" tests proa_static)
            target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/tests/c")
            target_include_directories(${name} SYSTEM PRIVATE "${PROA_CHECK_INCLUDE}")
            target_link_libraries(${name} PRIVATE proa_outside "${PROA_CHECK_LIBRARY}" rt)
            if(PROA_HAVE_GLOO AND name MATCHES "dist")
                target_compile_definitions(${name} PRIVATE PROA_HAVE_GLOO=1)
            endif()
            if(PROA_SUBUNIT_LIBRARY)
                target_link_libraries(${name} PRIVATE "${PROA_SUBUNIT_LIBRARY}")
            endif()
            if(name STREQUAL "test_threads") # libraries with OpenMP regions
                find_package(OpenMP QUIET COMPONENTS C)
                if(NOT TARGET OpenMP::OpenMP_C)
                    list(APPEND PROA_MISSING "OpenMP: no test_threads")
                    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
                    continue()
                endif()
                foreach(library user other)
                    add_library(openmp_${library} SHARED "${PROJECT_SOURCE_DIR}/tests/c/openmp/${library}.c")
                    target_include_directories(openmp_${library} PRIVATE "${PROJECT_SOURCE_DIR}/tests/c")
                    set_target_properties(openmp_${library} PROPERTIES C_STANDARD 11 C_VISIBILITY_PRESET default
                        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
                    target_link_libraries(openmp_${library} PRIVATE OpenMP::OpenMP_C)
                    target_link_libraries(${name} PRIVATE openmp_${library})
                endforeach()
            endif()
            if(name STREQUAL "test_dist_devices")
                if(NOT TARGET proa_several)
                    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
                    continue()
                endif()
                add_dependencies(${name} proa_several)
            endif()
            if(name STREQUAL "test_cuda_memory") # the plug-in's, which is C without CUDA
                target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/devices/cuda/memory.c")
            endif()
            if(name STREQUAL "test_cuda_dnn") # the installed library's functions, and their stand-ins
                if(NOT CMAKE_CXX_COMPILER)
                    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
                    continue()
                endif()
                target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/devices/cuda/dnn.c" ${cuda_emulated_driver})
            endif()
            if(name STREQUAL "test_cuda_emulator") # kernels as they are compiled for the emulator, which is tested
                if(NOT TARGET proa_cuda_emulated)
                    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
                    continue()
                endif()
                target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/devices/wrong.cc" ${cuda_emulated_driver})
                target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${cuda_emulated_options}>")
            endif()
            if(name STREQUAL "test_cuda_compiler") # the plug-in's text of chains, and NVRTC where it is installed
                target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/devices/cuda/fuse.c"
                    "${PROJECT_SOURCE_DIR}/devices/cuda/compiler.c" "${cuda_embedded}")
            endif()
            if(name MATCHES "device")
                target_compile_definitions(${name} PRIVATE PROA_TEST_DEVICES="${PROJECT_BINARY_DIR}/devices")
                add_dependencies(${name} proa_example)
            endif()
            add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
            set_tests_properties(${name} PROPERTIES LABELS c
                ENVIRONMENT "PROA_TEST_TMP=${PROJECT_BINARY_DIR}/tests/tmp")
            if(name MATCHES "cuda_compiler|dist_devices|dist_groups|allocation_paths")
                set_tests_properties(${name} PROPERTIES COST 10) # long: they come first, so that none runs alone at the end
            endif()
        endforeach()
        file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/tests/tmp")
    endif()
endif()

if(PROA_BUILD_EXAMPLES)
    file(GLOB examples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.c")
    foreach(file IN LISTS examples)
        get_filename_component(name "${file}" NAME_WE)
        # An example that defines ops has its table beside it: examples/custom_op.yaml.
        set(table "${PROJECT_SOURCE_DIR}/examples/${name}.yaml")
        if(EXISTS "${table}" AND no_yaml)
            list(APPEND PROA_MISSING "PyYAML: example ${name}, which generates an op, is left out")
            continue()
        endif()
        proa_program(example_${name} "${file}" examples proa)
        if(EXISTS "${table}")
            set(out "${PROJECT_BINARY_DIR}/gen/examples")
            add_custom_command(
                OUTPUT "${out}/${name}_ops.c" "${out}/${name}_ops.h" "${out}/${name}_ops_impl.h"
                COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/gen_ops.py" --plugin ${name}
                        --table "${PROJECT_SOURCE_DIR}/ops/table.yaml" --out "${out}" "${table}"
                DEPENDS "${table}" ${PROA_GENERATOR} VERBATIM)
            target_sources(example_${name} PRIVATE "${out}/${name}_ops.c")
            target_include_directories(example_${name} PRIVATE "${out}")
        endif()
    endforeach()
endif()

if(PROA_BUILD_BENCHMARKS)
    find_package(OpenMP QUIET COMPONENTS C) # the limits of the machine are measured with its threads
    file(GLOB benchmarks CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/benchmarks/*.c")
    foreach(file IN LISTS benchmarks)
        get_filename_component(name "${file}" NAME_WE)
        proa_program(bench_${name} "${file}" benchmarks proa)
        target_link_libraries(bench_${name} PRIVATE proa_outside $<TARGET_NAME_IF_EXISTS:OpenMP::OpenMP_C>)
    endforeach()
endif()

if(PROA_BUILD_FUZZERS)
    file(GLOB fuzzers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c")
    foreach(file IN LISTS fuzzers)
        get_filename_component(name "${file}" NAME_WE)
        proa_program(${name} "${file}" fuzz proa_static)
        target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    endforeach()
    file(GLOB cli CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cli/*.c")
    target_sources(fuzz_npz PRIVATE ${cli})
    target_compile_definitions(fuzz_npz PRIVATE main=cli_main)
endif()
