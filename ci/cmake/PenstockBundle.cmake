# `cpack` in the build folder makes penstock-VERSION-SYSTEM-PROCESSOR.tar.gz: the program, its modules, man pages, completions
# and documents, with every shared library that they need but those of the C library. It runs from wherever it is unpacked, on
# a node without build tools and without root. MPI stays the site's own.
file(RELATIVE_PATH PENSTOCK_BUNDLED ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/penstock)

# RPATH, not RUNPATH: it counts for what the libraries themselves need, too. Where nothing was bundled it names a folder that
# is not there.
function(penstock_finds_bundled target folder)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${folder}" BUILD_RPATH "$ORIGIN/${folder}")
    target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  endif()
endfunction()
penstock_finds_bundled(penstock ${PENSTOCK_BUNDLED})
penstock_finds_bundled(penstock_mpi penstock)
penstock_finds_bundled(penstock_hdf5_mpio penstock)
penstock_finds_bundled(penstock_onednn penstock)

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME penstock)
set(CPACK_PACKAGE_VENDOR Penstock)
set(CPACK_PACKAGE_FILE_NAME penstock-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/ci/cmake/bundle_libraries.cmake)
set(CPACK_PENSTOCK_BINDIR ${CMAKE_INSTALL_BINDIR})
set(CPACK_PENSTOCK_LIBDIR ${CMAKE_INSTALL_LIBDIR})
include(CPack)
