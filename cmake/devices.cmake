# Device plug-ins: modules that libproa loads at run time; they link nothing of it. In build/devices/.
function(proa_device name)
    add_library(proa_${name} MODULE ${ARGN})
    set_target_properties(proa_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/devices")
    target_include_directories(proa_${name} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROA_GEN}")
    add_dependencies(proa_${name} proa_gen)
endfunction()

proa_device(example "${PROJECT_SOURCE_DIR}/devices/example/example.c")
target_link_libraries(proa_example PRIVATE proa_flags)
