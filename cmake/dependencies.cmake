# What Proa uses from outside. Each library is optional: found, it becomes a link target in proa_outside and
# PROA_HAVE_<NAME>=1 for every file; missing, a portable fallback stands in and the summary says so.
add_library(proa_outside INTERFACE)
set(PROA_FOUND "")   # "name version" of what was found, for build_info.h and the summary
set(PROA_MISSING "") # "name: what is missing without it"
set(PROA_PRIVATE_LIBS "-lm -lpthread") # what a program that links libproa.a needs besides: for proa.pc

function(proa_found name text)
    if(NOT name STREQUAL "GLOO") # dist/ alone asks for it: the other objects are the same with and without
        target_compile_definitions(proa_outside INTERFACE PROA_HAVE_${name}=1)
    endif()
    set(PROA_HAVE_${name} 1 PARENT_SCOPE)
    list(APPEND PROA_FOUND "${text}")
    set(PROA_FOUND "${PROA_FOUND}" PARENT_SCOPE)
endfunction()
function(proa_missing text)
    list(APPEND PROA_MISSING "${text}")
    set(PROA_MISSING "${PROA_MISSING}" PARENT_SCOPE)
endfunction()

# tools/bootstrap's environment, when there is one: its Python runs the generator.
set(venv "${PROJECT_SOURCE_DIR}/.venv")
if(EXISTS "${venv}/bin/python" AND NOT Python3_EXECUTABLE)
    set(Python3_EXECUTABLE "${venv}/bin/python")
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
# PyPI's oneDNN lies where that Python's packages are: in bootstrap's environment, or in pip's for one wheel.
execute_process(
    COMMAND "${Python3_EXECUTABLE}" -c "import importlib.metadata as m, os
print(os.path.realpath(m.distribution('onednn-devel-cpu-gomp').locate_file('../../..')), end='')"
    OUTPUT_VARIABLE PROA_ONEDNN_PREFIX ERROR_QUIET)
if(PROA_ONEDNN_PREFIX AND NOT CMAKE_CROSSCOMPILING)
    list(PREPEND CMAKE_PREFIX_PATH "${PROA_ONEDNN_PREFIX}")
endif()

include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
endif()

# ---- OpenMP's simd pragmas, by which sums are vectorized. Threads are core/team.c's ----
target_compile_options(proa_outside INTERFACE -fopenmp)

# ---- oneDNN 3: convolution, pooling, normalization, matmul ----
if(PROA_WITH_ONEDNN)
    find_package(dnnl 3 QUIET CONFIG)
endif()
if(TARGET DNNL::dnnl)
    proa_found(ONEDNN "oneDNN ${dnnl_VERSION}")
    get_filename_component(folder "${dnnl_DIR}/../.." ABSOLUTE)
    string(APPEND PROA_PRIVATE_LIBS " -L${folder} -ldnnl")
    target_link_libraries(proa_outside INTERFACE DNNL::dnnl)
    # No system's library: what is installed carries a copy.
    if(PROA_ONEDNN_PREFIX AND folder STREQUAL "${PROA_ONEDNN_PREFIX}/lib")
        set(PROA_ONEDNN_TO_COPY "${folder}/libdnnl.so.${dnnl_VERSION_MAJOR}")
    endif()
else()
    proa_missing("oneDNN 3: portable convolution, pooling and normalization")
endif()

# ---- OpenBLAS: second choice for matmul; the LAPACK that it carries for linear algebra. The OpenMP variant runs on
# our threads ----
if(PROA_WITH_OPENBLAS)
    set(arch "${CMAKE_LIBRARY_ARCHITECTURE}")
    find_library(PROA_OPENBLAS_LIBRARY openblas PATH_SUFFIXES ${arch}/openblas-openmp openblas-openmp)
    find_path(PROA_OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES ${arch}/openblas-openmp openblas-openmp openblas)
    if(PROA_OPENBLAS_INCLUDE AND EXISTS "${PROA_OPENBLAS_INCLUDE}/openblas_config.h")
        file(STRINGS "${PROA_OPENBLAS_INCLUDE}/openblas_config.h" text REGEX "OPENBLAS_VERSION")
        string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" PROA_OPENBLAS_VERSION "${text}")
    endif()
    if(PROA_OPENBLAS_LIBRARY)
        include(CheckFunctionExists)
        set(CMAKE_REQUIRED_LIBRARIES "${PROA_OPENBLAS_LIBRARY}")
        check_function_exists(dgesdd_ PROA_OPENBLAS_LAPACK)
        unset(CMAKE_REQUIRED_LIBRARIES)
    endif()
