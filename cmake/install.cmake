# Install rules: headers, both libraries, the command, proa.pc, the CMake package, and the generator for custom ops.
include(CMakePackageConfigHelpers)

# oneDNN of tools/bootstrap lies in the checkout: a copy goes along, so that what is installed stands alone.
if(PROA_ONEDNN_TO_COPY)
    get_filename_component(folder "${PROA_ONEDNN_TO_COPY}" DIRECTORY)
    install(PROGRAMS "${PROA_ONEDNN_TO_COPY}" DESTINATION ${CMAKE_INSTALL_LIBDIR}/proa)
    set_target_properties(proa PROPERTIES INSTALL_RPATH "$ORIGIN/proa")
    string(REPLACE "-L${folder} -ldnnl" "-L\${libdir}/proa -l:libdnnl.so.${dnnl_VERSION_MAJOR}"
           PROA_PRIVATE_LIBS "${PROA_PRIVATE_LIBS}")
endif()

install(TARGETS proa EXPORT ProaTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET proa_cuda AND NOT SKBUILD)
    install(TARGETS proa_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}) # libproa looks beside itself
endif()
install(TARGETS proa_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Paddle's interfaces: its programs include their headers flat, or under the path of its source tree.
install(TARGETS paddle_inference_c EXPORT ProaTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
set_target_properties(paddle_inference_c PROPERTIES INSTALL_RPATH "$ORIGIN")
set(paddle "${PROJECT_SOURCE_DIR}/include/paddle")
install(DIRECTORY "${paddle}" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
foreach(flat IN ITEMS capi_exp api)
    install(DIRECTORY "${paddle}/fluid/inference/${flat}/" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
            FILES_MATCHING PATTERN "*.h")
endforeach()
# C++ programs link -lpaddle_inference.
install(CODE "file(CREATE_LINK \"$<TARGET_FILE_NAME:proa>\"
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libpaddle_inference.so\" SYMBOLIC)")
file(RELATIVE_PATH to_library "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
set_target_properties(proa_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}")
install(TARGETS proa_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES "${PROJECT_SOURCE_DIR}/include/proa.h" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/proa" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(FILES ${PROA_GENERATOR} "${PROJECT_SOURCE_DIR}/ops/table.yaml" DESTINATION ${CMAKE_INSTALL_DATADIR}/proa)

file(RELATIVE_PATH PROA_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${PROJECT_SOURCE_DIR}/cmake/proa.pc.in" "${PROJECT_BINARY_DIR}/proa.pc" @ONLY)
configure_file("${PROJECT_SOURCE_DIR}/cmake/paddle_inference_c.pc.in" "${PROJECT_BINARY_DIR}/paddle_inference_c.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/proa.pc" "${PROJECT_BINARY_DIR}/paddle_inference_c.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Proa)
install(EXPORT ProaTargets NAMESPACE Proa:: DESTINATION ${package})
set(PROA_SHARE_DIR ${CMAKE_INSTALL_DATADIR}/proa)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/ProaConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/ProaConfig.cmake" INSTALL_DESTINATION ${package} PATH_VARS PROA_SHARE_DIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ProaConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/ProaConfig.cmake" "${PROJECT_BINARY_DIR}/ProaConfigVersion.cmake"
        DESTINATION ${package})
