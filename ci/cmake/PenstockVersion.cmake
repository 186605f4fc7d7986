# Reads the version from the git tag: the tag v1.2.3 is "1.2.3", three commits after it "1.2.3+3.gabcdef0". Python, Debian and RPM take
# that form, too. Without git, a tarball of `git archive` carries the tag in ci/packaging/version.txt. Without either, the version is
# the fallback. It is read when CMake configures: ci/packaging/* configure first.

# penstock_version(RESULT SOURCE FALLBACK): SOURCE is the top folder of Penstock, FALLBACK such as 0.1.0.
function(penstock_version result source fallback)
  set(tag "")
  if(EXISTS ${source}/ci/packaging/version.txt)
    file(STRINGS ${source}/ci/packaging/version.txt tag LIMIT_COUNT 1)
  endif()
  find_program(PENSTOCK_GIT git)
  mark_as_advanced(PENSTOCK_GIT)
  if(PENSTOCK_GIT)
    # A tarball that is unpacked in a checkout of another project must not take that project's tags.
    execute_process(COMMAND ${PENSTOCK_GIT} -C ${source} rev-parse --show-toplevel
                    OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    file(REAL_PATH ${source} real_source)
    if(top STREQUAL real_source)
      execute_process(COMMAND ${PENSTOCK_GIT} -C ${source} describe --tags --match "v[0-9]*"
                      OUTPUT_VARIABLE tag OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
  endif()
  if(tag MATCHES "^v([0-9]+\\.[0-9]+\\.[0-9]+)(-([0-9]+)-(g[0-9a-f]+))?$")
    set(version ${CMAKE_MATCH_1})
    if(CMAKE_MATCH_2)
      string(APPEND version "+${CMAKE_MATCH_3}.${CMAKE_MATCH_4}")
    endif()
    set(${result} ${version} PARENT_SCOPE)
  else()
    set(${result} ${fallback} PARENT_SCOPE)
  endif()
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)  # cmake -D SOURCE=DIR -D FALLBACK=1.2.3 -P PenstockVersion.cmake
  penstock_version(version ${SOURCE} ${FALLBACK})
  execute_process(COMMAND ${CMAKE_COMMAND} -E echo ${version})
endif()
