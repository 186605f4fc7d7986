# Language level, warnings, sanitizers: one interface target that every target of ours links.
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
# Recipes promise the same bytes on every machine: a multiply-add must not be fused on one and split on another.
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

# Seconds after which a test is taken to hang: a sanitizer makes it ten times as slow, a loaded machine that again.
set(PENSTOCK_TEST_PATIENCE 600)
if(PENSTOCK_SANITIZE)
  set(PENSTOCK_TEST_PATIENCE 2400)
endif()

# penstock_arithmetic(SOURCE...): sources of the current room that are arithmetic on a thread's own arrays: they start no thread
# and write nothing that two have. The thread sanitizer does not watch them (with each pixel looked at, every data set would
# take a quarter of a minute), and for the others they are optimised, as tests wait for little else.
function(penstock_arithmetic)
  penstock_apart(${ARGN})
  if(PENSTOCK_SANITIZE MATCHES "thread")
    set(options -fno-sanitize=thread)
  elseif(PENSTOCK_SANITIZE)
    set(options -O2)
  endif()
  if(PENSTOCK_SANITIZE)
    set_source_files_properties(${ARGN} TARGET_DIRECTORY ${PENSTOCK_ROOM} PROPERTIES
                                COMPILE_OPTIONS ${options} SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

if(PENSTOCK_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "PENSTOCK_FUZZERS needs Clang, whose runtime has libFuzzer: use the preset 'fuzz'")
  endif()
  target_compile_options(penstock_build INTERFACE $<BUILD_INTERFACE:-fsanitize=fuzzer-no-link>)
  # No fuzzer hits a checksum by chance: parsers that check some leave it out under this name.
  target_compile_definitions(penstock_build INTERFACE $<BUILD_INTERFACE:FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION>)
endif()

if(PENSTOCK_TIDY)
  find_program(PENSTOCK_CLANG_TIDY NAMES clang-tidy clang-tidy-14 REQUIRED)
  set(CMAKE_CXX_CLANG_TIDY ${PENSTOCK_CLANG_TIDY})
endif()

# Paths below the tree are hashed relative to it, so that another checkout of the same sources finds its objects made; with
# the sloppiness it looks through precompiled headers.
find_program(PENSTOCK_CCACHE ccache)
if(PENSTOCK_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  CCACHE_SLOPPINESS=pch_defines,time_macros
                                  ${PENSTOCK_CCACHE})
endif()
