# Required: a threads library, oneTBB, fmt, CLI11, nlohmann-json, libjpeg-turbo. Everything else is optional. penstock_print_summary() and
# `penstock --version` list what is missing, and ctest shows the tests that need it as skipped.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(JPEG REQUIRED)
find_package(TBB REQUIRED)

# Where an optional library is installed and must not be used, as in a package of variants.
set(PENSTOCK_WITHOUT "" CACHE STRING "Optional libraries not to use, by their names in penstock --version, such as mpi;hdf5;liburing")
foreach(pair mpi:MPI pugixml:pugixml cpp-httplib:httplib yaml-cpp:yaml-cpp zlib:ZLIB libpng:PNG)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 package)
  if(name IN_LIST PENSTOCK_WITHOUT)
    set(CMAKE_DISABLE_FIND_PACKAGE_${package} ON)
  endif()
endforeach()

# penstock_check_modules(NAME PREFIX MODULE): pkg_check_modules() of an optional library.
macro(penstock_check_modules name prefix)
  if(NOT "${name}" IN_LIST PENSTOCK_WITHOUT)
    pkg_check_modules(${prefix} IMPORTED_TARGET GLOBAL QUIET ${ARGN})
  endif()
endmacro()

# penstock_optional(NAME TARGET WHAT [VERSION]): remembers whether TARGET exists, and its version, for the summary and
# `penstock --version`. WHAT is what the build lacks without it. Without VERSION it is what find_package() or pkg_check_modules() found.
function(penstock_optional name target what)
  set(present 0)
  set(version "")
  if(TARGET ${target})
    set(present 1)
    string(REGEX REPLACE "^PkgConfig::|::.*$" "" package "${target}")
    foreach(candidate IN ITEMS "${${package}_VERSION_STRING}" "${${package}_VERSION}" "${ARGN}")
      if(candidate)
        set(version "${candidate}")
      endif()
    endforeach()
  endif()
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_LIBRARIES "${name}|${present}|${version}|${what}")
endfunction()

# penstock_required(NAME TARGET [VERSION]): the same of a library without which nothing is built.
function(penstock_required name target)
  penstock_optional(${name} ${target} "" ${ARGN})
endfunction()

penstock_required(fmt fmt::fmt)
penstock_required(cli11 CLI11::CLI11)
penstock_required(nlohmann-json nlohmann_json::nlohmann_json)
pkg_check_modules(libjpeg QUIET libjpeg)  # find_package(JPEG) finds the version of the interface
penstock_required(libjpeg-turbo JPEG::JPEG ${libjpeg_VERSION})
penstock_required(onetbb TBB::tbb)

penstock_check_modules(isa-l isal libisal)
penstock_optional(isa-l PkgConfig::isal "CRC32C at memory speed (a portable table is used instead)")

penstock_check_modules(zstd zstd libzstd)
penstock_optional(zstd PkgConfig::zstd "how far samples compress (describe --content)")

penstock_check_modules(liburing uring liburing>=2.2)
penstock_optional(liburing PkgConfig::uring "many reads in flight from one thread (back end uring)")

penstock_check_modules(libcurl curl libcurl>=7.74)
penstock_optional(libcurl PkgConfig::curl "tiers in object stores (back end s3)")

find_package(pugixml QUIET)
penstock_optional(pugixml pugixml::pugixml "the answers of object stores (back end s3)")

# Some distributions have a CMake package of it, others (Debian 12) only a file for pkg-config.
find_package(httplib QUIET)
if(NOT TARGET httplib::httplib AND NOT CMAKE_DISABLE_FIND_PACKAGE_httplib)
  pkg_check_modules(httplib IMPORTED_TARGET GLOBAL QUIET cpp-httplib>=0.10)
  if(TARGET PkgConfig::httplib)
    add_library(httplib::httplib ALIAS PkgConfig::httplib)
  endif()
endif()
penstock_optional(cpp-httplib httplib::httplib "the page of a session in a browser (profile serve)")

set(MPI_DETERMINE_LIBRARY_VERSION ON)
find_package(MPI QUIET COMPONENTS C)
set(mpi_version "unknown (standard ${MPI_C_VERSION})")
if("${MPI_C_LIBRARY_VERSION_STRING}" MATCHES "^([A-Za-z0-9()]+( MPI)?)[^.]*[^0-9.]([0-9]+\\.[0-9.]*[0-9])")
  set(mpi_version "${CMAKE_MATCH_3} (${CMAKE_MATCH_1})")
endif()
penstock_optional(mpi MPI::MPI_C "one job over the ranks that mpirun or srun starts, and files by MPI-IO (back end mpiio)"
                  "${mpi_version}")

