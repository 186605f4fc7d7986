// Threads: any thread calls the back end and its Namespace. One thread at a time calls a Writer.
// Lock: Meter::mutex_ guards counted_. begin() holds it while it lists all objects, so that other first calls
// wait for the sum. used_ is an atomic that changes without the lock.
// Memory: names, listings and errors allocate, in begin() under the lock.
// Ctrl-C: nothing here checks for a signal.
// Crash: the count is in memory only. The next process adds up the objects again.
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

class Meter {
 public:
  Meter(Namespace& names, std::uint64_t capacity) : names_(names), capacity_(capacity) {}

  // Adds up the sizes of the existing objects, once.
  Result<void> begin() {
    const std::lock_guard lock(mutex_);
    if (counted_) return success();
    PENSTOCK_ASSIGN(const std::uint64_t there, bytes_below(""));
    used_.fetch_add(there);
    counted_ = true;
    return success();
  }

  // Counts `bytes` more, or fails with no_space and counts none. Any thread, without the lock: the exchange
  // fails if another thread has changed used_ since the test, and then the test is repeated.
  Result<void> take(std::uint64_t bytes, std::string_view name) {
    std::uint64_t used = used_.load();
    do {
      if (bytes > capacity_ || used > capacity_ - bytes) return errno_error(ENOSPC, "cannot write", name);
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return success();
  }
  // Never below 0: growth that did not go through this back end was not counted.
  void give_back(std::uint64_t bytes) {
    std::uint64_t used = used_.load();
    while (!used_.compare_exchange_weak(used, used - std::min(used, bytes))) {
    }
  }
  std::uint64_t left() const { return capacity_ - std::min(capacity_, used_.load()); }

  // The size of the object `name`; 0 if it does not exist.
  std::uint64_t bytes_of(std::string_view name) {
    const auto entry = names_.stat(name);
    return entry && !entry->folder ? entry->bytes : 0;
  }

 private:
  Result<std::uint64_t> bytes_below(const std::string& folder) {
    std::uint64_t bytes = 0;
    std::vector<std::string> folders;
    auto listed = names_.list(folder, [&](const Entry& entry) {
      if (entry.folder && !entry.link) folders.push_back(entry.name);  // a link may lead to a parent folder
      bytes += entry.bytes;
      return true;
    });
    if (!listed && listed.error().code != Errc::not_found) return std::move(listed).error();
    for (const std::string& below : folders) {
      PENSTOCK_ASSIGN(const std::uint64_t more, bytes_below(below));
      bytes += more;
    }
    return bytes;
  }

  Namespace& names_;
  const std::uint64_t capacity_;
  std::atomic<std::uint64_t> used_{0};
  std::mutex mutex_;  // guards counted_
  bool counted_ = false;
};

// Passes itself to DecoratedWriter as the hook (wrapper.hpp), so around() gets each of its writes.
class CappedWriter final : public DecoratedWriter<CappedWriter> {
 public:
  CappedWriter(std::unique_ptr<Writer> inner, std::string_view name, Meter& meter)
      : DecoratedWriter(std::move(inner), name, *this), meter_(meter) {}
  // If the object was not published, its bytes are free again. publish() sets taken_ to 0.
  ~CappedWriter() override { meter_.give_back(taken_); }

  template <class Inner>
  Result<void> around(const BackendCall& write, Inner inner) {
    PENSTOCK_TRY(reserve(write.offset, write.bytes));
    return inner();
  }
  Result<void> publish(Durability wanted, IfExists if_exists) override {
    if (spent_) return spent_error(name());
    const std::uint64_t replaced = if_exists == IfExists::replace ? meter_.bytes_of(name()) : 0;
    spent_ = true;
    PENSTOCK_TRY(inner().publish(wanted, if_exists));
    taken_ = 0;
    meter_.give_back(replaced);
    return success();
  }

 private:
  // Takes from the meter the bytes by which a write up to offset + length makes the object grow.
  Result<void> reserve(std::uint64_t offset, std::uint64_t length) {
    if (spent_) return spent_error(name());
    const std::uint64_t end = offset > UINT64_MAX - length ? UINT64_MAX : offset + length;
    if (end <= taken_) return success();
    auto taken = meter_.take(end - taken_, name());
    if (taken) {
      taken_ = end;
    } else {
      spent_ = true;
    }
    return taken;
  }

  Meter& meter_;
  std::uint64_t taken_ = 0;
  bool spent_ = false;
};

class CappedNamespace final : public NamespaceWrapper {
 public:
  CappedNamespace(Namespace& inner, Meter& meter) : NamespaceWrapper(inner), meter_(meter) {}

  Result<void> remove(std::string_view name) override {
    PENSTOCK_TRY(meter_.begin());
    const std::uint64_t bytes = meter_.bytes_of(name);
    PENSTOCK_TRY(inner().remove(name));
    meter_.give_back(bytes);
    return success();
  }
  Result<std::uint64_t> free_bytes() override {
    PENSTOCK_TRY(meter_.begin());
    Result<std::uint64_t> below = inner().free_bytes();
    if (!below.ok() && below.error().code == Errc::unsupported) return meter_.left();
    if (!below.ok()) return below;
    return std::min(*below, meter_.left());
  }

 private:
  Meter& meter_;
};

class CappedBackend final : public BackendWrapper {
 public:
  CappedBackend(std::unique_ptr<Backend> backend, std::uint64_t capacity)
      : BackendWrapper(std::move(backend)),
        meter_(inner().names(), capacity),
        names_(inner().names(), meter_) {}

  Result<std::unique_ptr<Writer>> create(std::string_view name, std::uint64_t bytes_hint) override {
    PENSTOCK_TRY(check_object_name(name));
    PENSTOCK_TRY(meter_.begin());
    if (bytes_hint > meter_.left()) return errno_error(ENOSPC, "cannot reserve space for", name);
    PENSTOCK_ASSIGN(auto writer, inner().create(name, bytes_hint));
    return std::make_unique<CappedWriter>(std::move(writer), name, meter_);
  }
  Namespace& names() override { return names_; }

 private:
  Meter meter_;
  CappedNamespace names_;
};

}  // namespace

std::unique_ptr<Backend> capped(std::unique_ptr<Backend> inner, std::uint64_t capacity_bytes) {
  return std::make_unique<CappedBackend>(std::move(inner), capacity_bytes);
}

}  // namespace penstock
