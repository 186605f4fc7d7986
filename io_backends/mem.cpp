// The back end `mem`: memory of this process. All back ends of the process with the same path ("mem:scratch")
// share one store, which exists until the process ends. Other processes do not see it.
//
// Threads: any thread calls the back end, its Namespace and a MemReader. One thread at a time uses a
// MemWriter.
// Lock: Store::mutex guards the tree and `locked_names`: shared for reading, exclusive for changes. It does
// not guard the bytes of an object, which never change after they have a name. Each Reader holds the bytes by
// a shared_ptr, so it still has the old bytes when its object is replaced or removed. store_of() has a lock
// of its own, and no thread holds both locks at the same time.
// Memory: names, nodes and bytes are allocated, some while the lock is held. For bytes, catch_out_of_memory()
// turns a std::bad_alloc into ENOMEM. Elsewhere the exception reaches the caller, with the lock released.
// Ctrl-C: not checked, because nothing waits except for the lock.
// Crash: the store ends with the process.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/backend/sharded_counter.hpp"
#include "io_backends/core/system/cgroup.hpp"
#include "io_backends/core/text.hpp"

namespace penstock {

extern const BackendInfo backend_mem;

namespace {

using Bytes = std::vector<std::byte>;
using Blob = std::shared_ptr<const Bytes>;

// A node is a folder or an object, as in a file system.
struct Node {
  Blob blob;  // the object's bytes; null for a folder
  ByName<std::unique_ptr<Node>> children;
};

std::pair<std::string_view, std::string_view> split_last_part(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) return {"", name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

struct Store {
  std::shared_mutex mutex;
  Node root;
  std::set<std::string, std::less<>> locked_names;

  // Returns the node `name`, or null. The caller holds the mutex, shared or exclusive, as long as it uses the
  // node.
  Node* find(std::string_view name) {
    Node* node = &root;
    while (!name.empty()) {
      const auto child = node->children.find(take_part(name, '/'));
      if (child == node->children.end()) return nullptr;
      node = child->second.get();
    }
    return node;
  }

  // Returns the folder `folder`, and makes it and its parents if they are missing. Returns null if an object
  // has the name of one of these folders. The caller holds the mutex exclusively. Folders that were made
  // before a failure remain.
  Node* make_folder(std::string_view folder) {
    Node* node = &root;
    while (!folder.empty()) {
      const std::string_view part = take_part(folder, '/');
      auto child = node->children.find(part);
      if (child == node->children.end()) child = node->children.emplace(part, std::make_unique<Node>()).first;
      node = child->second.get();
      if (node->blob) return nullptr;
    }
    return node;
  }
};

// Returns the store for this path, and makes it at the first call. It exists until the process ends, so a
// tier that is opened again still has its objects. Any thread may call this.
std::shared_ptr<Store> store_of(std::string_view path) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<Store>, std::less<>> stores;
  const std::lock_guard lock(mutex);
  auto found = stores.find(path);
  if (found == stores.end()) found = stores.emplace(path, std::make_shared<Store>()).first;
  return found->second;
}

Error out_of_memory(std::string_view name) {
  return errno_error(ENOMEM, "no memory for", name);
}

// Runs `work`, which may allocate. If no memory is free, turns the exception into an error. At that point all
// locks that `work` took are released.
template <class Work>
Result<void> catch_out_of_memory(std::string_view name, Work work) {
  try {
    work();
    return success();
  } catch (const std::bad_alloc&) {
    return out_of_memory(name);
  } catch (const std::length_error&) {
    return out_of_memory(name);
  }
}

// Reads an object's bytes. Any thread may use it without a lock, because the bytes never change.
class MemReader final : public Reader {
 public:
  MemReader(Blob blob, std::string_view name, MovedCounter& moved)
      : blob_(std::move(blob)), name_(name), moved_(moved) {}

  Result<uint64_t> size() override { return uint64_t{blob_->size()}; }

