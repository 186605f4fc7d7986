# Language level, warnings, sanitizers: one interface target that all other targets link.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

add_library(penstock_build INTERFACE)
target_include_directories(penstock_build INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/penstock>)
target_compile_features(penstock_build INTERFACE cxx_std_20)
# Recipes make the same bytes on every machine, so no compiler may fuse a multiplication and an addition.
target_compile_options(penstock_build INTERFACE $<BUILD_INTERFACE:-ffp-contract=off>)
set(PENSTOCK_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor
                      -Woverloaded-virtual -Wcast-align -Wnull-dereference)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports impossible null dereferences and overlaps inside its own <string> and <variant> once it inlines.
  list(APPEND PENSTOCK_WARNINGS -Wno-null-dereference -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(PENSTOCK_WARNINGS_AS_ERRORS)
  list(APPEND PENSTOCK_WARNINGS -Werror)
endif()
target_compile_options(penstock_build INTERFACE "$<BUILD_INTERFACE:${PENSTOCK_WARNINGS}>")

if(PENSTOCK_SANITIZE)
  target_compile_options(penstock_build INTERFACE
    $<BUILD_INTERFACE:-fsanitize=${PENSTOCK_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -UNDEBUG>)
  target_link_options(penstock_build INTERFACE $<BUILD_INTERFACE:-fsanitize=${PENSTOCK_SANITIZE}>)
  # One name for all compilers: PENSTOCK_ADDRESS_SANITIZER, PENSTOCK_THREAD_SANITIZER.
  foreach(name address thread)
    if(PENSTOCK_SANITIZE MATCHES ${name})
      string(TOUPPER ${name} name)
      target_compile_definitions(penstock_build INTERFACE $<BUILD_INTERFACE:PENSTOCK_${name}_SANITIZER>)
    endif()
  endforeach()
endif()

# Seconds after which a test counts as hanging. A sanitizer makes it ten times slower, and a busy machine slower again.
set(PENSTOCK_TEST_TIMEOUT 600)
if(PENSTOCK_SANITIZE)
  set(PENSTOCK_TEST_TIMEOUT 2400)
endif()

# penstock_arithmetic(SOURCE...): sources of the current component that compute on arrays of one thread. They start no thread and write
# no shared memory. The thread sanitizer does not check them: with a check of each pixel, every data set takes 15 seconds. For the
# other sanitizers they are optimised, because tests spend most of their time in them.
function(penstock_arithmetic)
  penstock_apart(${ARGN})
  if(PENSTOCK_SANITIZE MATCHES "thread")
    set(options -fno-sanitize=thread)
  elseif(PENSTOCK_SANITIZE)
    set(options -O2)
  endif()
  if(PENSTOCK_SANITIZE)
    set_source_files_properties(${ARGN} TARGET_DIRECTORY ${PENSTOCK_COMPONENT} PROPERTIES
                                COMPILE_OPTIONS ${options} SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

if(PENSTOCK_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "PENSTOCK_FUZZERS needs Clang, whose runtime has libFuzzer: use the preset 'fuzz'")
  endif()
  target_compile_options(penstock_build INTERFACE $<BUILD_INTERFACE:-fsanitize=fuzzer-no-link>)
  # No fuzzer finds a right checksum by chance, so with this name parsers do not compare checksums.
  target_compile_definitions(penstock_build INTERFACE $<BUILD_INTERFACE:FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION>)
endif()

if(PENSTOCK_TIDY)
  find_program(PENSTOCK_CLANG_TIDY NAMES clang-tidy clang-tidy-14 REQUIRED)
  set(CMAKE_CXX_CLANG_TIDY ${PENSTOCK_CLANG_TIDY})
endif()

# ccache hashes paths relative to the tree, so another checkout of the same sources uses the same objects. The sloppiness lets it
# cache files with precompiled headers.
find_program(PENSTOCK_CCACHE ccache)
if(PENSTOCK_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  CCACHE_SLOPPINESS=pch_defines,time_macros
                                  ${PENSTOCK_CCACHE})
endif()
