# penstock_fuzz(TARGET SOURCE [DEFINITION...]): fuzz_TARGET, from a source that has LLVMFuzzerTestOneInput, against the
# current room. With PENSTOCK_FUZZERS libFuzzer drives it (ci/fuzz runs them all). In every other build a small main feeds
# it the seeds in the room's fuzz_seeds/TARGET, and what comes of cutting and flipping them, as the test fuzz.TARGET. A build for
# libFuzzer goes without recipes and commands (penstock_plugin). ci/check_fuzz finds sources that parse and are in no target.
add_custom_target(fuzzers)

function(penstock_fuzz target source)
  if(NOT PENSTOCK_TESTS AND NOT PENSTOCK_FUZZERS)
    return()
  endif()
  add_executable(fuzz_${target} ${source})
  set_target_properties(fuzz_${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  target_compile_definitions(fuzz_${target} PRIVATE ${ARGN})
  target_link_libraries(fuzz_${target} PRIVATE ${PENSTOCK_ROOM})
  add_dependencies(fuzzers fuzz_${target})
  if(PENSTOCK_FUZZERS)
    target_link_options(fuzz_${target} PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  target_sources(fuzz_${target} PRIVATE ${PROJECT_SOURCE_DIR}/io_backends/testing/fuzz_seeds_main.cpp)
  add_dependencies(smoke fuzz_${target})
  add_test(NAME fuzz.${target} COMMAND fuzz_${target} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_seeds/${target})
  set_tests_properties(fuzz.${target} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${PENSTOCK_TEST_PATIENCE} LABELS smoke)
endfunction()
