// Threads: any thread calls the back end and its Namespace. One thread at a time calls a Writer.
// Lock: SpaceMeter::mutex_ guards has_counted_. count_existing() holds it while it adds up the sizes of all
// objects, so that other threads wait for the sum. used_bytes_ is an atomic that changes without the lock.
// Memory: names, listings and errors allocate. count_existing() allocates while it holds the lock.
// Ctrl-C: nothing here checks for a signal.
// Crash: the count is in memory only. The next process adds up the sizes again.
#include "io_backends/decorators/capped.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <string>
#include <vector>

#include "io_backends/decorators/wrapper.hpp"

namespace penstock {
namespace {

class SpaceMeter {
 public:
  SpaceMeter(Namespace& names, uint64_t capacity) : names_(names), capacity_(capacity) {}

  // Adds up the sizes of the existing objects. After it has succeeded once, it does nothing.
  Result<void> count_existing() {
    const std::lock_guard lock(mutex_);
    if (has_counted_) return success();
    PENSTOCK_ASSIGN(const uint64_t existing, bytes_below(""));
    used_bytes_.fetch_add(existing);
    has_counted_ = true;
    return success();
  }

  // Counts `bytes` more as used. If that would exceed the capacity, fails with no_space and counts none of
  // them. Any thread may call it, without a lock: if another thread changes used_bytes_ between the load and
  // the exchange, the exchange fails and the loop checks again.
  Result<void> use(uint64_t bytes, std::string_view name) {
    uint64_t used = used_bytes_.load();
    do {
      if (bytes > capacity_ || used > capacity_ - bytes) return errno_error(ENOSPC, "cannot write", name);
    } while (!used_bytes_.compare_exchange_weak(used, used + bytes));
    return success();
  }
  // Counts `bytes` less as used. The result is never below 0, even if bytes that were never counted are
  // released: another program may have written them.
  void release(uint64_t bytes) {
    uint64_t used = used_bytes_.load();
    while (!used_bytes_.compare_exchange_weak(used, used - std::min(used, bytes))) {
    }
  }
  uint64_t bytes_left() const { return capacity_ - std::min(capacity_, used_bytes_.load()); }

  // The size of the object `name`; 0 if it does not exist.
  uint64_t bytes_of(std::string_view name) {
    const auto entry = names_.stat(name);
    return entry && !entry->folder ? entry->bytes : 0;
  }

 private:
  Result<uint64_t> bytes_below(const std::string& folder) {
    uint64_t bytes = 0;
    std::vector<std::string> folders;
    auto list_result = names_.list(folder, [&](const Entry& entry) {
      // links to folders are not followed: one that leads to a parent folder would make the recursion endless
      if (entry.folder && !entry.link) folders.push_back(entry.name);
      bytes += entry.bytes;
      return true;
    });
    if (!list_result && list_result.error().code != Errc::not_found) return std::move(list_result).error();
    for (const std::string& subfolder : folders) {
      PENSTOCK_ASSIGN(const uint64_t subfolder_bytes, bytes_below(subfolder));
      bytes += subfolder_bytes;
    }
    return bytes;
  }

  Namespace& names_;
  const uint64_t capacity_;
  std::atomic<uint64_t> used_bytes_{0};
  std::mutex mutex_;  // guards has_counted_
  bool has_counted_ = false;
};

// A Writer that counts its bytes in the SpaceMeter. This class is its own hook (wrapper.hpp): DecoratedWriter
// calls around() for each write.
class CappedWriter final : public DecoratedWriter<CappedWriter> {
 public:
  CappedWriter(std::unique_ptr<Writer> inner, std::string_view name, SpaceMeter& meter)
      : DecoratedWriter(std::move(inner), name, *this), meter_(meter) {}
  // Frees the bytes of an object that was not published. After publish() counted_bytes_ is 0, so nothing is
  // freed.
  ~CappedWriter() override { meter_.release(counted_bytes_); }

  template <class Inner>
  Result<void> around(const BackendCall& write, Inner inner) {
    PENSTOCK_TRY(reserve(write.offset, write.bytes));
    return inner();
  }
  Result<void> publish(Durability wanted, IfExists if_exists) override {
    if (finished_) return finished_writer_error(name());
    const uint64_t replaced_bytes = if_exists == IfExists::replace ? meter_.bytes_of(name()) : 0;
    finished_ = true;
    PENSTOCK_TRY(inner().publish(wanted, if_exists));
    counted_bytes_ = 0;
    meter_.release(replaced_bytes);
    return success();
  }

 private:
  // Counts the bytes by which a write of `length` bytes at `offset` makes the object longer. Fails with
  // no_space if the tier has no room for them.
  Result<void> reserve(uint64_t offset, uint64_t length) {
    if (finished_) return finished_writer_error(name());
    const uint64_t end = offset > UINT64_MAX - length ? UINT64_MAX : offset + length;
    if (end <= counted_bytes_) return success();
    auto used = meter_.use(end - counted_bytes_, name());
    if (used) {
      counted_bytes_ = end;
    } else {
      finished_ = true;
    }
    return used;
  }

  SpaceMeter& meter_;
  uint64_t counted_bytes_ = 0;
  bool finished_ = false;
};

class CappedNamespace final : public NamespaceWrapper {
 public:
  CappedNamespace(Namespace& inner, SpaceMeter& meter) : NamespaceWrapper(inner), meter_(meter) {}

  Result<void> remove(std::string_view name) override {
    PENSTOCK_TRY(meter_.count_existing());
    const uint64_t bytes = meter_.bytes_of(name);
    PENSTOCK_TRY(inner().remove(name));
    meter_.release(bytes);
    return success();
  }
  Result<uint64_t> free_bytes() override {
    PENSTOCK_TRY(meter_.count_existing());
    Result<uint64_t> inner_free = inner().free_bytes();
    if (!inner_free.ok() && inner_free.error().code == Errc::unsupported) return meter_.bytes_left();
    if (!inner_free.ok()) return inner_free;
    return std::min(*inner_free, meter_.bytes_left());
  }

 private:
  SpaceMeter& meter_;
};

class CappedBackend final : public BackendWrapper {
 public:
  CappedBackend(std::unique_ptr<Backend> backend, uint64_t capacity)
      : BackendWrapper(std::move(backend)),
        meter_(inner().names(), capacity),
        names_(inner().names(), meter_) {}

  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint) override {
    PENSTOCK_TRY(check_object_name(name));
    PENSTOCK_TRY(meter_.count_existing());
    if (bytes_hint > meter_.bytes_left()) return errno_error(ENOSPC, "cannot reserve space for", name);
    PENSTOCK_ASSIGN(auto writer, inner().create(name, bytes_hint));
    return std::make_unique<CappedWriter>(std::move(writer), name, meter_);
  }
  Namespace& names() override { return names_; }

 private:
  SpaceMeter meter_;
  CappedNamespace names_;
};

}  // namespace

std::unique_ptr<Backend> capped(std::unique_ptr<Backend> inner, uint64_t capacity_bytes) {
  return std::make_unique<CappedBackend>(std::move(inner), capacity_bytes);
}

}  // namespace penstock
