// Threads: any thread calls a machine and its back ends. One thread at a time calls a Writer.
// Lock: State::mutex is held while the names of a disk are read or changed. It is not held while an open
// Reader reads, whose bytes never change, or while the visitor of list() runs. publish() holds it for all its
// steps, so only a cut that cut_at() planned comes between them.
// Atomic: `boots` is read without the lock. A Reader, Writer or Lock remembers its value from its creation.
// If the value has changed, the power was cut in between, and the call fails.
// Memory: everything allocates, also with the mutex held. An exception releases it.
// Ctrl-C: this file does not check for a signal, because nothing waits except for the mutex.
// Crash: all disks are in memory and end with the process.
#include "io_backends/testing/forgetful_testing.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/backend/sharded_counter.hpp"
#include "io_backends/testing/forgetful_disk_testing.hpp"

namespace penstock {
namespace {

using Blob = ForgetfulDisk::Blob;
using Node = ForgetfulDisk::Node;

struct Disk {
  ForgetfulDisk files;
  std::set<std::string, std::less<>> locked;
};

Error off_error(std::string_view operation, std::string_view name) {
  return errno_error(EIO, "the machine is off: " + std::string(operation), name);
}

std::string_view parent_of(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
}
std::string_view last_of(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

}  // namespace

struct ForgetfulMachine::State {
  std::mutex mutex;  // guards all members except `boots`
  std::map<std::string, Disk, std::less<>> disks;
  uint64_t operations = 0;
  uint64_t cut_at = UINT64_MAX;
  std::atomic<uint64_t> boots{1};  // odd: on, even: off; each power_on() and cut adds one
  bool off() const { return boots % 2 == 0; }

  Disk& disk(std::string_view name) { return disks.try_emplace(std::string(name)).first->second; }
  // The caller holds the mutex.
  void cut() {
    if (!off()) ++boots;
  }

  // Counts a change, and cuts the power if a cut is planned for this change. The caller holds the mutex.
  // `boot`: the boot in which the caller's Writer or Lock was made; 0: any.
  Result<void> step(std::string_view operation, std::string_view name, uint64_t boot = 0) {
    if (!off() && ++operations >= cut_at) cut();
    return check_power(operation, name, boot);
  }
  // Fails with EIO if the machine is off, or was switched off since `boot`. Needs no mutex.
  Result<void> check_power(std::string_view operation, std::string_view name, uint64_t boot = 0) const {
    if (off() || (boot != 0 && boot != boots)) return off_error(operation, name);
    return success();
  }
};

namespace {

using State = ForgetfulMachine::State;

// Returns the folder and makes missing ones. The caller holds the mutex.
Result<Node*> make_folder(State& state, Disk& disk, std::string_view folder) {
  Node* node = &disk.files.root();
  for (std::string_view rest = folder; !rest.empty();) {
    const size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const auto child = node->children.find(part);
    if (child != node->children.end()) {
      node = child->second;
    } else {
      PENSTOCK_TRY(state.step("cannot make folder", folder));
      node = &disk.files.add(*node, part, nullptr, true);
    }
    if (!node->is_folder()) return errno_error(ENOTDIR, "cannot make folder", folder);
  }
  return node;
}

// Counts one operation and puts the entries of the folder on the disk. The caller holds the mutex.
Result<void> sync_folder(State& state, Disk& disk, std::string_view folder, uint64_t boot = 0) {
  PENSTOCK_TRY(state.step("cannot sync folder", folder, boot));
  Node* node = disk.files.find(folder);
  if (node == nullptr || !node->is_folder()) return errno_error(ENOENT, "cannot sync folder", folder);
  disk.files.sync(*node);
  return success();
}

// A Reader of a disk. It takes no lock: it shares the bytes with the disk, and they never change.
class ForgetfulReader final : public Reader {
 public:
  ForgetfulReader(State& state, Blob blob, std::string_view name, MovedCounter& moved)
      : state_(state), boot_(state.boots), blob_(std::move(blob)), name_(name), moved_(moved) {}

