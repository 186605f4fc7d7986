#include "benchmarks/self/micro/bench_folder.hpp"

#include <cstdlib>

#include "io_backends/backend/buffer.hpp"

namespace penstock {

Result<std::unique_ptr<BenchFolder>> BenchFolder::make(const BackendInfo& info, uint64_t bytes) {
  std::unique_ptr<BenchFolder> folder(new BenchFolder);
  std::string name = (std::filesystem::temp_directory_path() / "penstock-microbench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return errno_error(errno, "cannot make", name);
  folder->path_ = name;
  PENSTOCK_ASSIGN(const Options options, Options::parse(info.options, {}, "option"));
  PENSTOCK_ASSIGN(folder->backend_, info.make(info.test_path(folder->path_), options));
  PENSTOCK_ASSIGN(const auto writer, folder->backend_->create(kObject, bytes));
  Buffer block(size_t{1} << 20U);
  std::fill_n(block.data(), block.capacity(), std::byte{0x5a});
  for (uint64_t done = 0; done < bytes; done += block.capacity())
    PENSTOCK_TRY(writer->append(block.first(std::min<uint64_t>(block.capacity(), bytes - done))));
  PENSTOCK_TRY(writer->publish(Durability::visible));
  return folder;
}

BenchFolder::~BenchFolder() {
  backend_.reset();
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::vector<const BackendInfo*> benchable_backends() {
  std::vector<const BackendInfo*> found;
  for (const BackendInfo* const info : backend_registry().present())
    if (!info->test_path("/tmp").empty()) found.push_back(info);
  return found;
}

}  // namespace penstock
