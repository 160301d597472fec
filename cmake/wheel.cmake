# What goes into the wheel (pyproject.toml; scikit-build-core installs component `python` into site-packages):
# the package, libproa and PyPI's oneDNN in proa/libs, the headers for C code in proa/include. The rest that
# libproa needs is auditwheel's matter: tools/wheel_backend.py.
if(PROA_WITH_CUDA)
    # devices/cuda/pyproject.toml: the plug-in alone, beside libproa; NVIDIA's libraries are wheels of theirs.
    if(NOT TARGET proa_cuda)
        message(FATAL_ERROR "A wheel of the CUDA plug-in needs nvcc")
    endif()
    set_target_properties(proa_cuda PROPERTIES
        INSTALL_RPATH "$ORIGIN/../../nvidia/cu13/lib:$ORIGIN/../../nvidia/cudnn/lib" INSTALL_RPATH_USE_LINK_PATH OFF)
    install(TARGETS proa_cuda LIBRARY DESTINATION proa/libs COMPONENT cuda)
    return()
endif()
if(NOT PROA_HAVE_PYTHON)
    message(FATAL_ERROR "A wheel needs Python's headers for ${Python3_EXECUTABLE} (Debian: python3-dev)")
endif()
# One file, libproa.so.0: archives of wheels hold no links.
set_target_properties(proa PROPERTIES INSTALL_RPATH "$ORIGIN" VERSION ${PROJECT_VERSION_MAJOR})
set_target_properties(proa_core_ext PROPERTIES INSTALL_RPATH "$ORIGIN/libs")
install(TARGETS proa LIBRARY DESTINATION proa/libs COMPONENT python NAMELINK_SKIP)
install(TARGETS proa_core_ext LIBRARY DESTINATION proa COMPONENT python)
if(PROA_ONEDNN_TO_COPY)
    install(PROGRAMS "${PROA_ONEDNN_TO_COPY}" DESTINATION proa/libs COMPONENT python)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/python-bindings/proa/" DESTINATION proa COMPONENT python
        FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
foreach(made IN LISTS PROA_MADE_MODULES)
    string(REPLACE ":" ";" made "${made}")
    list(GET made 0 from)
    list(GET made 1 module)
    get_filename_component(folder "${module}" DIRECTORY)
    get_filename_component(module "${module}" NAME)
    install(FILES "${PROA_GEN}/${from}" DESTINATION "proa/${folder}" RENAME "${module}" COMPONENT python)
endforeach()
install(DIRECTORY "${PROJECT_BINARY_DIR}/python/proa/" DESTINATION proa COMPONENT python
        FILES_MATCHING PATTERN "*.pyi" PATTERN "py.typed" PATTERN "include/*.h" PATTERN "include/proa/*.h"
        PATTERN "include/proa/ops/*.h" PATTERN "include/paddle/*.h" PATTERN "include/paddle/extension/*.h"
        PATTERN "libs" EXCLUDE PATTERN "__pycache__" EXCLUDE)
