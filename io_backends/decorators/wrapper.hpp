// Base classes of decorators. Each forwards every call to the wrapped object through a hook:
// `hook.around(call, inner)` gets the description of the call and a function `inner` that makes the call.
// around() returns the result of `inner` or an error. So a decorator consists of one hook and of overrides
// for the few calls that need more than the hook.
//
// There is no base class for a Queue. Each decorator has a Queue class of its own, with a FlightTable. The
// FlightTable replaces the decorated Readers in the operations by the wrapped ones.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "io_backends/backend/backend.hpp"
#include "io_backends/decorators/backend_call.hpp"

namespace penstock {

// A hook that makes the call and does nothing else.
struct ForwardingHook {
  template <class Inner>
  auto around(const BackendCall& /*call*/, Inner inner) {
    return inner();
  }
  static ForwardingHook& hook() {
    static ForwardingHook the_hook;
    return the_hook;
  }
};

// Returns how many bytes a successful call has read or written.
template <class T>
uint64_t bytes_moved(const BackendCall& call, const Result<T>& result) {
  if constexpr (std::is_same_v<T, uint64_t>)
    if (call.kind == CallKind::read_object) return *result;
  return call.bytes;
}

template <class Hook = ForwardingHook>
class DecoratedReader : public Reader {
 public:
  explicit DecoratedReader(std::unique_ptr<Reader> inner, std::string_view name = "",
                           Hook& hook = Hook::hook())
      : inner_(std::move(inner)), name_(name), hook_(hook) {}
  Reader& inner() { return *inner_; }
  const std::string& name() const { return name_; }
  void close() { inner_.reset(); }  // the Reader must not be used after this

  Result<uint64_t> size() override {
    return hook_.around({CallKind::size, name_}, [&] { return inner_->size(); });
  }
  Result<void> read_at(uint64_t offset, std::span<std::byte> out) override {
    return hook_.around({CallKind::read, name_, offset, out.size(), out},
                        [&] { return inner_->read_at(offset, out); });
  }
  Result<std::span<const std::byte>> view(uint64_t offset, uint64_t length) override {
    return hook_.around({CallKind::view, name_, offset, length},
                        [&] { return inner_->view(offset, length); });
  }
  Result<void> read_at_all(uint64_t offset, std::span<std::byte> out) override {
    bool called = false;
    Result<void> result = hook_.around({CallKind::read, name_, offset, out.size(), out}, [&] {
      called = true;
      return inner_->read_at_all(offset, out);
    });
    // If the hook has returned an error without making the call, this rank still makes the collective call,
    // for 0 bytes. Otherwise the other ranks would wait for this rank for ever.
    if (!called) PENSTOCK_TRY(inner_->read_at_all(offset, {}));
    return result;
  }

 protected:
  Hook& hook() { return hook_; }

 private:
  std::unique_ptr<Reader> inner_;
  const std::string name_;
  Hook& hook_;
};
using ReaderWrapper = DecoratedReader<>;

template <class Hook = ForwardingHook>
class DecoratedWriter : public Writer {
 public:
  explicit DecoratedWriter(std::unique_ptr<Writer> inner, std::string_view name = "",
                           Hook& hook = Hook::hook())
      : inner_(std::move(inner)), name_(name), hook_(hook) {}
  Writer& inner() { return *inner_; }
  const std::string& name() const { return name_; }
  void close() { inner_.reset(); }  // inner() must not be used after this
  bool closed() const { return inner_ == nullptr; }

  Result<void> append(std::span<const std::byte> bytes) override {
    return do_append(bytes.size(), [&] { return inner_->append(bytes); });
  }
  Result<void> append(std::span<const std::span<const std::byte>> pieces) override {
    uint64_t bytes = 0;
    for (const auto& piece : pieces) bytes += piece.size();
    return do_append(bytes, [&] { return inner_->append(pieces); });
  }
  Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    return hook_.around({CallKind::write, name_, offset, bytes.size()},
                        [&] { return inner_->write_at(offset, bytes); });
  }
  Result<void> publish(Durability wanted, IfExists if_exists) override {
    return hook_.around({CallKind::publish, name_}, [&] { return inner_->publish(wanted, if_exists); });
  }

