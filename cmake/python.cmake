# The Python package in build/python/proa: the extension module proa._core and the .py files beside it.
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python-bindings/src/*.c")
if(NOT PROA_WITH_PYTHON OR CMAKE_CROSSCOMPILING OR NOT sources)
    return()
endif()
execute_process(
    COMMAND "${Python3_EXECUTABLE}" -c
            "import sysconfig as s; print(s.get_path('include') + ';' + s.get_config_var('EXT_SUFFIX'), end='')"
    OUTPUT_VARIABLE found)
list(GET found 0 include)
list(GET found 1 suffix)
if(NOT EXISTS "${include}/Python.h")
    list(APPEND PROA_MISSING "Python headers of ${Python3_EXECUTABLE}: no Python package")
    return()
endif()
set(PROA_HAVE_PYTHON 1)
set(package "${PROJECT_BINARY_DIR}/python/proa")
add_library(proa_core_ext MODULE ${sources})
set_target_properties(proa_core_ext PROPERTIES PREFIX "" OUTPUT_NAME _core SUFFIX "${suffix}"
                      LIBRARY_OUTPUT_DIRECTORY "${package}")
target_include_directories(proa_core_ext PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/gen")
target_include_directories(proa_core_ext SYSTEM PRIVATE "${include}")
target_link_libraries(proa_core_ext PRIVATE proa proa_flags ${CMAKE_DL_LIBS})
if(PROA_BUILD_BENCHMARKS) # what a call into C costs when it does nothing: benchmarks/overhead.py
    add_library(bench_bare_call MODULE "${PROJECT_SOURCE_DIR}/benchmarks/extension/bare_call.c")
    set_target_properties(bench_bare_call PROPERTIES PREFIX "" OUTPUT_NAME bare_call SUFFIX "${suffix}"
                          LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/benchmarks")
    target_include_directories(bench_bare_call SYSTEM PRIVATE "${include}")
    target_link_libraries(bench_bare_call PRIVATE proa_flags)
endif()

file(GLOB_RECURSE modules RELATIVE "${PROJECT_SOURCE_DIR}/python-bindings/proa" CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/python-bindings/proa/*.py")
set(copies "")
foreach(module IN LISTS modules)
    add_custom_command(OUTPUT "${package}/${module}"
        COMMAND "${CMAKE_COMMAND}" -E copy "${PROJECT_SOURCE_DIR}/python-bindings/proa/${module}"
                "${package}/${module}"
        DEPENDS "${PROJECT_SOURCE_DIR}/python-bindings/proa/${module}" VERBATIM)
    list(APPEND copies "${package}/${module}")
endforeach()
foreach(made IN LISTS PROA_MADE_MODULES) # file in PROA_GEN:module
    string(REPLACE ":" ";" made "${made}")
    list(GET made 0 from)
    list(GET made 1 module)
    add_custom_command(OUTPUT "${package}/${module}"
        COMMAND "${CMAKE_COMMAND}" -E copy "${PROA_GEN}/${from}" "${package}/${module}"
        DEPENDS proa_gen "${PROA_GEN}/${from}" VERBATIM)
    list(APPEND copies "${package}/${module}")
endforeach()
# A module whose source is gone would still be imported.
file(GLOB_RECURSE stale "${package}/*.py")
list(REMOVE_ITEM stale ${copies})
foreach(module IN LISTS stale)
    file(REMOVE "${module}" "${module}i")
endforeach()
# What C code needs to use the same library: paddle.sysconfig.get_include() and get_lib().
file(GLOB headers RELATIVE "${PROJECT_SOURCE_DIR}/include" CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/include/*.h" "${PROJECT_SOURCE_DIR}/include/proa/*.h"
     "${PROJECT_SOURCE_DIR}/include/proa/ops/*.h"
     "${PROJECT_SOURCE_DIR}/include/paddle/*.h" "${PROJECT_SOURCE_DIR}/include/paddle/extension/*.h")
foreach(header IN LISTS headers)
    configure_file("${PROJECT_SOURCE_DIR}/include/${header}" "${package}/include/${header}" COPYONLY)
endforeach()
# Type stubs, from the package as it was just built; py.typed says that they are all there.
add_custom_command(OUTPUT "${package}/py.typed"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${package}/libs"
    COMMAND "${CMAKE_COMMAND}" -E create_symlink "../../../$<TARGET_SONAME_FILE_NAME:proa>"
            "${package}/libs/$<TARGET_SONAME_FILE_NAME:proa>"
    COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/gen_stubs.py" "${PROJECT_BINARY_DIR}/python"
    DEPENDS ${copies} proa_core_ext "${PROJECT_SOURCE_DIR}/tools/gen_stubs.py"
    COMMENT "Writing type stubs" VERBATIM)
add_custom_target(proa_python ALL DEPENDS ${copies} "${package}/py.typed" proa_core_ext)
