# SPDX-License-Identifier: Apache-2.0
#
# The components of install.cmake as Debian's packages: `make debs`.
set(runtime_package "libneon8-${N8_ABI}")
set(development_package "libneon8-dev")
set(tools_package "neon8-tools")
set(CPACK_PACKAGE_CONTACT "The neon8 authors <authors@neon8.invalid>")
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
set(control "${CMAKE_CURRENT_BINARY_DIR}/debian")
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(CONFIGURE OUTPUT "${control}/changelog"
    CONTENT "neon8 (${version}) unstable; urgency=medium

  * Release ${PROJECT_VERSION}; changelog.gz tells more.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
"
)
foreach(component IN ITEMS runtime development tools)
    # These are no part of what `cmake --install` puts elsewhere.
    set(docs "share/doc/${${component}_package}")
    install(
        FILES "${packaging}/copyright" DESTINATION "${docs}" COMPONENT ${component} EXCLUDE_FROM_ALL
    )
    set(to "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${docs}/changelog")
    install(
        CODE "
            set(zip COMMAND_ERROR_IS_FATAL ANY COMMAND gzip -9nc)
            execute_process(\${zip} \"${N8_ROOT}/CHANGELOG.md\" OUTPUT_FILE \"${to}.gz\")
            execute_process(\${zip} \"${control}/changelog\" OUTPUT_FILE \"${to}.Debian.gz\")
        "
        COMPONENT ${component}
        EXCLUDE_FROM_ALL
    )
    string(TOUPPER ${component} name)
    set(CPACK_DEBIAN_${name}_PACKAGE_NAME "${${component}_package}")
    set(CPACK_DEBIAN_${name}_FILE_NAME DEB-DEFAULT)
endforeach()

if(N8_AARCH64)
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
elseif(N8_ARMV7)
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE armhf)
elseif(N8_X86_64)
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE
)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# CPack itself would run ldconfig in scripts instead.
file(CONFIGURE OUTPUT "${control}/triggers" CONTENT "activate-noawait ldconfig\n")
file(CONFIGURE OUTPUT "${control}/shlibs"
    CONTENT "libneon8 ${N8_ABI} ${runtime_package} (>= ${version})\n"
)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${control}/triggers;${control}/shlibs")

# What the library asks of the C library is what cross/zig.cmake builds for.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "libc6 (>= 2.17)")
# CPack before 3.31 knows no Multi-Arch, but takes another line where it takes a section.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION "libs\nMulti-Arch: same")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "${runtime_package} (= ${version}), libc6-dev"
)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION "libdevel\nMulti-Arch: same")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION "utils\nMulti-Arch: foreign")
set(what "neural networks in int8 on ARM")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
    "${what}, shared library\nOpens and runs networks that neon8 has quantized,\nwith the same bytes on every processor."
)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "${what}, development files\nHeaders for C and C++, the static library,\nand what CMake and pkg-config look for."
)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
    "${what}, runner\nA static program that runs and measures\nnetworks which neon8 sends from another machine."
)
include(CPack)