endif()
if(PROA_OPENBLAS_LIBRARY AND PROA_OPENBLAS_VERSION AND PROA_OPENBLAS_LAPACK)
    proa_found(OPENBLAS "OpenBLAS ${PROA_OPENBLAS_VERSION}")
    target_include_directories(proa_outside SYSTEM INTERFACE "${PROA_OPENBLAS_INCLUDE}")
    target_link_libraries(proa_outside INTERFACE "${PROA_OPENBLAS_LIBRARY}")
    string(APPEND PROA_PRIVATE_LIBS " ${PROA_OPENBLAS_LIBRARY}")
else()
    proa_missing("OpenBLAS with LAPACK: matmul through oneDNN or the portable kernels, linear algebra through those")
endif()

# ---- protobuf-c: Paddle's program format ----
if(PROA_WITH_PROTOBUF_C)
    find_library(PROA_PROTOBUF_C_LIBRARY protobuf-c)
    find_path(PROA_PROTOBUF_C_INCLUDE protobuf-c/protobuf-c.h)
    find_program(PROA_PROTOC_C protoc-c)
endif()
if(PROA_PROTOBUF_C_LIBRARY AND PROA_PROTOBUF_C_INCLUDE AND PROA_PROTOC_C)
    file(STRINGS "${PROA_PROTOBUF_C_INCLUDE}/protobuf-c/protobuf-c.h" text REGEX "PROTOBUF_C_VERSION[ \t]+\"")
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${text}")
    proa_found(PROTOBUF_C "protobuf-c ${version}")
    target_include_directories(proa_outside SYSTEM INTERFACE "${PROA_PROTOBUF_C_INCLUDE}")
    target_link_libraries(proa_outside INTERFACE "${PROA_PROTOBUF_C_LIBRARY}")
    string(APPEND PROA_PRIVATE_LIBS " ${PROA_PROTOBUF_C_LIBRARY}")
else()
    proa_missing("protobuf-c: no reading and writing of .pdmodel")
endif()

# ---- Gloo: several processes on CPUs ----
if(PROA_WITH_GLOO AND CMAKE_CXX_COMPILER)
    find_library(PROA_GLOO_LIBRARY gloo)
    find_path(PROA_GLOO_INCLUDE gloo/rendezvous/file_store.h)
endif()
if(PROA_GLOO_LIBRARY AND PROA_GLOO_INCLUDE)
    file(STRINGS "${PROA_GLOO_INCLUDE}/gloo/config.h" text REGEX "GLOO_VERSION_(MAJOR|MINOR|PATCH) [0-9]+$")
    string(REGEX REPLACE "[^0-9;]+" "" text "${text}")
    string(REPLACE ";" "." text "${text}")
    proa_found(GLOO "Gloo ${text}")
    target_include_directories(proa_outside SYSTEM INTERFACE "${PROA_GLOO_INCLUDE}")
    target_link_libraries(proa_outside INTERFACE "${PROA_GLOO_LIBRARY}")
    string(APPEND PROA_PRIVATE_LIBS " ${PROA_GLOO_LIBRARY} -lstdc++")
else()
    proa_missing("Gloo: process groups on one host only")
endif()

# ---- Check: the C tests ----
if(PROA_BUILD_TESTS)
    find_library(PROA_CHECK_LIBRARY NAMES check)
    find_path(PROA_CHECK_INCLUDE check.h)
    find_library(PROA_SUBUNIT_LIBRARY subunit)
    if(NOT PROA_CHECK_LIBRARY OR NOT PROA_CHECK_INCLUDE)
        proa_missing("Check: of the C tests only the smoke test is built")
    endif()
endif()