  Result<void> read_at(uint64_t offset, std::span<std::byte> out) override {
    PENSTOCK_ASSIGN(const auto bytes, view(offset, out.size()));
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return success();
  }

  Result<std::span<const std::byte>> view(uint64_t offset, uint64_t length) override {
    if (offset > blob_->size() || length > blob_->size() - offset)
      return truncated_error(name_, offset, length);
    moved_.add_read(length);
    return std::span<const std::byte>(*blob_).subspan(offset, length);
  }

 private:
  const Blob blob_;
  const std::string name_;
  MovedCounter& moved_;
};

// Collects the bytes of one object; publish() puts them into the store. Only one thread at a time may use it.
// Until publish() only the writer has the bytes, so only publish() takes the lock. A writer that is destroyed
// before publish() frees the bytes.
class MemWriter final : public Writer {
 public:
  MemWriter(Store& store, std::string_view name, MovedCounter& moved)
      : store_(store), name_(name), moved_(moved) {}

  Result<void> reserve(uint64_t bytes) {
    return catch_out_of_memory(name_, [&] { bytes_.reserve(bytes); });
  }

  using Writer::append;
  Result<void> append(std::span<const std::byte> bytes) override {
    return write_bytes(position_, bytes, true);
  }
  Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    return write_bytes(offset, bytes, false);
  }

  Result<void> publish(Durability /*wanted*/, IfExists if_exists) override {
    PENSTOCK_TRY(check_unfinished());
    finished_ = true;
    Result<void> done;
    PENSTOCK_TRY(catch_out_of_memory(name_, [&] {
      // The append() calls have allocated the bytes, so only small allocations are made here. All checks are
      // done with the lock held, so that the check of IfExists::fail and the new name are one step.
      auto blob = std::make_shared<const Bytes>(std::move(bytes_));
      const auto [folder, last_part] = split_last_part(name_);
      const std::lock_guard lock(store_.mutex);
      Node* parent = store_.make_folder(folder);
      if (parent == nullptr) {
        done = errno_error(ENOTDIR, "cannot publish", name_);
        return;
      }
      const auto existing = parent->children.find(last_part);
      if (existing == parent->children.end()) {
        auto node = std::make_unique<Node>();
        node->blob = std::move(blob);
        parent->children.emplace(last_part, std::move(node));
      } else if (if_exists == IfExists::fail) {
        done = errno_error(EEXIST, "cannot publish", name_);
      } else if (!existing->second->blob) {
        done = errno_error(EISDIR, "cannot publish", name_);
      } else {
        existing->second->blob = std::move(blob);
      }
    }));
    return done;
  }

 private:
  Result<void> check_unfinished() const {
    if (!finished_) return success();
    return make_error(Errc::invalid_argument, "the writer of '" + name_ + "' has failed or published before");
  }

  Result<void> write_bytes(uint64_t offset, std::span<const std::byte> bytes, bool advances_position) {
    PENSTOCK_TRY(check_unfinished());
    auto done = catch_out_of_memory(name_, [&] {
      if (offset > bytes_.max_size() - bytes.size()) throw std::length_error("object");
      if (offset == bytes_.size()) {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
      } else {
        if (offset + bytes.size() > bytes_.size()) bytes_.resize(offset + bytes.size());
        std::copy(bytes.begin(), bytes.end(), bytes_.begin() + ptrdiff_t(offset));
      }
    });
    if (!done) {
      finished_ = true;
      return done;
    }
    if (advances_position) position_ += bytes.size();
    moved_.add_written(bytes.size());
    return success();
  }

  Store& store_;
  const std::string name_;
  MovedCounter& moved_;
  Bytes bytes_;
  uint64_t position_ = 0;
  bool finished_ = false;
};

// A lock that lock() made on a name in the store. Any thread may destroy it. The destructor takes
// Store::mutex and allocates nothing. It does not remove the object of that name.
class MemLock final : public Lock {
 public:
  MemLock(std::shared_ptr<Store> store, std::string_view name) : store_(std::move(store)), name_(name) {}
  ~MemLock() override {
    const std::lock_guard lock(store_->mutex);
    store_->locked_names.erase(name_);
  }

