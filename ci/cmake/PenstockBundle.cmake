# `cpack` in the build folder makes penstock-VERSION-SYSTEM-PROCESSOR.tar.gz: the program, its modules, man pages, completions and
# documents, with every shared library that they need except those of the C library and MPI, and the licences of these. It runs from any
# folder, on a machine without build tools and without root.
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
set(CPACK_PENSTOCK_CHART_DIR ${PENSTOCK_CHART_DIR})

# `cpack -G DEB`, `cpack -G RPM`: the same bundle below /usr. Of the system it needs the C library alone, at least as new as that of the
# building machine. So the package managers must neither look for what the bundled libraries need nor offer them to other packages.
set(PENSTOCK_PACKAGE_CONTACT "the owner of the repository" CACHE STRING "Who answers questions about the deb and rpm: NAME <ADDRESS>")
file(STRINGS ${PROJECT_SOURCE_DIR}/ci/packaging/licence.txt PENSTOCK_LICENCE LIMIT_COUNT 1)
string(REPLACE "licence: " "" PENSTOCK_LICENCE ${PENSTOCK_LICENCE})
execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE glibc OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
string(REPLACE "glibc " "" glibc "${glibc}")
set(CPACK_PACKAGE_DESCRIPTION "Penstock generates training data, reads and writes it on every storage tier, runs training-like programs on
it, profiles the I/O of any program, and reports what each tier delivers. THIRD_PARTY.md names the libraries in this package.")
set(CPACK_PACKAGE_CONTACT ${PENSTOCK_PACKAGE_CONTACT})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${glibc})")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE ${PENSTOCK_LICENCE})
set(CPACK_RPM_PACKAGE_AUTOREQPROV OFF)
set(CPACK_RPM_PACKAGE_REQUIRES "glibc >= ${glibc}")
# No links to build IDs: the bundled libraries would share them with the packages that they come from.
set(CPACK_RPM_SPEC_MORE_DEFINE "%define __os_install_post %{nil}\n%define _build_id_links none\n%define debug_package %{nil}")
foreach(shared man man/man1 bash-completion bash-completion/completions zsh zsh/site-functions fish fish/vendor_completions.d)
  list(APPEND CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/${CMAKE_INSTALL_DATADIR}/${shared})
endforeach()
include(CPack)
