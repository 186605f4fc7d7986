"""The Spack package of Penstock. From a checkout: copy this file to packages/penstock/package.py of a Spack repository, then

    spack dev-build --source-path CHECKOUT penstock@main

Licence: not chosen yet; ask the owner of the repository.
"""

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Penstock(CMakePackage):
    """Measures what each storage tier delivers to machine-learning training."""

    # The owner of the repository names its address here. `spack dev-build` does not need it.
    homepage = "https://penstock.invalid"
    git = "https://penstock.invalid/penstock.git"

    version("main", branch="main")

    variant("mpi", default=True, description="One job over MPI ranks, and files by MPI-IO (back end mpiio)")
    variant("hdf5", default=True, description="HDF5 files with filters that Penstock has no code for")
    variant("uring", default=True, description="Many reads in flight from one thread (back end uring)")
    variant("s3", default=True, description="Tiers in object stores (back end s3)")
    variant("onednn", default=False, description="A network that is really trained (train --accelerator cpu)")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("fmt@9:")
    depends_on("cli11@2.1:")
    depends_on("nlohmann-json@3.11:")
    depends_on("intel-oneapi-tbb")
    depends_on("libjpeg-turbo@2.1:")
    depends_on("isa-l")
    depends_on("zlib-api")
    depends_on("zstd")
    depends_on("libpng")
    depends_on("yaml-cpp@0.7:")
    depends_on("xxhash")
    depends_on("cpp-httplib@0.10:")
    depends_on("mpi", when="+mpi")
    depends_on("hdf5@1.10:", when="+hdf5")
    depends_on("liburing@2.2:", when="+uring")
    depends_on("curl@7.74:", when="+s3")
    depends_on("pugixml@1.10:", when="+s3")
    depends_on("onednn@2:3", when="+onednn")

    conflicts("platform=darwin")
    conflicts("platform=windows")
    conflicts("%gcc@:11", msg="Penstock is C++20: GCC 12 or newer")
    conflicts("%clang@:13", msg="Penstock is C++20: Clang 14 or newer")

    # What each variant brings, by the names of `penstock --version`.
    libraries = {"mpi": ["mpi"], "hdf5": ["hdf5"], "uring": ["liburing"], "s3": ["libcurl", "pugixml"], "onednn": ["onednn"]}

    def cmake_args(self):
        # A library of the system must not come in where the variant is off.
        without = [name for variant_name, names in self.libraries.items() if self.spec.satisfies(f"~{variant_name}") for name in names]
        return [self.define("PENSTOCK_TESTS", False), self.define("PENSTOCK_WITHOUT", without)]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_demo(self):
        with working_dir("demo", create=True):
            Executable(self.prefix.bin.penstock)("demo", "--quick")
