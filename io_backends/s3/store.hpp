// What reader, writer, queue and names of the back end s3 share: a bucket's keys below a prefix.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/sharded_counter.hpp"
#include "io_backends/s3/client.hpp"

namespace penstock::s3 {

struct Shape {
  std::size_t part = 0;         // bytes of a request that is one of several for an object
  std::size_t streams = 0;      // such requests in flight at once, for one object
  std::size_t connections = 0;  // requests in flight at once, of one read, queue or writer; 0: no limit
  bool checks = true;           // look before publishing whether the name is free to be an object's

  // How many of that many may be in flight at once.
  std::size_t at_once(std::size_t requests) const {
    return connections == 0 ? requests : std::min(requests, connections);
  }
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
  // answer to a HEAD lacks. `settles`: as Request::settles.
  Result<Answer> head(std::string_view name, bool settles = false);
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

// A random word: no two calls on any machine return the same one.
std::string draw_mark();

std::unique_ptr<Writer> make_writer(Store& store, std::string_view name, std::uint64_t bytes_hint);
std::unique_ptr<Namespace> make_names(Store& store);

class S3Reader final : public Reader {
 public:
  S3Reader(Store& store, std::string_view name, Answer head)
      : store_(store), name_(name), etag_(std::move(head.etag)), size_(head.total) {}

  Result<std::uint64_t> size() override { return size_; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) override;

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

// One read, now: ReadObject as Backend::read_object has it.
Result<std::uint64_t> read_object(Store& store, const ReadObject& object);

// `depth` reads in flight from one thread, and of those that are longer than a part several GETs each: in all
// no more than `depth`, or Shape::streams where that is more, nor than Shape::connections. The Readers that
// it is given are S3Readers. Destroyed with reads in flight, it cuts them off.
std::unique_ptr<Queue> make_queue(Store& store, std::size_t depth);

}  // namespace penstock::s3
