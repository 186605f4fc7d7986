// A back end of invented objects, for the tests of this component. It records reads, and its reads fail for
// objects that a test chooses.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {

// Any thread may read. Only the test's thread may call put(), fail_on() and change_caps(), before it starts
// other threads.
class ScriptedBackend final : public Backend, private Namespace {
 public:
  ScriptedBackend() { caps_.native_path = true; }

  void put(const std::string& name, std::vector<std::byte> bytes) { objects_[name] = std::move(bytes); }
  void fail_on(const std::string& name, Errc code = Errc::io) { failing_objects_[name] = code; }
  Caps& change_caps() { return caps_; }

  // One text per read, in the order in which the reads began: the object's name, and "+OFFSET" if the offset
  // is not 0.
  std::vector<std::string> reads() const {
    std::lock_guard lock(mutex_);
    return reads_;
  }
  void forget_reads() {
    std::lock_guard lock(mutex_);
    reads_.clear();
  }

  const Caps& caps() const override { return caps_; }
  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    PENSTOCK_ASSIGN(const std::span<const std::byte> bytes, find(name));
    return std::unique_ptr<Reader>(std::make_unique<ObjectReader>(*this, std::string(name), bytes));
  }
  Result<std::unique_ptr<Writer>> create(std::string_view, uint64_t) override { return refuse(); }
  Result<uint64_t> read_object(std::string_view name, uint64_t wanted_bytes,
                               std::span<std::byte> out) override {
    PENSTOCK_ASSIGN(const std::span<const std::byte> bytes, find(name));
    PENSTOCK_TRY(deliver(name, bytes, 0, out.first(wanted_bytes)));
    return wanted_bytes;
  }
  Namespace& names() override { return *this; }
  Result<std::unique_ptr<Queue>> queue(size_t depth) override {
    queues_made_.fetch_add(1);
    return Backend::queue(depth);
  }
  int queues() const { return queues_made_.load(); }
  MovedBytes moved_bytes() const override { return {.read = bytes_read_.load(), .written = 0}; }
  std::optional<std::filesystem::path> native_path(std::string_view name) const override {
    return std::filesystem::path("/scripted") / name;
  }

 private:
  class ObjectReader final : public Reader {
   public:
    ObjectReader(ScriptedBackend& backend, std::string name, std::span<const std::byte> bytes)
        : backend_(backend), name_(std::move(name)), bytes_(bytes) {}
    Result<uint64_t> size() override { return uint64_t{bytes_.size()}; }
    Result<void> read_at(uint64_t offset, std::span<std::byte> out) override {
      return backend_.deliver(name_, bytes_, offset, out);
    }

   private:
    ScriptedBackend& backend_;
    const std::string name_;
    const std::span<const std::byte> bytes_;
  };

  Result<std::span<const std::byte>> find(std::string_view name) const {
    const auto at = objects_.find(name);
    if (at == objects_.end()) return make_error(Errc::not_found, "cannot open '" + std::string(name) + "'");
    return std::span<const std::byte>(at->second);
  }
  Result<void> deliver(std::string_view name, std::span<const std::byte> bytes, uint64_t offset,
                       std::span<std::byte> out) {
    {
      std::lock_guard lock(mutex_);
      reads_.push_back(std::string(name) + (offset == 0 ? "" : "+" + std::to_string(offset)));
    }
    if (const auto failing = failing_objects_.find(name); failing != failing_objects_.end())
      return make_error(failing->second, "cannot read '" + std::string(name) + "'");
    if (offset + out.size() > bytes.size())
      return make_error(Errc::truncated, "'" + std::string(name) + "' ends before the bytes asked for");
    if (!out.empty()) std::memcpy(out.data(), bytes.data() + offset, out.size());
    bytes_read_ += out.size();
    return success();
  }

  static Error refuse() { return make_error(Errc::unsupported, "scripted objects are only read"); }
  Result<void> list_all(std::string_view, const std::function<bool(const Entry&)>&,
                        const std::function<void(std::string_view)>&) override {
    return refuse();
  }
  Result<Entry> stat(std::string_view name) override {
    PENSTOCK_ASSIGN(const std::span<const std::byte> bytes, find(name));
    return Entry{std::string(name), bytes.size(), false};
  }
  Result<void> make_folders(std::string_view) override { return refuse(); }
  Result<void> rename_noreplace(std::string_view, std::string_view) override { return refuse(); }
  Result<void> remove(std::string_view) override { return refuse(); }
  Result<void> sync_dir(std::string_view) override { return refuse(); }
  Result<std::unique_ptr<Lock>> lock(std::string_view) override { return refuse(); }
  Result<uint64_t> free_bytes() override { return refuse(); }

  Caps caps_;
  std::atomic<int> queues_made_ = 0;  // number of calls of queue()
  std::map<std::string, std::vector<std::byte>, std::less<>> objects_;
  std::map<std::string, Errc, std::less<>> failing_objects_;  // name -> code of the error
  std::atomic<uint64_t> bytes_read_{0};
  mutable std::mutex mutex_;  // guards reads_; not held while bytes are copied
  std::vector<std::string> reads_;
};

// Puts `count` objects "s0000", "s0001" and so on with different lengths on `backend`. Returns their manifest
// with checksums.
inline Manifest scripted_files(ScriptedBackend& backend, uint64_t count) {
  ManifestBuilder builder(ManifestFacts{.recipe = "scripted",
                                        .format = "files",
                                        .codec = "raw",
                                        .settings = {},
                                        .checksums = true,
                                        .label_names = {}});
  for (uint64_t i = 0; i < count; ++i) {
    std::string name = std::to_string(i);
    name.insert(0, 4 - name.size(), '0');
    name.insert(0, 1, 's');
    std::vector<std::byte> bytes(1 + i % 97);
    for (size_t at = 0; at < bytes.size(); ++at) bytes[at] = static_cast<std::byte>(i * 31 + at);
    const uint32_t object = builder.add_object(name, bytes.size());
    builder.add_sample({.length = bytes.size(), .object = object, .crc32c = crc32c(bytes)});
    backend.put(name, std::move(bytes));
  }
  return Manifest::from_bytes(builder.finish().value()).value();
}

// Puts `shards` objects of ten samples with ten bytes each on `backend`. Returns their manifest.
inline Manifest scripted_shards(ScriptedBackend& backend, uint64_t shards) {
  ManifestBuilder builder(ManifestFacts{
      .recipe = "scripted", .format = "shards", .codec = "raw", .settings = {}, .label_names = {}});
  for (uint64_t i = 0; i < shards; ++i) {
    const std::string name = "shard" + std::string(1, char('a' + i));
    backend.put(name, std::vector<std::byte>(100));
    const uint32_t object = builder.add_object(name, 100);
    for (uint64_t at = 0; at < 100; at += 10)
      builder.add_sample({.offset = at, .length = 10, .object = object});
  }
  return Manifest::from_bytes(builder.finish().value()).value();
}

}  // namespace penstock