# Debian calls the library without MPI hdf5-serial. The other one does not do: its header includes MPI's. Versions before 1.10 cannot read
# what penstock_hdf5_filters makes.
include(CheckCXXSourceCompiles)
foreach(name IN ITEMS hdf5-serial hdf5)
  penstock_check_modules(hdf5 ${name} ${name})
  if(TARGET PkgConfig::${name} AND NOT TARGET penstock_hdf5)
    set(CMAKE_REQUIRED_LIBRARIES PkgConfig::${name})
    check_cxx_source_compiles("#include <hdf5.h>
      #if !H5_VERSION_GE(1, 10, 0)
      #error
      #endif
      int main() { return int(H5open()); }" PENSTOCK_COMPILES_${name})
    unset(CMAKE_REQUIRED_LIBRARIES)
    if(PENSTOCK_COMPILES_${name})
      add_library(penstock_hdf5 ALIAS PkgConfig::${name})
      set(hdf5_version ${${name}_VERSION})
    endif()
  endif()
endforeach()
penstock_optional(hdf5 penstock_hdf5 "HDF5 files with filters that Penstock has no code for (szip, n-bit, scale-offset, plug-ins)"
                  ${hdf5_version})

find_package(yaml-cpp QUIET)
if(TARGET yaml-cpp AND NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
penstock_optional(yaml-cpp yaml-cpp::yaml-cpp "--config FILE.yaml, sweep, and train dlio")

find_package(ZLIB QUIET)
penstock_optional(zlib ZLIB::ZLIB "TFRecord, NPZ and HDF5 compressed with deflate (gzip, zlib), short Darshan logs")

find_package(PNG QUIET)
penstock_optional(libpng PNG::PNG "pictures as PNG (--set codec=png)")

# Found by its files: its own CMake package fails if it was built for OpenCL and OpenCL's headers are missing.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY AND NOT "onednn" IN_LIST PENSTOCK_WITHOUT)
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h line REGEX "^#define DNNL_VERSION_${part} ")
    string(REGEX MATCH "[0-9]+$" number "${line}")
    list(APPEND dnnl_numbers ${number})
  endforeach()
  string(REPLACE ";" "." dnnl_VERSION "${dnnl_numbers}")
  if(dnnl_VERSION VERSION_GREATER_EQUAL 2 AND dnnl_VERSION VERSION_LESS 4)
    add_library(dnnl::dnnl UNKNOWN IMPORTED)
    set_target_properties(dnnl::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
  endif()
endif()
penstock_optional(onednn dnnl::dnnl "a network that is really trained (train --accelerator cpu)")

if(PENSTOCK_TESTS)
  find_package(GTest QUIET)
  penstock_optional(googletest GTest::gtest "the test suite")
  pkg_check_modules(fuse3 IMPORTED_TARGET GLOBAL QUIET fuse3>=3.12)
  penstock_optional(fuse3 PkgConfig::fuse3 "a tier of limited bandwidth to test on (ci/testbed/limited_fs)")
endif()

if(PENSTOCK_BENCHMARKS)
  find_package(benchmark QUIET)
  penstock_optional(google-benchmark benchmark::benchmark "penstock_microbench, which measures Penstock's parts")
endif()

function(penstock_print_summary)
  get_property(rows GLOBAL PROPERTY PENSTOCK_LIBRARIES)
  foreach(name IN LISTS PENSTOCK_WITHOUT)
    if(NOT rows MATCHES "(^|;)${name}\\|0\\|")
      message(FATAL_ERROR "PENSTOCK_WITHOUT: '${name}' is not the name of an optional library, or it is used nevertheless")
    endif()
  endforeach()
  foreach(row IN LISTS rows)
    if(row MATCHES "^(.*)\\|0\\|\\|(.*)$")
      message(STATUS "penstock: without ${CMAKE_MATCH_1}: ${CMAKE_MATCH_2}")
    endif()
  endforeach()
endfunction()

# penstock_build_info(FILE): writes what `penstock --version` prints about this build (io_backends/core/build_info.hpp).
function(penstock_build_info file)
  get_property(rows GLOBAL PROPERTY PENSTOCK_LIBRARIES)
  set(libraries "")
  foreach(row IN LISTS rows)
    string(REGEX REPLACE "^(.*)\\|(.*)\\|(.*)\\|(.*)$" "    {\"\\1\", \\2 != 0, \"\\3\", \"\\4\"},\n" row "${row}")
    string(APPEND libraries "${row}")
  endforeach()
  set(versions "")
  foreach(library fmt nlohmann_json JPEG TBB ZLIB PNG CLI11 isal zstd uring curl pugixml httplib yaml-cpp dnnl MPI_C)
    if(${library}_VERSION)
      string(APPEND versions "    {\"${library}\", \"${${library}_VERSION}\"},\n")
    endif()
  endforeach()
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}" flags)
  string(REPLACE "\"" "'" flags "${flags}")
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [=[
// Written by CMake.
#include "io_backends/core/build_info.hpp"

#include <array>

namespace penstock {
namespace {

constexpr BuildInfo kBuild{"@PENSTOCK_VERSION@", "@CMAKE_CXX_COMPILER_ID@ @CMAKE_CXX_COMPILER_VERSION@",
                           "@CMAKE_BUILD_TYPE@", "@flags@", "@PENSTOCK_SANITIZE@"};
constexpr NamedText kVersions[] = {
@versions@};
constexpr Library kLibraries[] = {
@libraries@};

}  // namespace

const BuildInfo& build_info() { return kBuild; }
std::span<const NamedText> library_versions() { return kVersions; }
std::span<const Library> libraries() { return kLibraries; }

}  // namespace penstock
]=])
endfunction()
