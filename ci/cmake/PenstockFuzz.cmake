# penstock_fuzz(TARGET SOURCE [DEFINITION...]): the program fuzz_TARGET, from a source that has LLVMFuzzerTestOneInput, linked with
# the current component. With PENSTOCK_FUZZERS libFuzzer runs it (ci/fuzz runs all of them). In every other build the test
# fuzz.TARGET gives it the seeds in the component's fuzz_seeds/TARGET, also cut and with flipped bytes. A build for libFuzzer has no
# recipes and no commands (penstock_plugin). ci/check_fuzz finds sources that parse and are in no target.
add_custom_target(fuzzers)

function(penstock_fuzz target source)
  penstock_is_in_part(in_part)
  if(NOT PENSTOCK_FUZZERS AND (NOT PENSTOCK_TESTS OR NOT in_part))
    return()
  endif()
  add_executable(fuzz_${target} ${source})
  set_target_properties(fuzz_${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  target_compile_definitions(fuzz_${target} PRIVATE ${ARGN})
  target_link_libraries(fuzz_${target} PRIVATE ${PENSTOCK_COMPONENT})
  add_dependencies(fuzzers fuzz_${target})
  if(PENSTOCK_FUZZERS)
    target_link_options(fuzz_${target} PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  target_sources(fuzz_${target} PRIVATE ${PROJECT_SOURCE_DIR}/io_backends/testing/fuzz_seeds_main.cpp)
  add_dependencies(smoke fuzz_${target})
  add_test(NAME fuzz.${target} COMMAND fuzz_${target} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_seeds/${target})
  set_tests_properties(fuzz.${target} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${PENSTOCK_TEST_TIMEOUT} LABELS smoke)
endfunction()
