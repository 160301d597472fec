# The library: one object target a folder (in the order of docs/architecture.md), then libproa.so and libproa.a.
string(REPLACE ";" ", " PROA_FOUND_TEXT "${PROA_FOUND}")
set(without ${PROA_MISSING})
list(FILTER without EXCLUDE REGEX "^Check")
list(TRANSFORM without REPLACE ":.*" "")
string(REPLACE ";" ", " PROA_WITHOUT_TEXT "${without}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/build_info.h.in" "${PROJECT_BINARY_DIR}/gen/build_info.h" @ONLY)

set(PROA_FOLDERS core kernels ops profile autograd nn optim amp jit io extension dist inference)
foreach(folder IN LISTS PROA_FOLDERS)
    if(folder STREQUAL "ops")
        set(files ${PROA_OP_FILES} "${PROA_GEN}/ops_table.c" "${PROA_GEN}/ops_calls.c" "${PROA_GEN}/optimizers.c")
    else()
        file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.c")
        if(folder STREQUAL "jit") # in rooms; inference/capi/ is a library of its own
            file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/jit/*/*.c")
        elseif(folder STREQUAL "io")
            file(GLOB onnx_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/io/onnx/*.c")
            list(APPEND files ${onnx_files})
        elseif(folder STREQUAL "dist")
            file(GLOB ps_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/dist/ps/*.c")
            list(APPEND files ${ps_files})
        endif()
    endif()
    if(folder STREQUAL "dist" AND PROA_HAVE_GLOO)
        file(GLOB shims CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/dist/*.cc")
        list(APPEND files ${shims})
    endif()
    if(folder STREQUAL "io" AND PROA_HAVE_PROTOBUF_C)
        foreach(format framework onnx)
            set(proto "${PROJECT_SOURCE_DIR}/io/${format}.proto")
            set(pb "${PROJECT_BINARY_DIR}/gen/${format}.pb-c")
            add_custom_command(
                OUTPUT "${pb}.c" "${pb}.h"
                COMMAND "${PROA_PROTOC_C}" "--proto_path=${PROJECT_SOURCE_DIR}/io" "--c_out=${PROJECT_BINARY_DIR}/gen" "${proto}"
                DEPENDS "${proto}" COMMENT "Generating ${format}.pb-c.c" VERBATIM)
            set_source_files_properties("${pb}.c" PROPERTIES COMPILE_OPTIONS "-w")
            list(APPEND files "${pb}.c" "${pb}.h")
        endforeach()
    endif()
    if(files)
        add_library(proa_${folder} OBJECT ${files})
        proa_folder_settings(proa_${folder})
        if(folder STREQUAL "dist" AND PROA_HAVE_GLOO)
            target_compile_definitions(proa_dist PRIVATE PROA_HAVE_GLOO=1)
        endif()
        if(folder MATCHES "^(ops|jit|io)$") # no loops over elements, and in every wheel: small
            target_compile_options(proa_${folder} PRIVATE $<$<CONFIG:Release,RelWithDebInfo>:-O2>)
        endif()
        list(APPEND PROA_OBJECT_TARGETS proa_${folder})
        if(folder MATCHES "^(core|autograd|amp)$")
            set_target_properties(proa_${folder} PROPERTIES PROA_DISPATCHES ON)
        endif()
    endif()
endforeach()
# Files that a program runs once, as readers and writers of models and passes over programs: the wheel is full.
file(GLOB once_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/ops/*/wire*.c" "${PROJECT_SOURCE_DIR}/ops/composed/*.c"
     "${PROJECT_SOURCE_DIR}/jit/passes/*.c" "${PROJECT_SOURCE_DIR}/io/onnx/*.c" "${PROJECT_SOURCE_DIR}/io/read_*.c"
     "${PROJECT_SOURCE_DIR}/io/write_*.c" "${PROJECT_SOURCE_DIR}/io/program_*.c")
set_source_files_properties(${once_files} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-Os>")
# Loops of a few instructions, whose speed depends on where they lie: a reversed copy took 1.4 times as long across two
# lines.
set_source_files_properties("${PROJECT_SOURCE_DIR}/core/copy.c" PROPERTIES COMPILE_OPTIONS "-falign-loops=64")

set(objects "")
foreach(target IN LISTS PROA_OBJECT_TARGETS)
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
endforeach()
# Paddle's C interface, over proa/inference.h: a library of its own, and part of the archive.
file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/inference/capi/*.c")
add_library(proa_capi OBJECT ${files})
proa_folder_settings(proa_capi)
add_library(proa SHARED ${objects})
# Calls inside the library go straight to their target, not through its table of exported names.
target_link_options(proa PRIVATE -Wl,-Bsymbolic-functions)
# Threads that end later than a dlclose run destructors that lie in the library.
target_link_options(proa PRIVATE -Wl,-z,nodelete)
target_link_options(proa PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map")
set_target_properties(proa PROPERTIES LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/exports.map")
if(NOT PROA_SANITIZE)
    target_link_options(proa PRIVATE -Wl,-z,defs) # a name nobody defines is an error here, not at load
endif()
set_target_properties(proa PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
# The archive holds one object: doors and kernels are installed by constructors, and a linker takes from an
# archive only the members that somebody names.
set(whole "${PROJECT_BINARY_DIR}/proa.o")
add_custom_command(OUTPUT "${whole}"
    COMMAND "${CMAKE_C_COMPILER}" -r -nostdlib -o "${whole}" ${objects} $<TARGET_OBJECTS:proa_capi>
    DEPENDS ${objects} $<TARGET_OBJECTS:proa_capi> COMMAND_EXPAND_LISTS VERBATIM COMMENT "Joining the objects of libproa.a")
add_library(proa_static STATIC "${whole}")
set_source_files_properties("${whole}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
add_dependencies(proa_static ${PROA_OBJECT_TARGETS} proa_capi) # Makefiles need it said: the objects first
set_target_properties(proa_static PROPERTIES OUTPUT_NAME proa LINKER_LANGUAGE C)

# PRIVATE: a program that links libproa.so needs none of these; for libproa.a CMake passes them on.
foreach(target IN ITEMS proa proa_static)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:proa_outside> $<BUILD_INTERFACE:Threads::Threads> m
                          ${CMAKE_DL_LIBS})
    target_include_directories(${target} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROA_GEN}>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    add_dependencies(${target} proa_gen)
    if(PROA_HAVE_GLOO)
        set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
    endif()
endforeach()
add_library(paddle_inference_c SHARED $<TARGET_OBJECTS:proa_capi>)
target_link_libraries(paddle_inference_c PUBLIC proa)
target_include_directories(paddle_inference_c PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/paddle/fluid/inference/capi_exp>)
add_library(Proa::paddle_inference_c ALIAS paddle_inference_c)
add_library(Proa::proa ALIAS proa)
add_library(Proa::proa_static ALIAS proa_static)