 protected:
  Hook& hook() { return hook_; }

 private:
  template <class Inner>
  Result<void> do_append(uint64_t bytes, Inner inner) {
    Result<void> done = hook_.around({CallKind::write, name_, position_, bytes}, inner);
    if (done.ok()) position_ += bytes;
    return done;
  }

  std::unique_ptr<Writer> inner_;
  const std::string name_;
  Hook& hook_;
  uint64_t position_ = 0;  // offset of the next append()
};
using WriterWrapper = DecoratedWriter<>;

template <class Hook = ForwardingHook>
class DecoratedNamespace : public Namespace {
 public:
  explicit DecoratedNamespace(Namespace& inner, Hook& hook = Hook::hook()) : inner_(inner), hook_(hook) {}
  Namespace& inner() { return inner_; }

  Result<void> list_all(std::string_view folder, const std::function<bool(const Entry&)>& visit,
                        const std::function<void(std::string_view name)>& skipped) override {
    return hook_.around({CallKind::list, folder}, [&] { return inner_.list_all(folder, visit, skipped); });
  }
  Result<Entry> stat(std::string_view name) override {
    return hook_.around({CallKind::stat, name}, [&] { return inner_.stat(name); });
  }
  Result<void> make_folders(std::string_view folder) override {
    return hook_.around({CallKind::make_folders, folder}, [&] { return inner_.make_folders(folder); });
  }
  Result<void> rename_noreplace(std::string_view from, std::string_view to) override {
    return hook_.around({CallKind::rename, from}, [&] { return inner_.rename_noreplace(from, to); });
  }
  Result<void> remove(std::string_view name) override {
    return hook_.around({CallKind::remove, name}, [&] { return inner_.remove(name); });
  }
  Result<void> sync_dir(std::string_view folder) override {
    return hook_.around({CallKind::sync_folder, folder}, [&] { return inner_.sync_dir(folder); });
  }
  Result<std::unique_ptr<Lock>> lock(std::string_view name) override {
    return hook_.around({CallKind::lock, name}, [&] { return inner_.lock(name); });
  }
  Result<uint64_t> free_bytes() override { return inner_.free_bytes(); }

 private:
  Namespace& inner_;
  Hook& hook_;
};
using NamespaceWrapper = DecoratedNamespace<>;

// Forwards all calls without a hook: its Readers, Writers and Queues are those of the wrapped back end.
class BackendWrapper : public Backend {
 public:
  explicit BackendWrapper(std::unique_ptr<Backend> inner, bool emulates = true)
      : inner_(std::move(inner)), caps_(inner_->caps()) {
    caps_.emulated = caps_.emulated || emulates;
  }
  Backend& inner() { return *inner_; }

  const Caps& caps() const override { return caps_; }
  Result<std::unique_ptr<Reader>> open(std::string_view name) override { return inner_->open(name); }
  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint) override {
    return inner_->create(name, bytes_hint);
  }
  Result<uint64_t> read_object(std::string_view name, uint64_t length_hint,
                               std::span<std::byte> out) override {
    return inner_->read_object(name, length_hint, out);
  }
  Result<std::unique_ptr<Queue>> queue(size_t depth) override { return inner_->queue(depth); }
  Namespace& names() override { return inner_->names(); }
  MovedBytes moved_bytes() const override { return inner_->moved_bytes(); }
  std::vector<std::string> remarks() const override { return inner_->remarks(); }
  std::optional<std::filesystem::path> native_path(std::string_view name) const override {
    return inner_->native_path(name);
  }

 private:
  const std::unique_ptr<Backend> inner_;
  Caps caps_;
};

// A back end with a hook around each call. Its Readers, Writers, Queues and Namespace share the hook.
template <class Hook, class QueueType, class WriterType = DecoratedWriter<Hook>,
          class ReaderType = DecoratedReader<Hook>>
