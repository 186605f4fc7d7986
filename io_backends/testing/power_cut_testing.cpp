// Threads: any thread calls the back ends. PowerCut counts in an atomic, so exactly one call gets the number
// of the cut. That call runs on_cut_. Calls on other threads that started earlier may still succeed.
#include "io_backends/testing/power_cut_testing.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/system/subprocess.hpp"
#include "io_backends/decorators/wrapper.hpp"

namespace penstock {
namespace {

std::string_view parent_of(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
}

Result<void> loop_disk(std::string_view command, const std::filesystem::path& folder,
                       std::string_view kind = "", std::string_view capacity = "") {
  std::vector<std::string> words{PENSTOCK_TESTBED "/loop_disk", std::string(command), folder.string()};
  if (!kind.empty()) words.emplace_back(kind);
  if (!capacity.empty()) words.insert(words.end(), {"320M", std::string(capacity)});
  PENSTOCK_ASSIGN(const int status, run_program(words, true));
  if (status == 0) return success();
  return make_error(status == 77 ? Errc::unsupported : Errc::io,
                    "ci/testbed/loop_disk " + std::string(command) + " " + std::string(kind) +
                        (status == 77 ? " cannot run here" : " failed"));
}

// The folder for disk images. Memory is as good as a disk for these tests, and syncs of other disks do not
// slow it down.
std::filesystem::path folder_for_images() {
  constexpr uintmax_t kEnough = uintmax_t{1} << 30U;
  std::error_code failed;
  const std::filesystem::path memory = "/dev/shm";
  const auto space = std::filesystem::space(memory, failed);
  const bool fits = !failed && space.available >= kEnough && ::access(memory.c_str(), W_OK) == 0;
  return fits ? memory : std::filesystem::temp_directory_path();
}

// Does publish() in separate steps, so that a cut can come between them. `publish` gives the object its name,
// and syncs its bytes if its argument asks for that. `sync` syncs a folder.
template <class Publish, class Sync>
Result<void> publish_in_steps(std::string_view name, Durability wanted, Publish publish, Sync sync) {
  PENSTOCK_TRY(publish(wanted == Durability::file_and_name ? Durability::file : wanted));
  if (wanted != Durability::file_and_name) return success();
  for (std::string_view above = name; !above.empty();) {
    above = parent_of(above);
    PENSTOCK_TRY(sync(above));
  }
  return success();
}

class CutReader final : public ReaderWrapper {
 public:
  CutReader(std::unique_ptr<Reader> inner, std::string_view name, PowerCut& power)
      : ReaderWrapper(std::move(inner)), name_(name), power_(power) {}

  Result<uint64_t> size() override {
    PENSTOCK_TRY(power_.check_power("cannot inspect", name_));
    return inner().size();
  }
  Result<void> read_at(uint64_t offset, std::span<std::byte> out) override {
    PENSTOCK_TRY(power_.check_power("cannot read", name_));
    return inner().read_at(offset, out);
  }
  Result<std::span<const std::byte>> view(uint64_t offset, uint64_t length) override {
    PENSTOCK_TRY(power_.check_power("cannot read", name_));
    return inner().view(offset, length);
  }

 private:
  const std::string name_;
  PowerCut& power_;
};

class CutWriter final : public WriterWrapper {
 public:
  CutWriter(std::unique_ptr<Writer> inner, Namespace& names, std::string_view name, PowerCut& power)
      : WriterWrapper(std::move(inner)), names_(names), name_(name), power_(power) {}

  Result<void> append(std::span<const std::byte> bytes) override {
    PENSTOCK_TRY(power_.step("cannot write", name_));
    return inner().append(bytes);
  }
  Result<void> append(std::span<const std::span<const std::byte>> pieces) override {
    return Writer::append(pieces);
  }
  Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    PENSTOCK_TRY(power_.step("cannot write", name_));
    return inner().write_at(offset, bytes);
  }
  Result<void> publish(Durability wanted, IfExists if_exists) override {
    return publish_in_steps(
        name_, wanted,
        [&](Durability durability) -> Result<void> {
          PENSTOCK_TRY(power_.step("cannot publish", name_));
          return inner().publish(durability, if_exists);
        },
        [&](std::string_view folder) -> Result<void> {
          PENSTOCK_TRY(power_.step("cannot sync folder", folder));
          return names_.sync_dir(folder);
        });
  }

 private:
  Namespace& names_;
  const std::string name_;
  PowerCut& power_;
};

class CutNamespace final : public NamespaceWrapper {
 public:
  CutNamespace(Namespace& inner, PowerCut& power) : NamespaceWrapper(inner), power_(power) {}

  Result<void> list_all(std::string_view folder, const std::function<bool(const Entry&)>& visit,
                        const std::function<void(std::string_view name)>& skipped) override {
    PENSTOCK_TRY(power_.check_power("cannot list", folder));
    return inner().list_all(folder, visit, skipped);
  }
  Result<Entry> stat(std::string_view name) override {
    PENSTOCK_TRY(power_.check_power("cannot inspect", name));
    return inner().stat(name);
  }
  Result<void> make_folders(std::string_view folder) override {
    PENSTOCK_TRY(power_.step("cannot make folder", folder));
    return inner().make_folders(folder);
  }
  Result<void> rename_noreplace(std::string_view from, std::string_view to) override {
    PENSTOCK_TRY(power_.step("cannot rename", from));
    return inner().rename_noreplace(from, to);
  }
  Result<void> remove(std::string_view name) override {
    PENSTOCK_TRY(power_.step("cannot remove", name));
    return inner().remove(name);
  }
  Result<void> sync_dir(std::string_view folder) override {
    PENSTOCK_TRY(power_.step("cannot sync folder", folder));
    return inner().sync_dir(folder);
  }
  Result<std::unique_ptr<Lock>> lock(std::string_view name) override {
    PENSTOCK_TRY(power_.step("cannot lock", name));
    return inner().lock(name);
  }
  Result<uint64_t> free_bytes() override {
    PENSTOCK_TRY(power_.check_power("cannot ask for the free space of", ""));
    return inner().free_bytes();
  }