  Result<uint64_t> size() override {
    PENSTOCK_TRY(state_.check_power("cannot inspect", name_, boot_));
    return uint64_t{blob_->size()};
  }
  Result<void> read_at(uint64_t offset, std::span<std::byte> out) override {
    PENSTOCK_TRY(state_.check_power("cannot read", name_, boot_));
    if (offset > blob_->size() || out.size() > blob_->size() - offset)
      return truncated_error(name_, offset, out.size());
    if (!out.empty()) std::memcpy(out.data(), blob_->data() + offset, out.size());
    moved_.add_read(out.size());
    return success();
  }

 private:
  const State& state_;
  const uint64_t boot_;
  const Blob blob_;
  const std::string name_;
  MovedCounter& moved_;
};

class ForgetfulWriter final : public Writer {
 public:
  ForgetfulWriter(State& state, Disk& disk, std::string_view name, MovedCounter& moved)
      : state_(state), disk_(disk), boot_(state.boots), name_(name), moved_(moved) {}

  using Writer::append;
  Result<void> append(std::span<const std::byte> bytes) override {
    PENSTOCK_TRY(put(position_, bytes));
    position_ += bytes.size();
    return success();
  }
  Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    return put(offset, bytes);
  }

  // The steps are: sync the bytes, give the name, sync each folder above. Each step is one operation. If a
  // cut is planned for one step, the earlier steps remain done.
  Result<void> publish(Durability wanted, IfExists if_exists) override {
    const std::lock_guard lock(state_.mutex);
    if (finished_) return finished_writer_error(name_);
    finished_ = true;
    if (syncs(wanted)) PENSTOCK_TRY(state_.step("cannot sync", name_, boot_));
    PENSTOCK_TRY(state_.step("cannot publish", name_, boot_));
    Node* folder = disk_.files.find(parent_of(name_));
    if (folder == nullptr || !folder->is_folder()) return errno_error(ENOENT, "cannot publish", name_);
    if (const auto there = folder->children.find(last_of(name_)); there != folder->children.end()) {
      if (if_exists == IfExists::fail) return errno_error(EEXIST, "cannot publish", name_);
      if (there->second->is_folder()) return errno_error(EISDIR, "cannot publish", name_);
    }
    disk_.files.add(*folder, last_of(name_),
                    std::make_shared<const std::vector<std::byte>>(std::move(bytes_)), syncs(wanted));
    if (wanted != Durability::file_and_name) return success();
    for (std::string_view above = name_; !above.empty();) {
      above = parent_of(above);
      PENSTOCK_TRY(sync_folder(state_, disk_, above, boot_));
    }
    return success();
  }

 private:
  Result<void> put(uint64_t offset, std::span<const std::byte> bytes) {
    if (finished_) return finished_writer_error(name_);
    {
      const std::lock_guard lock(state_.mutex);
      if (auto on = state_.step("cannot write", name_, boot_); !on) {
        finished_ = true;
        return on;
      }
    }
    // Without the lock: the bytes belong to this Writer until publish().
    if (offset + bytes.size() > bytes_.size()) bytes_.resize(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + ptrdiff_t(offset));
    moved_.add_written(bytes.size());
    return success();
  }

  State& state_;
  Disk& disk_;
  const uint64_t boot_;
  const std::string name_;
  MovedCounter& moved_;
  std::vector<std::byte> bytes_;
  uint64_t position_ = 0;
  bool finished_ = false;
};

class ForgetfulLock final : public Lock {
 public:
  ForgetfulLock(State& state, Disk& disk, std::string_view name)
      : state_(state), disk_(disk), boot_(state.boots), name_(name) {}
  ~ForgetfulLock() override {
    const std::lock_guard lock(state_.mutex);
    // After a cut the lock has ended already, and another holder may have it.
    if (boot_ == state_.boots) disk_.locked.erase(name_);
  }

 private:
  State& state_;
  Disk& disk_;
  const uint64_t boot_;
  const std::string name_;
};

class ForgetfulNamespace final : public Namespace {
 public:
  ForgetfulNamespace(State& state, Disk& disk) : state_(state), disk_(disk) {}

