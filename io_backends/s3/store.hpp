// What reader, writer, queue and names of the back end s3 share: a bucket's keys below a prefix, and the
// connections to its server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/sharded_counter.hpp"
#include "io_backends/s3/transfers.hpp"

namespace penstock::s3 {

// Any thread.
class Store {
 public:
  explicit Store(Settings settings) : settings_(std::move(settings)) {}

  // Lends a Transfers, which keeps its connections between uses.
  class Lease {
   public:
    explicit Lease(Store& store);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Transfers* operator->() { return transfers_.get(); }

   private:
    Store& store_;
    std::unique_ptr<Transfers> transfers_;
  };
  // One request, now.
  Result<Answer> perform(Request request);

  const Settings& settings() const { return settings_; }
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
  const Settings settings_;
  MovedCounter moved_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Transfers>> idle_;
  std::set<std::string, std::less<>> no_objects_;  // names on the way that were no objects when looked at
};

// The refusal in `answer` as an error: "cannot open 'n01/x.jpg': ...", with the remedy where there is one.
Error refused(const Answer& answer, const Settings& settings, std::string_view operation,
              std::string_view object);

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
// no more than `depth`, or Settings::streams where that is more, nor than Settings::connections. The Readers
// that it is given are S3Readers. Destroyed with reads in flight, it cuts them off.
std::unique_ptr<Queue> make_queue(Store& store, std::size_t depth);

}  // namespace penstock::s3
