// Bases for decorators: each forwards everything to what it wraps, so that a decorator overrides only what it
// changes. A Queue is wrapped from scratch (see unwrapped()): its operations name wrapped Readers.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "io_backends/backend/backend.hpp"

namespace penstock {

class ReaderWrapper : public Reader {
 public:
  explicit ReaderWrapper(std::unique_ptr<Reader> inner) : inner_(std::move(inner)) {}
  Reader& inner() { return *inner_; }
  void close() { inner_.reset(); }  // and never use it again

  Result<std::uint64_t> size() override { return inner_->size(); }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    return inner_->read_at(offset, out);
  }
  Result<std::span<const std::byte>> view(std::uint64_t offset, std::uint64_t length) override {
    return inner_->view(offset, length);
  }
  Result<void> read_at_all(std::uint64_t offset, std::span<std::byte> out) override {
    return inner_->read_at_all(offset, out);
  }

 private:
  std::unique_ptr<Reader> inner_;
};

class WriterWrapper : public Writer {
 public:
  explicit WriterWrapper(std::unique_ptr<Writer> inner) : inner_(std::move(inner)) {}
  Writer& inner() { return *inner_; }
  void close() { inner_.reset(); }  // and never use it again

  Result<void> append(std::span<const std::byte> bytes) override { return inner_->append(bytes); }
  Result<void> append(std::span<const std::span<const std::byte>> pieces) override {
    return inner_->append(pieces);
  }
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return inner_->write_at(offset, bytes);
  }
  Result<void> publish(Durability wanted, IfExists if_exists) override {
    return inner_->publish(wanted, if_exists);
  }

 private:
  std::unique_ptr<Writer> inner_;
};

class NamespaceWrapper : public Namespace {
 public:
  explicit NamespaceWrapper(Namespace& inner) : inner_(inner) {}
  Namespace& inner() { return inner_; }

  Result<void> list(std::string_view folder, const std::function<bool(const Entry&)>& visit) override {
    return inner_.list(folder, visit);
  }
  Result<Entry> stat(std::string_view name) override { return inner_.stat(name); }
  Result<void> make_folders(std::string_view folder) override { return inner_.make_folders(folder); }
  Result<void> rename_noreplace(std::string_view from, std::string_view to) override {
    return inner_.rename_noreplace(from, to);
  }
  Result<void> remove(std::string_view name) override { return inner_.remove(name); }
  Result<void> sync_dir(std::string_view folder) override { return inner_.sync_dir(folder); }
  Result<std::unique_ptr<Lock>> lock(std::string_view name) override { return inner_.lock(name); }
  Result<std::uint64_t> free_bytes() override { return inner_.free_bytes(); }

 private:
  Namespace& inner_;
};

class BackendWrapper : public Backend {
 public:
  explicit BackendWrapper(std::unique_ptr<Backend> inner, bool emulates = true)
      : inner_(std::move(inner)), caps_(inner_->caps()) {
    caps_.emulated = caps_.emulated || emulates;
  }
  Backend& inner() { return *inner_; }

  const Caps& caps() const override { return caps_; }
  Result<std::unique_ptr<Reader>> open(std::string_view name) override { return inner_->open(name); }
  Result<std::unique_ptr<Writer>> create(std::string_view name, std::uint64_t bytes_hint) override {
    return inner_->create(name, bytes_hint);
  }
  Result<std::uint64_t> read_object(std::string_view name, std::uint64_t length_hint,
                                    std::span<std::byte> out) override {
    return inner_->read_object(name, length_hint, out);
  }
  Result<std::unique_ptr<Queue>> queue(std::size_t depth) override { return inner_->queue(depth); }
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

// The operation as the wrapped back end must see it, under another tag. Every Reader in it was opened by the
// decorator, so it is a ReaderWrapper.
inline Operation unwrapped(Operation operation, std::uint64_t tag) {
  if (auto* read = std::get_if<ReadAt>(&operation.what))
    read->reader = &static_cast<ReaderWrapper*>(read->reader)->inner();
  operation.tag = tag;
  return operation;
}

// Numbers for operations in flight, each with what a decorator must remember of it.
template <class T>
class FlightTable {
 public:
  explicit FlightTable(std::size_t depth) : items_(depth) {
    for (std::size_t i = depth; i > 0; --i) free_.push_back(i - 1);
  }
  std::size_t in_flight() const { return items_.size() - free_.size(); }
  std::size_t add(T item) {
    const std::size_t slot = free_.back();
    free_.pop_back();
    items_[slot] = std::move(item);
    return slot;
  }
  T& at(std::size_t slot) { return items_[slot]; }
  void remove(std::size_t slot) { free_.push_back(slot); }

 private:
  std::vector<T> items_;
  std::vector<std::size_t> free_;
};

}  // namespace penstock