  // Skips nothing: the disk has only files and folders.
  Result<void> list_all(std::string_view folder, const std::function<bool(const Entry&)>& visit,
                        const std::function<void(std::string_view name)>& /*skipped*/) override {
    PENSTOCK_TRY(check_folder_name(folder));
    std::vector<Entry> entries;  // copied, because a visitor may use the disk, which takes the mutex
    {
      const std::lock_guard lock(state_.mutex);
      PENSTOCK_TRY(state_.check_power("cannot list", folder));
      const Node* node = disk_.files.find(folder);
      if (node == nullptr || !node->is_folder()) return errno_error(ENOENT, "cannot list", folder);
      const std::string prefix = folder.empty() ? "" : std::string(folder) + "/";
      for (const auto& [name, child] : node->children) entries.push_back(entry_of(prefix + name, *child));
    }
    for (const Entry& entry : entries)
      if (!visit(entry)) break;
    return success();
  }

  Result<Entry> stat(std::string_view name) override {
    PENSTOCK_TRY(check_folder_name(name));
    const std::lock_guard lock(state_.mutex);
    PENSTOCK_TRY(state_.check_power("cannot inspect", name));
    const Node* node = disk_.files.find(name);
    if (node == nullptr) return errno_error(ENOENT, "cannot inspect", name);
    return entry_of(std::string(name), *node);
  }

  Result<void> make_folders(std::string_view folder) override {
    PENSTOCK_TRY(check_folder_name(folder));
    const std::lock_guard lock(state_.mutex);
    PENSTOCK_TRY(state_.check_power("cannot make folder", folder));
    PENSTOCK_TRY(make_folder(state_, disk_, folder));
    return success();
  }

  Result<void> rename_noreplace(std::string_view from, std::string_view to) override {
    PENSTOCK_TRY(check_object_name(from));
    PENSTOCK_TRY(check_object_name(to));
    const std::lock_guard lock(state_.mutex);
    PENSTOCK_TRY(state_.step("cannot rename", from));
    Node* node = disk_.files.find(from);
    if (node == nullptr) return errno_error(ENOENT, "cannot rename", from);
    if (disk_.files.find(to) != nullptr) return errno_error(EEXIST, "cannot rename to", to);
    if (to.starts_with(std::string(from) + "/")) return errno_error(EINVAL, "cannot rename to", to);
    Node* folder = disk_.files.find(parent_of(to));
    if (folder == nullptr || !folder->is_folder()) return errno_error(ENOENT, "cannot rename to", to);
    disk_.files.move(*node, *folder, last_of(to));
    return success();
  }

  Result<void> remove(std::string_view name) override {
    PENSTOCK_TRY(check_object_name(name));
    const std::lock_guard lock(state_.mutex);
    PENSTOCK_TRY(state_.step("cannot remove", name));
    Node* node = disk_.files.find(name);
    if (node == nullptr) return errno_error(ENOENT, "cannot remove", name);
    if (!node->children.empty()) return errno_error(ENOTEMPTY, "cannot remove", name);
    disk_.files.remove(*node);
    return success();
  }

  Result<void> sync_dir(std::string_view folder) override {
    PENSTOCK_TRY(check_folder_name(folder));
    const std::lock_guard lock(state_.mutex);
    return sync_folder(state_, disk_, folder);
  }

  Result<std::unique_ptr<Lock>> lock(std::string_view name) override {
    PENSTOCK_TRY(check_object_name(name));
    const std::lock_guard lock(state_.mutex);
    PENSTOCK_TRY(state_.step("cannot lock", name));
    PENSTOCK_ASSIGN(Node* const folder, make_folder(state_, disk_, parent_of(name)));
    const auto there = folder->children.find(last_of(name));
    if (there == folder->children.end()) {
      disk_.files.add(*folder, last_of(name), std::make_shared<const std::vector<std::byte>>(), true);
    } else if (there->second->is_folder()) {
      return errno_error(EISDIR, "cannot lock", name);
    }
    if (!disk_.locked.emplace(name).second)
      return make_error(Errc::busy, "'" + std::string(name) + "' is locked by this process");
    return std::unique_ptr<Lock>(std::make_unique<ForgetfulLock>(state_, disk_, name));
  }

