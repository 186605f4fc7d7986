# A plug-in is one file and one line:
#
#   penstock_plugin(backend uring uring.cpp NEEDS PkgConfig::uring)
#
# The file exports one const descriptor named <kind>_<name> (dashes become underscores) in namespace penstock. Everything else in it is
# private, under names that no other file in the folder has (kUringOptions). From the lines of all components CMake writes one registry
# for each kind. So nothing depends on static constructors, which a linker drops from static libraries. If a NEEDS target does not
# exist, the plug-in is listed as missing, with that reason. WITH names modules that are built and opened at run time, not linked.

# kind -> descriptor type and the header that declares it
set(PENSTOCK_KIND_backend "BackendInfo|io_backends/backend/backend_info.hpp")
set(PENSTOCK_KIND_recipe "RecipeInfo|datagen/recipe/recipe.hpp")
set(PENSTOCK_KIND_format "FormatInfo|datagen/format/format.hpp")
set(PENSTOCK_KIND_miniapp "MiniAppInfo|miniapps/train/miniapp.hpp")
set(PENSTOCK_KIND_microbench "MicrobenchInfo|benchmarks/self/micro/microbench.hpp")
set(PENSTOCK_KIND_exporter "ExporterInfo|profiling/exporters/exporter.hpp")
set(PENSTOCK_KIND_view "RecordView|results/cells/record_view.hpp")
set(PENSTOCK_KIND_command "CommandInfo|io_backends/core/cli/command.hpp")
# Subcommands are plug-ins, too. Their kind is the name of the command: penstock_plugin(checkpoint gc gc.cpp).
set(PENSTOCK_WITH_SUBCOMMANDS checkpoint profile stage)
foreach(command IN LISTS PENSTOCK_WITH_SUBCOMMANDS)
  set(PENSTOCK_KIND_${command} "CommandInfo|io_backends/core/cli/command.hpp")
endforeach()

# penstock_component(TARGET): the library for the plug-ins and sources of the current folder and the folders below it.
macro(penstock_component target)
  set(PENSTOCK_COMPONENT ${target})
  add_library(${target} STATIC)
  add_library(penstock::${target} ALIAS ${target})
  target_link_libraries(${target} PUBLIC penstock_build)
  penstock_precompiled(${target} library)
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_COMPONENTS ${target})
endmacro()

function(penstock_plugin kind name source)
  cmake_parse_arguments(ARG "" "" "NEEDS;WITH" ${ARGN})
  if(NOT DEFINED PENSTOCK_KIND_${kind})
    message(FATAL_ERROR "penstock_plugin: unknown kind '${kind}'")
  endif()
  if(PENSTOCK_FUZZERS AND NOT kind MATCHES "^(backend|format|exporter|view)$")
    return()  # no fuzz target reaches the other kinds (PenstockFuzz)
  endif()
  set(unmet "")
  foreach(need IN LISTS ARG_NEEDS ARG_WITH)
    if(NOT TARGET ${need})
      string(REGEX REPLACE "^.*::" "" need "${need}")
      list(APPEND unmet ${need})
    endif()
  endforeach()
  if(unmet)
    string(REPLACE ";" ", " unmet "${unmet}")
    set_property(GLOBAL APPEND PROPERTY PENSTOCK_MISSING_${kind} "${name}|this build lacks ${unmet}")
  else()
    target_sources(${PENSTOCK_COMPONENT} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    target_link_libraries(${PENSTOCK_COMPONENT} PUBLIC ${ARG_NEEDS})
    set_property(GLOBAL APPEND PROPERTY PENSTOCK_PRESENT_${kind} "${name}")
  endif()
endfunction()

# penstock_plugin_registry(KIND FILE): writes the registry of all plug-ins of KIND added so far, sorted by name.
function(penstock_plugin_registry kind file)
  string(REPLACE "|" ";" parts "${PENSTOCK_KIND_${kind}}")
  list(GET parts 0 type)
  list(GET parts 1 header)
  get_property(present GLOBAL PROPERTY PENSTOCK_PRESENT_${kind})
  get_property(missing GLOBAL PROPERTY PENSTOCK_MISSING_${kind})
  list(SORT present)
  list(SORT missing)
  set(externs "")
  set(rows "")
  foreach(name IN LISTS present)
    string(REPLACE "-" "_" symbol "${name}")
    string(APPEND externs "extern const ${type} ${kind}_${symbol};\n")
    string(APPEND rows "      &${kind}_${symbol},\n")
  endforeach()
  set(absent "")
  foreach(row IN LISTS missing)
    string(REPLACE "|" ";" parts "${row}")
    list(GET parts 0 name)
    list(GET parts 1 reason)
    string(APPEND absent "      {\"${name}\", \"${reason}\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [=[
// Written by CMake from the penstock_plugin(@kind@ ...) lines; edit those.
#include <vector>

#include "@header@"

namespace penstock {
@externs@
const Registry<@type@>& @kind@_registry() {
  static const std::vector<const @type@*> present{
@rows@  };
  static const std::vector<MissingPlugin> missing{
@absent@  };
  static const Registry<@type@> registry{"@kind@", present, missing};
  return registry;
}
}  // namespace penstock
]=])
endfunction()