class DecoratedBackend final : public BackendWrapper {
 public:
  // `arguments` go to the constructor of the hook.
  template <class... Arguments>
  explicit DecoratedBackend(std::unique_ptr<Backend> backend, bool emulates, Arguments&&... arguments)
      : BackendWrapper(std::move(backend), emulates),
        hook_(std::forward<Arguments>(arguments)...),
        names_(inner().names(), hook_) {}

  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    PENSTOCK_ASSIGN(auto reader, hook_.around({CallKind::open, name}, [&] { return inner().open(name); }));
    return std::make_unique<ReaderType>(std::move(reader), name, hook_);
  }
  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint) override {
    PENSTOCK_ASSIGN(auto writer,
                    hook_.around({CallKind::create, name}, [&] { return inner().create(name, bytes_hint); }));
    return std::make_unique<WriterType>(std::move(writer), name, hook_);
  }
  Result<uint64_t> read_object(std::string_view name, uint64_t length_hint,
                               std::span<std::byte> out) override {
    return hook_.around({CallKind::read_object, name, 0, length_hint, out},
                        [&] { return inner().read_object(name, length_hint, out); });
  }
  Result<std::unique_ptr<Queue>> queue(size_t depth) override {
    PENSTOCK_ASSIGN(auto queue, inner().queue(depth));
    return std::make_unique<QueueType>(std::move(queue), depth, hook_);
  }
  Namespace& names() override { return names_; }

  Hook& hook() { return hook_; }

 private:
  Hook hook_;  // destroyed before the wrapped back end, which is in the base class
  DecoratedNamespace<Hook> names_;
};

// An operation in flight in the wrapped queue, with the data that the decorators need when it completes.
struct Flight {
  uint64_t tag = 0;  // tag that the caller gave the operation
  BackendCall call{};
  std::chrono::steady_clock::time_point submitted{};
  std::chrono::steady_clock::time_point due{};
};

// The operations that a decorated queue has in flight. Each operation has a slot. The number of the slot is
// the tag of the operation in the wrapped queue. Only one thread at a time may call a FlightTable.
template <class Hook>
class FlightTable {
 public:
  explicit FlightTable(size_t depth) : flights_(depth) {
    for (size_t i = depth; i > 0; --i) free_slots_.push_back(i - 1);
  }
  size_t in_flight() const { return flights_.size() - free_slots_.size(); }

  // Describes `operation` as a call. If it reads from a Reader, that must be a Reader of the decorated back
  // end.
  static BackendCall call_of(const Operation& operation) {
    if (const auto* object = std::get_if<ReadObject>(&operation.what))
      return {CallKind::read_object, object->name, 0, object->length_hint, object->out};
    const auto& read = std::get<ReadAt>(operation.what);
    return {CallKind::read, static_cast<DecoratedReader<Hook>*>(read.reader)->name(), read.offset,
            read.out.size(), read.out};
  }
  // Takes a free slot. Returns the operation to submit to the wrapped queue: it has the wrapped Reader, and
  // the slot as its tag.
  Operation add(Operation operation, Flight flight) {
    flight.tag = operation.tag;
    operation.tag = free_slots_.back();
    free_slots_.pop_back();
    flights_[operation.tag] = flight;
    if (auto* read = std::get_if<ReadAt>(&operation.what))
      read->reader = &static_cast<DecoratedReader<Hook>*>(read->reader)->inner();
    return operation;
  }
  // Puts the caller's tag into the completion, frees its slot, and returns the data of the slot.
  Flight take(Completion& done) {
    const auto slot = size_t(done.tag);
    remove(slot);
    done.tag = flights_[slot].tag;
    return flights_[slot];
  }
  void remove(size_t slot) { free_slots_.push_back(slot); }

 private:
  std::vector<Flight> flights_;
  std::vector<size_t> free_slots_;
};

}  // namespace penstock
