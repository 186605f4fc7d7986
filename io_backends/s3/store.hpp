// What reader, writer, queue and names of the back end s3 share: a bucket's keys below a prefix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "io_backends/base/backend.hpp"
#include "io_backends/base/sharded_counter.hpp"
#include "io_backends/s3/client.hpp"

namespace penstock::s3 {

struct Shape {
  std::size_t part = 0;     // bytes of a request that is one of several for an object
  std::size_t streams = 0;  // such requests in flight at once, of one reader or writer
  bool checks = true;       // look before publishing whether the name is free to be an object's
};

class Store {
 public:
  Store(Settings settings, Shape shape) : client_(std::move(settings)), shape_(shape) {}

  Client& client() { return client_; }
  const Settings& settings() const { return client_.settings(); }
  const Shape& shape() const { return shape_; }
  MovedCounter& moved() { return moved_; }
  MovedBytes moved_bytes() const { return moved_.sum(); }

  std::string key(std::string_view name) const { return settings().endpoint.prefix + std::string(name); }

  // By HEAD. An object that is not there has status 404; a refusal comes with the server's words, which the
  // answer to a HEAD lacks.
  Result<Answer> head(std::string_view name);
  // One page of what lies below `folder`, at most `most` entries of it; one level where `level`.
  Result<Listing> page(std::string_view folder, unsigned most, bool level, const std::string& token);
  Result<bool> has_folder(std::string_view name);
  // Why there is no object `name`: it is a folder (EISDIR), or nothing (ENOENT), or there is no bucket.
  Error no_object(std::string_view name, std::string_view operation);
  // What an answer that is not ok means, to who wanted to read the object.
  Error unreadable(const Answer& answer, std::string_view name);
  // not_found where an object stands on the way to `name`.
  Result<void> check_parents(std::string_view name, std::string_view operation);
  void published(std::string_view name);
  // Removes what has this key.
  Result<void> remove(std::string_view name);

 private:
  Client client_;
  const Shape shape_;
  MovedCounter moved_;
  std::mutex mutex_;
  std::set<std::string, std::less<>> no_objects_;  // names on the way that were no objects when looked at
};

// The bytes [offset, offset + out.size()) of an object that had this ETag when it was opened; several
// requests at once where they are many.
Result<void> read_range(Store& store, std::string_view name, const std::string& etag, std::uint64_t offset,
                        std::span<std::byte> out);
// A GET of a part of an object (length > 0), to compare with what comes.
Request range_request(const Store& store, std::string_view name, const std::string& etag,
                      std::uint64_t offset, std::span<std::byte> out);
// Whether the answer to it has all that was asked for.
Result<void> check_range(Store& store, const Answer& answer, std::string_view name, std::uint64_t offset,
                         std::uint64_t length);

// A word that nobody else draws.
std::string draw_mark();

std::unique_ptr<Writer> make_writer(Store& store, std::string_view name, std::uint64_t bytes_hint);
std::unique_ptr<Namespace> make_names(Store& store);

class S3Reader final : public Reader {
 public:
  S3Reader(Store& store, std::string_view name, Answer head)
      : store_(store), name_(name), etag_(std::move(head.etag)), size_(head.total) {}

  Result<std::uint64_t> size() override { return size_; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    PENSTOCK_TRY(check(offset, out.size()));
    return read_range(store_, name_, etag_, offset, out);
  }

  Result<void> check(std::uint64_t offset, std::uint64_t length) const {
    if (offset <= size_ && length <= size_ - offset) return success();
    return truncated_error(name_, offset, length);
  }
  const std::string& name() const { return name_; }
  const std::string& etag() const { return etag_; }

 private:
  Store& store_;
  const std::string name_;
  const std::string etag_;
  const std::uint64_t size_;
};

// A GET of an object, or of its first length_hint bytes; and what its answer comes to.
Request object_request(const Store& store, const ReadObject& object);
Result<std::uint64_t> object_outcome(Store& store, const Answer& answer, const ReadObject& object);

// `depth` reads in flight from one thread. The Readers that it is given are S3Readers.
std::unique_ptr<Queue> make_queue(Store& store, std::size_t depth);

}  // namespace penstock::s3