 private:
  const std::shared_ptr<Store> store_;
  const std::string name_;
};

class MemNamespace final : public Namespace {
 public:
  explicit MemNamespace(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  // Lists a folder. It never calls `skipped`, because the store has only objects and folders.
  Result<void> list_all(std::string_view folder, const std::function<bool(const Entry&)>& visit,
                        const std::function<void(std::string_view name)>& /*skipped*/) override {
    PENSTOCK_TRY(check_folder_name(folder));
    // The entries are copied while the lock is held, and `visit` is called without it. `visit` may use the
    // store, and would wait for the lock for ever.
    std::vector<Entry> entries;
    {
      const std::shared_lock lock(store_->mutex);
      const Node* node = store_->find(folder);
      if (node == nullptr || node->blob) return errno_error(ENOENT, "cannot list", folder);
      const std::string prefix = folder.empty() ? "" : std::string(folder) + "/";
      for (const auto& [name, child] : node->children)
        entries.push_back({prefix + name, child->blob ? child->blob->size() : 0, !child->blob});
    }
    for (const Entry& entry : entries)
      if (!visit(entry)) break;
    return success();
  }

  Result<Entry> stat(std::string_view name) override {
    PENSTOCK_TRY(check_folder_name(name));
    const std::shared_lock lock(store_->mutex);
    const Node* node = store_->find(name);
    if (node == nullptr) return errno_error(ENOENT, "cannot inspect", name);
    return Entry{std::string(name), node->blob ? node->blob->size() : 0, !node->blob};
  }

  Result<void> make_folders(std::string_view folder) override {
    PENSTOCK_TRY(check_folder_name(folder));
    const std::lock_guard lock(store_->mutex);
    if (store_->make_folder(folder) == nullptr) return errno_error(ENOTDIR, "cannot make folder", folder);
    return success();
  }

  Result<void> rename_noreplace(std::string_view from, std::string_view to) override {
    PENSTOCK_TRY(check_object_name(from));
    PENSTOCK_TRY(check_object_name(to));
    const auto [from_folder, from_last] = split_last_part(from);
    const auto [to_folder, to_last] = split_last_part(to);
    // All checks are done before extract(), because a failure after it would lose the node. The lock is held
    // from the first check to the end, so that no other thread changes the tree meanwhile. After extract()
    // only an allocation can fail (of the new key, or of a larger table), with a std::bad_alloc.
    const std::lock_guard lock(store_->mutex);
    if (store_->find(from) == nullptr) return errno_error(ENOENT, "cannot rename", from);
    if (store_->find(to) != nullptr) return errno_error(EEXIST, "cannot rename to", to);
    if (to.starts_with(std::string(from) + "/")) return errno_error(EINVAL, "cannot rename to", to);
    Node* target = store_->find(to_folder);
    if (target == nullptr || target->blob) return errno_error(ENOENT, "cannot rename to", to);
    Node* source = store_->find(from_folder);
    auto node = source->children.extract(source->children.find(from_last));
    node.key() = std::string(to_last);
    target->children.insert(std::move(node));
    return success();
  }

  Result<void> remove(std::string_view name) override {
    PENSTOCK_TRY(check_object_name(name));
    const auto [folder, last_part] = split_last_part(name);
    const std::lock_guard lock(store_->mutex);
    const Node* node = store_->find(name);
    if (node == nullptr) return errno_error(ENOENT, "cannot remove", name);
    if (!node->children.empty()) return errno_error(ENOTEMPTY, "cannot remove", name);
    Node* parent = store_->find(folder);
    parent->children.erase(parent->children.find(last_part));
    return success();
  }

  Result<void> sync_dir(std::string_view folder) override {
    PENSTOCK_TRY(check_folder_name(folder));
    const std::shared_lock lock(store_->mutex);
    const Node* node = store_->find(folder);
    if (node == nullptr || node->blob) return errno_error(ENOENT, "cannot sync folder", folder);
    return success();
  }

  Result<std::unique_ptr<Lock>> lock(std::string_view name) override {
    PENSTOCK_TRY(check_object_name(name));
    const auto [folder, last_part] = split_last_part(name);
    const std::lock_guard lock(store_->mutex);
    Node* parent = store_->make_folder(folder);
    if (parent == nullptr) return errno_error(ENOTDIR, "cannot lock", name);
    // Makes the empty object with the name of the lock. It remains after the lock is released, as a lock file
    // does on other back ends. If another holder has the lock, the code below fails with `busy` and does not
    // wait.
    auto& node = parent->children[std::string(last_part)];
    if (!node) node = std::make_unique<Node>(Node{std::make_shared<const Bytes>(), {}});
    if (!node->blob) return errno_error(EISDIR, "cannot lock", name);
    if (!store_->locked_names.emplace(name).second)
      return make_error(Errc::busy, "this process has already locked '{}'", name);
    return std::unique_ptr<Lock>(std::make_unique<MemLock>(store_, name));
  }

  // Returns the memory that is available without swapping, as the kernel reports it. Takes no lock.
  Result<uint64_t> free_bytes() override {
    if (const uint64_t bytes = available_memory(); bytes != 0) return bytes;
    return make_error(Errc::unsupported, "the available memory of this machine is unknown");
  }

 private:
  const std::shared_ptr<Store> store_;
};

class MemBackend final : public Backend {
 public:
  explicit MemBackend(std::string_view path) : store_(store_of(path)), names_(store_) {
    caps_.zero_copy = true;
    caps_.write_at = true;
    caps_.atomic_rename = true;
    caps_.volatile_memory = true;
  }

