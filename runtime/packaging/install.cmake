# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` puts where: find_package(neon8) and pkg-config find it, wherever the prefix
# is moved to. The components are Debian's packages.
include(CMakePackageConfigHelpers)

set(packaging "${CMAKE_CURRENT_LIST_DIR}")
set(CMAKE_INSTALL_SO_NO_EXE 1) # Debian's manner, wherever this is built
set(config "${CMAKE_INSTALL_LIBDIR}/cmake/neon8")
install(
    TARGETS ${libraries}
    EXPORT neon8Targets
    RUNTIME COMPONENT runtime
    LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
    ARCHIVE COMPONENT development
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
)
install(FILES include/neon8.h include/neon8.hpp TYPE INCLUDE COMPONENT development)
if(TARGET neon8_runner)
    install(TARGETS neon8_runner RUNTIME COMPONENT tools OPTIONAL)
endif()
install(
    EXPORT neon8Targets NAMESPACE neon8:: DESTINATION "${config}" COMPONENT development
)
configure_package_config_file(
    "${packaging}/neon8Config.cmake.in" neon8Config.cmake INSTALL_DESTINATION "${config}"
    NO_SET_AND_CHECK_MACRO
)
write_basic_package_version_file(neon8ConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(
    FILES
        "${CMAKE_CURRENT_BINARY_DIR}/neon8Config.cmake"
        "${CMAKE_CURRENT_BINARY_DIR}/neon8ConfigVersion.cmake"
    DESTINATION "${config}"
    COMPONENT development
)

if(NOT N8_SHARED) # and so every program needs what the static library does
    set(depends " -lm -pthread")
endif()
set(pc "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH up "${pc}" "${CMAKE_INSTALL_PREFIX}")
configure_file("${packaging}/neon8.pc.in" neon8.pc @ONLY)
install(
    FILES "${CMAKE_CURRENT_BINARY_DIR}/neon8.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
    COMPONENT development
)

if(N8_TOP_LEVEL AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
    include("${packaging}/debian.cmake")
endif()