 private:
  PowerCut& power_;
};

class CutBackend final : public BackendWrapper {
 public:
  CutBackend(std::unique_ptr<Backend> backend, PowerCut& power)
      : BackendWrapper(std::move(backend)), power_(power), names_(inner().names(), power) {}

  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    PENSTOCK_TRY(power_.check_power("cannot open", name));
    PENSTOCK_ASSIGN(auto reader, inner().open(name));
    return std::make_unique<CutReader>(std::move(reader), name, power_);
  }
  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint) override {
    PENSTOCK_TRY(power_.step("cannot create", name));
    PENSTOCK_ASSIGN(auto writer, inner().create(name, bytes_hint));
    return std::make_unique<CutWriter>(std::move(writer), inner().names(), name, power_);
  }
  Result<uint64_t> read_object(std::string_view name, uint64_t length_hint,
                               std::span<std::byte> out) override {
    PENSTOCK_TRY(power_.check_power("cannot open", name));
    return inner().read_object(name, length_hint, out);
  }
  Result<std::unique_ptr<Queue>> queue(size_t depth) override { return Backend::queue(depth); }
  Namespace& names() override { return names_; }

 private:
  PowerCut& power_;
  CutNamespace names_;
};

class LyingWriter final : public WriterWrapper {
 public:
  LyingWriter(std::unique_ptr<Writer> inner, Namespace& names, std::string_view name, const Skips& skips)
      : WriterWrapper(std::move(inner)), names_(names), name_(name), skips_(skips) {}

  Result<void> publish(Durability wanted, IfExists if_exists) override {
    return publish_in_steps(
        name_, wanted,
        [&](Durability durability) {
          const bool skipped = syncs(durability) && skips_(Synced::bytes, name_);
          return inner().publish(skipped ? Durability::visible : durability, if_exists);
        },
        [&](std::string_view folder) {
          return skips_(Synced::folder, folder) ? success() : names_.sync_dir(folder);
        });
  }

 private:
  Namespace& names_;
  const std::string name_;
  const Skips& skips_;
};

class LyingNamespace final : public NamespaceWrapper {
 public:
  LyingNamespace(Namespace& inner, const Skips& skips) : NamespaceWrapper(inner), skips_(skips) {}
  Result<void> sync_dir(std::string_view folder) override {
    return skips_(Synced::folder, folder) ? success() : inner().sync_dir(folder);
  }

 private:
  const Skips& skips_;
};

class LyingBackend final : public BackendWrapper {
 public:
  LyingBackend(std::unique_ptr<Backend> backend, Skips skips)
      : BackendWrapper(std::move(backend)), skips_(std::move(skips)), names_(inner().names(), skips_) {}

  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint) override {
    PENSTOCK_ASSIGN(auto writer, inner().create(name, bytes_hint));
    return std::make_unique<LyingWriter>(std::move(writer), inner().names(), name, skips_);
  }
  Namespace& names() override { return names_; }

 private:
  const Skips skips_;
  LyingNamespace names_;
};

}  // namespace

Result<void> shut_down_file_system(const std::filesystem::path& path) {
  constexpr uint32_t kWithoutLog =
      // Nothing more is written to the device, not even the last entries of the journal.
      2;
  const unsigned long request = _IOR('X', 125, uint32_t);
  const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return errno_error(errno, "cannot open", path.string());
  uint32_t how = kWithoutLog;
  if (::ioctl(folder.get(), request, &how) != 0)
    return errno_error(errno, "cannot shut down the file system of", path.string());
  return success();
}

Result<std::unique_ptr<LoopDisk>> LoopDisk::make(std::string_view kind, std::string_view capacity) {
  std::string folder = (folder_for_images() / "penstock-disk-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return errno_error(errno, "cannot make", folder);
  auto disk = std::unique_ptr<LoopDisk>(new LoopDisk(folder));
  PENSTOCK_TRY(loop_disk("up", folder, kind, capacity));
  return disk;
}

LoopDisk::~LoopDisk() {
  static_cast<void>(loop_disk("down", folder_).ok());
  ::rmdir(folder_.c_str());
}

Result<void> LoopDisk::mend() const {
  return loop_disk("mend", folder_);
}

Result<void> LoopDisk::restart() const {
  return loop_disk("remount", folder_);
}

Result<void> LoopDisk::sync() const {
  const Fd folder(::open(path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::syncfs(folder.get()) != 0) return errno_error(errno, "cannot sync", path().string());
  return success();
}

Result<void> PowerCut::step(std::string_view operation, std::string_view name) {
  if (++count_ == cut_operation_) on_cut_();
  return check_power(operation, name);
}

Result<void> PowerCut::check_power(std::string_view operation, std::string_view name) const {
  if (happened()) return errno_error(EIO, "the power is cut: " + std::string(operation), name);
  return success();
}

std::unique_ptr<Backend> cut_off(std::unique_ptr<Backend> inner, PowerCut& power) {
  return std::make_unique<CutBackend>(std::move(inner), power);
}

std::unique_ptr<Backend> lying(std::unique_ptr<Backend> inner, Skips skips) {
  return std::make_unique<LyingBackend>(std::move(inner), std::move(skips));
}

}  // namespace penstock
