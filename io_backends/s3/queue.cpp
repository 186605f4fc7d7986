// Reads of many objects in flight from one thread, each a request of its own.
#include <algorithm>
#include <deque>
#include <vector>

#include "io_backends/s3/store.hpp"

namespace penstock::s3 {
namespace {

class S3Queue final : public Queue {
 public:
  S3Queue(Store& store, std::size_t depth) : store_(store), transfers_(store.client()), slots_(depth) {
    for (std::size_t i = depth; i > 0; --i) free_.push_back(i - 1);
  }
  ~S3Queue() override {
    while (transfers_->in_flight() > 0 || transfers_->any_done()) collect(true);
  }

  std::size_t submit(std::span<const Operation> operations, Start /*start*/) override {
    const std::size_t taken = std::min(operations.size(), slots_.size() - in_flight());
    for (const Operation& operation : operations.first(taken)) begin(operation);
    if (taken > 0) transfers_->drive(false);
    return taken;
  }

  std::size_t reap(std::span<Completion> out, std::size_t at_least) override {
    const std::size_t wanted = std::min({at_least, in_flight(), out.size()});
    collect(false);
    while (done_.size() < wanted) collect(true);
    std::size_t count = 0;
    for (; count < out.size() && !done_.empty(); ++count) {
      out[count] = std::move(done_.front());
      done_.pop_front();
    }
    return count;
  }

  std::size_t in_flight() const override { return slots_.size() - free_.size() + done_.size(); }

 private:
  void begin(const Operation& operation) {
    const Result<bool> flies = start(operation);
    if (flies.ok() && *flies) return;
    done_.push_back({operation.tag, flies.ok() ? Result<std::uint64_t>(std::uint64_t{0})
                                               : Result<std::uint64_t>(flies.error())});
  }

  // Whether there is a request to wait for: reading nothing takes none.
  Result<bool> start(const Operation& operation) {
    Request request;
    if (const auto* const read = std::get_if<ReadAt>(&operation.what)) {
      const auto& reader = static_cast<const S3Reader&>(*read->reader);
      PENSTOCK_TRY(reader.check(read->offset, read->out.size()));
      if (read->out.empty()) return false;
      request = range_request(store_, reader.name(), reader.etag(), read->offset, read->out);
    } else {
      const auto& object = std::get<ReadObject>(operation.what);
      PENSTOCK_TRY(check_read_object(object.name, object.length_hint, object.out.size()));
      request = object_request(store_, object);
    }
    const std::size_t slot = free_.back();
    free_.pop_back();
    slots_[slot] = operation;
    transfers_->start(slot, std::move(request));
    return true;
  }

  void collect(bool wait) {
    if (!transfers_->any_done()) transfers_->drive(wait);
    while (transfers_->any_done()) {
      const Transfers::Done done = transfers_->next();
      const Operation& operation = slots_[static_cast<std::size_t>(done.tag)];
      done_.push_back({operation.tag, outcome(operation, done.answer)});
      free_.push_back(static_cast<std::size_t>(done.tag));
    }
  }

  Result<std::uint64_t> outcome(const Operation& operation, const Result<Answer>& answer) {
    if (!answer.ok()) return answer.error();
    const auto* const read = std::get_if<ReadAt>(&operation.what);
    if (read == nullptr) return object_outcome(store_, *answer, std::get<ReadObject>(operation.what));
    const auto& reader = static_cast<const S3Reader&>(*read->reader);
    PENSTOCK_TRY(check_range(store_, *answer, reader.name(), read->offset, read->out.size()));
    return std::uint64_t{read->out.size()};
  }

  Store& store_;
  Client::Lease transfers_;
  std::vector<Operation> slots_;
  std::vector<std::size_t> free_;
  std::deque<Completion> done_;
};

}  // namespace

std::unique_ptr<Queue> make_queue(Store& store, std::size_t depth) {
  return std::make_unique<S3Queue>(store, depth);
}

}  // namespace penstock::s3
