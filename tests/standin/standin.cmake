# SPDX-License-Identifier: Apache-2.0
#
# The library with a level more, whose kernels are C but of other geometries: what holds for it
# holds for levels to come. Included from runtime/CMakeLists.txt, whose list of sources it needs.
set(standin "${N8_ROOT}/tests/standin")
add_library(standin_options INTERFACE)
target_compile_definitions(
    standin_options
    INTERFACE
        "N8_EXTRA_LEVELS=\"${standin}/levels.inc\""
        "N8_EXTRA_KERNELS=\"${standin}/kernels.inc\""
)
list(APPEND sources "${standin}/kernels.c")
# A library for boards lacks the levels of computers, which other builds for this processor have.
if(compiled_vectors AND NOT N8_VECTOR)
    list(APPEND sources ${compiled_vectors})
    target_compile_definitions(standin_options INTERFACE N8_VECTOR)
endif()
n8_add_objects(standin_objects)
target_link_libraries(standin_objects PRIVATE standin_options)
add_library(standin STATIC $<TARGET_OBJECTS:standin_objects>)
target_link_libraries(standin PUBLIC m Threads::Threads INTERFACE standin_options)

add_executable(standin_layers "${standin}/layers.c")
target_compile_definitions(standin_layers PRIVATE _DEFAULT_SOURCE)
target_include_directories(standin_layers PRIVATE "${N8_ROOT}/runtime")
target_link_libraries(standin_layers PRIVATE standin neon8_options)
add_test(NAME standin_layers COMMAND standin_layers "${N8_ROOT}/tests/golden/small.n8")