  const Caps& caps() const override { return caps_; }

  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    PENSTOCK_ASSIGN(Blob blob, find(name));
    return std::make_unique<MemReader>(std::move(blob), name, moved_);
  }

  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint) override {
    PENSTOCK_TRY(check_object_name(name));
    auto writer = std::make_unique<MemWriter>(*store_, name, moved_);
    PENSTOCK_TRY(writer->reserve(bytes_hint));
    return std::unique_ptr<Writer>(std::move(writer));
  }

  Result<uint64_t> read_object(std::string_view name, uint64_t length_hint,
                               std::span<std::byte> out) override {
    PENSTOCK_TRY(check_read_object(name, length_hint, out.size()));
    PENSTOCK_ASSIGN(const Blob blob, find(name));
    const uint64_t length = length_hint == 0 ? blob->size() : length_hint;
    PENSTOCK_TRY(check_fits(name, length, out.size()));
    if (length > blob->size()) return truncated_error(name, 0, length);
    if (length != 0) std::memcpy(out.data(), blob->data(), length);
    moved_.add_read(length);
    return length;
  }

  Namespace& names() override { return names_; }
  MovedBytes moved_bytes() const override { return moved_.sum(); }

 private:
  // Returns the bytes of the object. It holds the lock only while it looks for the name. After that the
  // returned shared_ptr keeps the bytes. open() and read_object() call it.
  Result<Blob> find(std::string_view name) {
    PENSTOCK_TRY(check_object_name(name));
    const std::shared_lock lock(store_->mutex);
    const Node* node = store_->find(name);
    if (node == nullptr) return errno_error(ENOENT, "cannot open", name);
    if (!node->blob) return errno_error(EISDIR, "cannot open", name);
    return node->blob;
  }

  const std::shared_ptr<Store> store_;
  MemNamespace names_;
  Caps caps_;
  MovedCounter moved_;
};

Result<std::unique_ptr<Backend>> make_mem(std::string_view path, const Options& /*options*/) {
  return std::make_unique<MemBackend>(path);
}

}  // namespace

const BackendInfo backend_mem{
    .name = "mem",
    .summary = "memory of this process (any path); its content is lost when the process ends",
    .make = make_mem,
};

}  // namespace penstock