  Result<uint64_t> free_bytes() override {
    constexpr uint64_t kSize = uint64_t{1} << 40U;
    const std::lock_guard lock(state_.mutex);
    PENSTOCK_TRY(state_.check_power("cannot ask for the free space of", ""));
    return kSize - disk_.files.bytes();
  }

 private:
  static Entry entry_of(std::string name, const Node& node) {
    return {std::move(name), node.blob ? node.blob->size() : 0, node.is_folder()};
  }

  State& state_;
  Disk& disk_;
};

class ForgetfulBackend final : public Backend {
 public:
  ForgetfulBackend(State& state, Disk& disk) : state_(state), disk_(disk), names_(state, disk) {
    caps_.write_at = true;
    caps_.atomic_rename = true;
  }

  const Caps& caps() const override { return caps_; }

  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    PENSTOCK_TRY(check_object_name(name));
    const std::lock_guard lock(state_.mutex);
    PENSTOCK_TRY(state_.check_power("cannot open", name));
    const Node* node = disk_.files.find(name);
    if (node == nullptr) return errno_error(ENOENT, "cannot open", name);
    if (node->is_folder()) return errno_error(EISDIR, "cannot open", name);
    return std::unique_ptr<Reader>(std::make_unique<ForgetfulReader>(state_, node->blob, name, moved_));
  }

  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t /*bytes_hint*/) override {
    PENSTOCK_TRY(check_object_name(name));
    const std::lock_guard lock(state_.mutex);
    PENSTOCK_TRY(state_.step("cannot create", name));
    PENSTOCK_TRY(make_folder(state_, disk_, parent_of(name)));
    return std::unique_ptr<Writer>(std::make_unique<ForgetfulWriter>(state_, disk_, name, moved_));
  }

  Namespace& names() override { return names_; }
  MovedBytes moved_bytes() const override { return moved_.sum(); }

 private:
  State& state_;
  Disk& disk_;
  ForgetfulNamespace names_;
  Caps caps_;
  MovedCounter moved_;
};

}  // namespace

ForgetfulMachine::ForgetfulMachine() : state_(std::make_unique<State>()) {}
ForgetfulMachine::~ForgetfulMachine() = default;

std::unique_ptr<Backend> ForgetfulMachine::backend(std::string_view disk) {
  const std::lock_guard lock(state_->mutex);
  return std::make_unique<ForgetfulBackend>(*state_, state_->disk(disk));
}

void ForgetfulMachine::wipe(std::string_view disk) {
  const std::lock_guard lock(state_->mutex);
  state_->disk(disk).files = ForgetfulDisk();
}

uint64_t ForgetfulMachine::operations() const {
  const std::lock_guard lock(state_->mutex);
  return state_->operations;
}

void ForgetfulMachine::cut_at(uint64_t n) {
  const std::lock_guard lock(state_->mutex);
  state_->cut_at = n;
}

void ForgetfulMachine::cut() {
  const std::lock_guard lock(state_->mutex);
  state_->cut();
}

bool ForgetfulMachine::off() const {
  return state_->off();
}

void ForgetfulMachine::power_on(Kept kept, uint64_t seed) {
  const std::lock_guard lock(state_->mutex);
  // If the machine is on, its power is cut first, so `boots` always grows by two from one boot to the next.
  state_->cut();
  uint64_t number = 0;
  for (auto& [name, disk] : state_->disks) {
    disk.locked.clear();
    if (kept == Kept::none) disk.files.lose_all();
    if (kept == Kept::some) disk.files.lose_some(RandomStream(seed, name).substream(number++));
  }
  state_->operations = 0;
  state_->cut_at = UINT64_MAX;
  ++state_->boots;
}

namespace {

Result<std::unique_ptr<Backend>> make_forgetful(std::string_view path, const Options& /*options*/) {
  static ForgetfulMachine machine;
  return machine.backend(path);
}

}  // namespace

const BackendInfo backend_forgetful{
    .name = "forgetful",
    .summary = "a machine whose power can be cut, for tests",
    .make = make_forgetful,
};

}  // namespace penstock
