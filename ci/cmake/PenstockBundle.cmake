# `cpack` in the build folder makes penstock-VERSION-SYSTEM-PROCESSOR.tar.gz: the program, its modules, man pages, completions and
# documents, with every shared library that they need except those of the C library and MPI. It runs from any folder, on a machine
# without build tools and without root.
file(RELATIVE_PATH PENSTOCK_BUNDLED ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/penstock)

# RPATH, not RUNPATH: it also applies to the libraries that the libraries need. Without a bundle it names a folder that does not exist.
# A build has the RPATH of an installation: CMake would add ':' to make another one as long, and the loader would then look for every
# library in the current folder first, where anybody may have put one.
function(penstock_use_bundled_libraries target folder)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${folder}" BUILD_WITH_INSTALL_RPATH ON
                                               INSTALL_RPATH_USE_LINK_PATH ON)
    target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  endif()
endfunction()
penstock_use_bundled_libraries(penstock ${PENSTOCK_BUNDLED})
penstock_use_bundled_libraries(penstock_mpi penstock)
penstock_use_bundled_libraries(penstock_hdf5_filters penstock)
penstock_use_bundled_libraries(penstock_onednn penstock)

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME penstock)
set(CPACK_PACKAGE_VERSION ${PENSTOCK_VERSION})
set(CPACK_PACKAGE_VENDOR Penstock)
# With the component named, cpack does not overwrite install_manifest.txt, which the target 'uninstall' reads.
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};${PROJECT_NAME};Unspecified;/")
set(CPACK_PACKAGE_FILE_NAME penstock-${PENSTOCK_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/ci/cmake/bundle_libraries.cmake)
set(CPACK_PENSTOCK_BINDIR ${CMAKE_INSTALL_BINDIR})
set(CPACK_PENSTOCK_LIBDIR ${CMAKE_INSTALL_LIBDIR})
include(CPack)
