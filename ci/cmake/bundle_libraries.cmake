# Run by cpack on what is to be packed: takes out what only building against Penstock needs, and puts in the shared libraries and the
# licences of what the package carries.
cmake_minimum_required(VERSION 3.22)

set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
if(CPACK_GENERATOR MATCHES "DEB|RPM")
  string(APPEND root ${CPACK_PACKAGING_INSTALL_PREFIX})
endif()
set(programs ${root}/${CPACK_PENSTOCK_BINDIR}/penstock)
set(libraries ${root}/${CPACK_PENSTOCK_LIBDIR})
if(NOT EXISTS ${programs})
  message(FATAL_ERROR "bundle: there is no ${programs}")
endif()
file(GLOB archives ${libraries}/*.a)
file(REMOVE_RECURSE ${root}/include ${libraries}/cmake ${archives})

# Of libpenstock_mpi.so, what MPI brings is the site's, and the rest the program needs, too.
file(GLOB modules ${libraries}/libpenstock_onednn.so)
file(GLOB other_programs ${libraries}/penstock_hdf5_filters)
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${programs} ${other_programs} MODULES ${modules}
     RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR lacking
     POST_EXCLUDE_REGEXES "/ld-linux[^/]*$" "/lib(c|m|dl|rt|pthread|resolv|util|anl|nsl|mvec)[.-][^/]*so[^/]*$")
if(lacking)
  message(FATAL_ERROR "bundle: not found on this machine: ${lacking}")
endif()
file(MAKE_DIRECTORY ${libraries}/penstock)
foreach(library IN LISTS found)
  # Under the name that the loader looks for, without links to it: a wheel and rpmbuild take none.
  get_filename_component(name ${library} NAME)
  file(REAL_PATH ${library} file)
  file(COPY_FILE ${file} ${libraries}/penstock/${name})
endforeach()
list(LENGTH found number)
message(STATUS "bundle: ${number} shared libraries")

find_program(python python3 REQUIRED)
string(REPLACE ";" "\n" list "${found}")
file(WRITE ${CPACK_TOPLEVEL_DIRECTORY}/libraries.txt "${list}\n")
execute_process(COMMAND ${python} ${CMAKE_CURRENT_LIST_DIR}/../packaging/third_party ${root} ${CPACK_TOPLEVEL_DIRECTORY}/libraries.txt
                        ${CPACK_PENSTOCK_CHART_DIR}
                COMMAND_ERROR_IS_FATAL ANY)
