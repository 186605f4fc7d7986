# Headers that nearly every file includes, parsed once for a build instead of once for each file (PENSTOCK_PRECOMPILE). The presets of
# the sanitizers use them for all files, `release` only for tests. So each file of the product has to include what it uses.
set(PENSTOCK_PRECOMPILE "OFF" CACHE STRING "Parse the headers that nearly every file includes once for a build: ON, OFF or tests")
set(PENSTOCK_PRECOMPILED <algorithm> <array> <atomic> <chrono> <filesystem> <functional> <map> <memory> <mutex> <optional>
                         <set> <span> <string> <string_view> <thread> <utility> <vector> <fmt/format.h>)

# penstock_precompiled(TARGET KIND): gives TARGET the headers of KIND: `library`, or `test` (also GoogleTest; compiled as for
# executables and not optimised).
function(penstock_precompiled target kind)
  if(NOT PENSTOCK_PRECOMPILE OR (PENSTOCK_PRECOMPILE STREQUAL "tests" AND NOT kind STREQUAL "test"))
    return()
  endif()
  set(headers penstock_${kind}_headers)
  if(NOT TARGET ${headers})
    file(WRITE ${PROJECT_BINARY_DIR}/${headers}.cpp "")
    add_library(${headers} OBJECT ${PROJECT_BINARY_DIR}/${headers}.cpp)
    target_link_libraries(${headers} PRIVATE penstock_build Threads::Threads fmt::fmt)
    target_precompile_headers(${headers} PRIVATE ${PENSTOCK_PRECOMPILED})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # it compares times of files, which a cache of objects does not keep
      target_compile_options(${headers} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    endif()
    if(kind STREQUAL test)
      target_link_libraries(${headers} PRIVATE GTest::gtest)
      target_precompile_headers(${headers} PRIVATE <gtest/gtest.h>)
      target_compile_options(${headers} PRIVATE -fPIE ${PENSTOCK_TEST_OPTIONS})
    endif()
  endif()
  target_link_libraries(${target} PRIVATE Threads::Threads fmt::fmt)  # the headers were parsed with their definitions
  target_precompile_headers(${target} REUSE_FROM ${headers})
endfunction()
