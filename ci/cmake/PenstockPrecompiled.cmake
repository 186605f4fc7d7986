# Headers that nearly every file includes, parsed once for a build instead of once for each file (PENSTOCK_PRECOMPILE). `dev` and `tidy`
# do without them, so each file has to include what it uses (.ci/run --full). GCC 12 forgets that precompiled headers are the system's,
# and reports impossible overflows inside its own <string>: these warnings are left to `dev`.
option(PENSTOCK_PRECOMPILE "Parse the headers that nearly every file includes once for a build" OFF)
set(PENSTOCK_PRECOMPILED <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstring> <filesystem> <fstream> <functional>
                         <iterator> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <string> <string_view>
                         <system_error> <thread> <tuple> <utility> <variant> <vector> <fmt/format.h>)

# penstock_precompiled(TARGET KIND): gives TARGET the headers of KIND: `library`, `program`, or `test` (also GoogleTest; a program that
# is not optimised).
function(penstock_precompiled target kind)
  if(NOT PENSTOCK_PRECOMPILE)
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
      target_compile_options(${headers} PRIVATE ${PENSTOCK_TEST_OPTIONS})
    endif()
    if(NOT kind STREQUAL library)
      target_compile_options(${headers} PRIVATE -fPIE)
    endif()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
  endif()
  target_link_libraries(${target} PRIVATE Threads::Threads fmt::fmt)  # the headers were parsed with their definitions
  target_precompile_headers(${target} REUSE_FROM ${headers})
endfunction()
