# The op table: runs tools/gen_ops.py over ops/*/*.yaml and jit's own (or takes the files a source archive ships in gen/),
# which also compares the committed include/proa/ops.h and ops/ with it (`make lock` writes them),
# and compiles the portable kernels once per CPU level. Sets PROA_GEN, the folder of generated files.
file(GLOB PROA_OP_TABLES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/ops/*/*.yaml" "${PROJECT_SOURCE_DIR}/jit/*/*.yaml")
set(front_tables "${PROJECT_SOURCE_DIR}/optim/schedules.yaml" "${PROJECT_SOURCE_DIR}/nn/initializers.yaml")
set(generator "${PROJECT_SOURCE_DIR}/tools/gen_ops.py")
set(PROA_GENERATOR "${generator}") # and what it imports
foreach(part schema headers tables formulas python optimizers expressions schedules initializers)
    list(APPEND PROA_GENERATOR "${PROJECT_SOURCE_DIR}/tools/gen_${part}.py")
endforeach()
set(products impl/dtype_lists.h ops_impl.h ops_table.c ops_calls.c optimizers.c optimizer_table.py schedules.inc schedule_rates.py initializers.h initializer_table.py kernels.h kernels_level.c formulas.inc formulas_cuda.inc py_api.inc ops.json)
# Modules of the Python package: generated file:where it goes below proa/.
set(PROA_MADE_MODULES optimizer_table.py:optimizer/table.py schedule_rates.py:optimizer/rates.py initializer_table.py:nn/initializer/table.py)

execute_process(COMMAND "${Python3_EXECUTABLE}" -c "import yaml" RESULT_VARIABLE no_yaml ERROR_QUIET)
if(EXISTS "${PROJECT_SOURCE_DIR}/gen/ops_table.c")
    set(PROA_GEN "${PROJECT_SOURCE_DIR}/gen")
    add_custom_target(proa_gen)
else()
    if(no_yaml)
        message(FATAL_ERROR "Building from git needs PyYAML for ${Python3_EXECUTABLE}: run tools/bootstrap, or "
                            "build from a source archive, which ships the generated files.")
    endif()
    set(PROA_GEN "${PROJECT_BINARY_DIR}/gen")
    foreach(table IN LISTS PROA_OP_TABLES)
        get_filename_component(family "${table}" DIRECTORY)
        get_filename_component(family "${family}" NAME)
        file(STRINGS "${table}" ops REGEX "^- op: ") # a family of composed ops alone has no header
        if(ops)
            list(APPEND products "impl/${family}.h")
        endif()
    endforeach()
    list(REMOVE_DUPLICATES products)
    list(TRANSFORM products PREPEND "${PROA_GEN}/" OUTPUT_VARIABLE outputs)
    set(layout core.h op.h wire.h)
    list(TRANSFORM layout PREPEND "${PROJECT_SOURCE_DIR}/include/proa/")
    file(GLOB committed CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/proa/ops.h" "${PROJECT_SOURCE_DIR}/include/proa/ops/*.h")
    # The generator leaves files that did not change alone; the stamp keeps the build from running it again.
    add_custom_command(
        OUTPUT "${PROA_GEN}/stamp" BYPRODUCTS ${outputs}
        COMMAND "${Python3_EXECUTABLE}" "${generator}" --table "${PROJECT_SOURCE_DIR}/ops/table.yaml"
                --out "${PROA_GEN}" ${PROA_OP_TABLES}
        COMMAND "${CMAKE_COMMAND}" -E touch "${PROA_GEN}/stamp"
        DEPENDS ${PROA_GENERATOR} "${PROJECT_SOURCE_DIR}/ops/table.yaml" ${PROA_OP_TABLES} ${front_tables} ${layout} ${committed}
        COMMENT "Generating the op table" VERBATIM)
    add_custom_target(proa_gen DEPENDS "${PROA_GEN}/stamp")
    set_source_files_properties(${outputs} PROPERTIES GENERATED TRUE)
endif()

# ---- CPU levels: name and flags of each; the best one is chosen at load ----
set(PROA_LEVELS base)
set(PROA_FLAGS_base "")
set(PROA_SPEED_base -O3)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    # For processors of before 2013, in every wheel: small. Alone, too: ccache then finds the objects of a build with all levels.
    set(PROA_SPEED_base -Os)
    set(PROA_SPEED_v3 -O3)
    set(PROA_SPEED_v4 -O3)
    set(PROA_FLAGS_v3 -march=x86-64-v3)
    # prefetchw, which the level's name does not cover: all its processors have it.
    set(PROA_FLAGS_v4 -march=x86-64-v4 -mprfchw -mprefer-vector-width=512)
    if(PROA_CPU_LEVELS STREQUAL "all")
        list(APPEND PROA_LEVELS v3 v4)
        target_compile_definitions(proa_flags INTERFACE PROA_HAVE_LEVELS=1)
    endif()
endif()

function(proa_folder_settings target)
    target_include_directories(${target} PRIVATE
        "${PROJECT_SOURCE_DIR}/include" "${PROA_GEN}" "${PROJECT_BINARY_DIR}/gen" "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${target} PRIVATE proa_flags proa_outside)
    add_dependencies(${target} proa_gen)
endfunction()

file(GLOB all_op_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/ops/*/cpu/*.c" "${PROJECT_SOURCE_DIR}/ops/*/*.c" "${PROJECT_SOURCE_DIR}/ops/*.c")
set(PROA_OP_FILES ${all_op_files})
set(level_files ${all_op_files})
set(level_pattern "/ops/[^/]+/cpu(_[^/]*|/[^/]+)?\\.c$") # cpu.c, cpu_<part>.c, cpu/<part>.c
list(FILTER level_files INCLUDE REGEX "${level_pattern}")
list(FILTER PROA_OP_FILES EXCLUDE REGEX "${level_pattern}")
if(NOT PROA_HAVE_ONEDNN)
    list(FILTER PROA_OP_FILES EXCLUDE REGEX "/ops/[^/]+/onednn[^/]*\\.c$")
endif()
if(NOT PROA_HAVE_OPENBLAS)
    list(FILTER PROA_OP_FILES EXCLUDE REGEX "/ops/[^/]+/openblas[^/]*\\.c$")
endif()

# Jump threading makes branches of a formula's clamps, which vectors pay for with comparisons and blends. Loops without formulas
# are up to a fifth slower without it: depthwise convolutions, the register tile of recurrent layers.
set(formula_files ${level_files})
list(FILTER formula_files INCLUDE REGEX "/ops/(elementwise|loss|softmax)/")
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    set_source_files_properties(${formula_files} PROPERTIES COMPILE_OPTIONS -fno-thread-jumps)
endif()
# Searches and lists rather than loops over elements: a quarter smaller, and as fast.
set(searching_files ${level_files})
list(FILTER searching_files INCLUDE REGEX "/ops/(crf|detection|graph|lod|sampling|sequence)/")
set_source_files_properties(${searching_files} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>")
set(PROA_OBJECT_TARGETS "")
foreach(level IN LISTS PROA_LEVELS)
    set(target proa_kernels_${level})
    add_library(${target} OBJECT ${level_files} "${PROA_GEN}/kernels_level.c")
    proa_folder_settings(${target})
    target_compile_definitions(${target} PRIVATE PROA_LEVEL=_${level})
    # Contraction lets a·b + c be one instruction where the level has it; nothing else may be reordered.
    # Without tables for unwinding (a fifteenth of the library): the trace of an error begins at the kernel's caller.
    target_compile_options(${target} PRIVATE ${PROA_FLAGS_${level}} -fopenmp-simd -ffp-contract=fast
                           $<$<CONFIG:Release>:-fno-asynchronous-unwind-tables>
                           $<$<CONFIG:Release,RelWithDebInfo>:${PROA_SPEED_${level}}>)
    list(APPEND PROA_OBJECT_TARGETS ${target})
endforeach()
