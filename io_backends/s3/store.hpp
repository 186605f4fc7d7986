// What reader, writer, queue and namespace of the back end s3 share: requests for the keys below a prefix of
// a bucket, and the connections to the server.
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

// The requests and connections of one tier. Any thread may call a Store.
class Store {
 public:
  explicit Store(Settings settings) : settings_(std::move(settings)) {}

  // Borrows a Transfers for one thread. Its connections stay open between uses.
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
  // Sends one request and waits for its answer.
  Result<Answer> perform(Request request);

  const Settings& settings() const { return settings_; }
  MovedCounter& moved() { return moved_; }
  MovedBytes moved_bytes() const { return moved_.sum(); }

  std::string key(std::string_view name) const { return settings().endpoint.prefix + std::string(name); }

  // Sends a HEAD. If the object does not exist, the answer has status 404. After any other refusal this also
  // sends a GET of one byte, because the answer to a HEAD has no error text. `confirms_change`: the caller
  // checks whether an earlier change succeeded (see Request::confirms_change).
  Result<Answer> head(std::string_view name, bool confirms_change = false);
  // Lists one page of the objects below `folder`, at most `max_entries` entries. With `one_level` it lists
  // only one level: deeper objects appear as the folder that has them. `token` is Listing::next_token of the
  // previous page, or "".
  Result<Listing> list_page(std::string_view folder, unsigned max_entries, bool one_level,
                            const std::string& token);
  Result<bool> has_folder(std::string_view name);
  // Makes the error for an object that was not found, and says why: the name is a folder (EISDIR), it does
  // not exist (ENOENT), or the bucket does not exist.
  Error missing_object_error(std::string_view name, std::string_view operation);
  // Turns an answer that is not ok into the error of a read of this object.
  Error read_error(const Answer& answer, std::string_view name);
  // Fails with not_found (ENOTDIR) if an object has the name of a parent folder of `name`.
  Result<void> check_parents(std::string_view name, std::string_view operation);
  // Tells this class that an object with this name was published. If check_parents() had remembered that
  // there is no such object, it now asks the server again.
  void published(std::string_view name);
  // Removes the object with this name.
  Result<void> remove(std::string_view name);

 private:
  const Settings settings_;
  MovedCounter moved_;
  std::mutex mutex_;  // guards the members below
  std::vector<std::unique_ptr<Transfers>> idle_transfers_;
  // Names of parent folders for which a HEAD found no object. check_parents() does not ask the server for
  // them again.
  std::set<std::string, std::less<>> missing_objects_;
};

// Turns the refusal in `answer` into an error: "cannot open 'n01/x.jpg': ...". Adds the remedy if one is
// known.
Error refusal_error(const Answer& answer, const Settings& settings, std::string_view operation,
                    std::string_view object);

// Whether the answer to a HEAD says that there is no such object. After other refusals that is unknown.
bool says_no_object(const Answer& answer);

// Returns a random text that is different in each call, on all machines.
std::string random_mark();

std::unique_ptr<Writer> make_writer(Store& store, std::string_view name, uint64_t bytes_hint);
std::unique_ptr<Namespace> make_names(Store& store);

class S3Reader final : public Reader {
 public:
  S3Reader(Store& store, std::string_view name, Answer head)
      : store_(store), name_(name), etag_(std::move(head.etag)), size_(head.object_bytes) {}

  Result<uint64_t> size() override { return size_; }
  Result<void> read_at(uint64_t offset, std::span<std::byte> out) override;

  Result<void> check_range(uint64_t offset, uint64_t length) const {
    if (offset <= size_ && length <= size_ - offset) return success();
    return truncated_error(name_, offset, length);
  }
  const std::string& name() const { return name_; }
  const std::string& etag() const { return etag_; }

 private:
  Store& store_;
  const std::string name_;
  const std::string etag_;
  const uint64_t size_;
};

// Does one read and waits for it. Returns what Backend::read_object() returns.
Result<uint64_t> read_object(Store& store, const ReadObject& object);

// Makes a Queue that keeps up to `depth` reads in flight from one thread. Every Reader passed to it must be
// an S3Reader. Destroying the queue cancels the reads in flight.
// A read that is longer than a part may use several GETs. The limit for the GETs of all reads is the larger
// of `depth` and Settings::max_streams, but never more than Settings::max_connections.
std::unique_ptr<Queue> make_queue(Store& store, size_t depth);

}  // namespace penstock::s3
