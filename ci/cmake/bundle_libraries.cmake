# Run by cpack on what is to be packed: takes out what only building against Penstock needs, and puts in the shared libraries.
cmake_minimum_required(VERSION 3.22)

set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
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
foreach(library IN LISTS found)
  file(INSTALL ${library} DESTINATION ${libraries}/penstock TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN)
endforeach()
list(LENGTH found number)
message(STATUS "bundle: ${number} shared libraries")