# penstock_test_program(TARGET SOURCES...): a program with GoogleTest cases. It is not optimised, because that would take half of the
# time of a build. The libraries that it tests are.
set(PENSTOCK_TEST_OPTIONS -O0)

function(penstock_test_program target)
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE penstock_build GTest::gtest Threads::Threads)
  target_compile_options(${target} PRIVATE ${PENSTOCK_TEST_OPTIONS})
  penstock_precompiled(${target} test)
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_TEST_PROGRAMS ${target})
endfunction()

# penstock_is_in_part(OUT): whether the next test program, or the next test of a shared program, is to be built and run. The build for a
# sanitizer has every fourth of them (ci/test --part N): compiling the others would take minutes.
set(PENSTOCK_PART "" CACHE STRING "Build and run only this quarter of the tests (0 to 3)")
if(NOT PENSTOCK_PART MATCHES "^[0-3]?$")
  message(FATAL_ERROR "PENSTOCK_PART is '${PENSTOCK_PART}': it may be 0, 1, 2, 3 or nothing")
endif()
if(NOT PENSTOCK_PART STREQUAL "")
  message(STATUS "penstock: only part ${PENSTOCK_PART} of four of the tests (-DPENSTOCK_PART= for all)")
endif()
function(penstock_is_in_part out)
  get_property(count GLOBAL PROPERTY PENSTOCK_PART_COUNT)
  math(EXPR count "${count} + 1")
  set_property(GLOBAL PROPERTY PENSTOCK_PART_COUNT ${count})
  math(EXPR part "${count} % 4")
  if(PENSTOCK_PART STREQUAL "" OR part EQUAL PENSTOCK_PART)
    set(${out} TRUE PARENT_SCOPE)
  else()
    set(${out} FALSE PARENT_SCOPE)
  endif()
endfunction()

# penstock_test(TARGET SOURCES... [LINK libs...]): a GoogleTest program. Each of its cases is a ctest case.
function(penstock_test target)
  penstock_is_in_part(in_part)
  if(NOT PENSTOCK_TESTS OR NOT TARGET GTest::gtest OR NOT in_part)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  penstock_test_program(${target} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${target} PRIVATE ${ARG_LINK} GTest::gtest_main)
  include(GoogleTest)
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 300 PROPERTIES TIMEOUT ${PENSTOCK_TEST_TIMEOUT})
endfunction()

# What the smoke tests run: every plug-in's contract test, every fuzz target's seeds, the program. `ci/test --smoke` builds only these.
add_custom_target(smoke)

# penstock_contract_tests(KIND COMMAND...): one ctest case for each plug-in of KIND: contract.<kind>.<name>. COMMAND gets the name as its
# last argument. It exits 77 if this build or machine lacks something, and ctest then shows the test as skipped.
function(penstock_contract_tests kind)
  get_property(present GLOBAL PROPERTY PENSTOCK_PRESENT_${kind})
  get_property(missing GLOBAL PROPERTY PENSTOCK_MISSING_${kind})
  set(names ${present})
  foreach(row IN LISTS missing)
    string(REGEX REPLACE "\\|.*" "" name "${row}")
    list(APPEND names ${name})
  endforeach()
  foreach(program IN LISTS ARGN)
    if(TARGET ${program})
      add_dependencies(smoke ${program})
    endif()
  endforeach()
  foreach(name IN LISTS names)
    penstock_is_in_part(in_part)
    if(NOT in_part)
      continue()
    endif()
    add_test(NAME contract.${kind}.${name} COMMAND ${ARGN} ${name})
    set_tests_properties(contract.${kind}.${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${PENSTOCK_TEST_TIMEOUT} LABELS smoke
      ENVIRONMENT "PENSTOCK=${PROJECT_BINARY_DIR}/penstock;PENSTOCK_SOURCE=${PROJECT_SOURCE_DIR}")
  endforeach()
endfunction()
