# `cmake --install` puts the program, the libraries, the headers, an exported CMake package, and the documents in place.
include(CMakePackageConfigHelpers)

install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_SOURCE_DIR}/ci/packaging/licence.txt RENAME copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

get_property(libraries GLOBAL PROPERTY PENSTOCK_COMPONENTS)
install(TARGETS penstock_build ${libraries} EXPORT penstock-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT penstock-targets NAMESPACE penstock:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)
foreach(component io_backends results datagen profiling miniapps benchmarks)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${component} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/penstock
          FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h"
          PATTERN "*_test.hpp" EXCLUDE PATTERN "*_fixture.hpp" EXCLUDE PATTERN "*testing.hpp" EXCLUDE
          PATTERN "scripted_backend.hpp" EXCLUDE PATTERN "micro" EXCLUDE)
endforeach()

set(PENSTOCK_EXPORT_FINDS "")
foreach(optional isal:libisal zstd:libzstd uring:liburing curl:libcurl)
  string(REPLACE ":" ";" parts ${optional})
  list(GET parts 0 prefix)
  list(GET parts 1 module)
  if(TARGET PkgConfig::${prefix})
    string(APPEND PENSTOCK_EXPORT_FINDS "pkg_check_modules(${prefix} REQUIRED IMPORTED_TARGET ${module})\n")
  endif()
endforeach()
if(TARGET ZLIB::ZLIB)
  string(APPEND PENSTOCK_EXPORT_FINDS "find_dependency(ZLIB)\n")
endif()
if(TARGET pugixml::pugixml)
  string(APPEND PENSTOCK_EXPORT_FINDS "find_dependency(pugixml)\n")
endif()
if(TARGET PkgConfig::httplib)
  string(APPEND PENSTOCK_EXPORT_FINDS "pkg_check_modules(httplib REQUIRED IMPORTED_TARGET cpp-httplib>=0.10)
if(NOT TARGET httplib::httplib)
  add_library(httplib::httplib ALIAS PkgConfig::httplib)
endif()
")
elseif(TARGET httplib::httplib)
  string(APPEND PENSTOCK_EXPORT_FINDS "find_dependency(httplib)\n")
endif()
if(TARGET PNG::PNG)
  string(APPEND PENSTOCK_EXPORT_FINDS "find_dependency(PNG)\n")
endif()
if(TARGET yaml-cpp::yaml-cpp)
  string(APPEND PENSTOCK_EXPORT_FINDS "find_dependency(yaml-cpp)
if(TARGET yaml-cpp AND NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
")
endif()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/penstock-config.cmake @ONLY CONTENT [=[
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(PkgConfig)
find_dependency(fmt)
find_dependency(CLI11)
find_dependency(nlohmann_json)
find_dependency(JPEG)
find_dependency(TBB)
@PENSTOCK_EXPORT_FINDS@
include("${CMAKE_CURRENT_LIST_DIR}/penstock-targets.cmake")
]=])
write_basic_package_version_file(${PROJECT_BINARY_DIR}/penstock-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/penstock-config.cmake ${PROJECT_BINARY_DIR}/penstock-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)

# `cmake --build FOLDER --target uninstall`
set(PENSTOCK_OWN_FOLDERS ${CMAKE_INSTALL_DOCDIR} ${CMAKE_INSTALL_INCLUDEDIR}/penstock ${CMAKE_INSTALL_LIBDIR}/cmake/penstock
                         ${CMAKE_INSTALL_LIBDIR}/penstock)
add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -D MANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
                                    -D BINDIR=${CMAKE_INSTALL_BINDIR} -D "OWN_FOLDERS=${PENSTOCK_OWN_FOLDERS}"
                                    -P ${PROJECT_SOURCE_DIR}/ci/cmake/uninstall.cmake
                  USES_TERMINAL VERBATIM)
