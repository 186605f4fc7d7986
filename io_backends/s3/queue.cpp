// A queue over Reads: keeps reads of many objects in flight from one thread. It has no lock and no thread of
// its own. Bytes move only inside submit() and reap().
#include <algorithm>

#include "io_backends/s3/reads.hpp"

namespace penstock::s3 {
namespace {

class S3Queue final : public Queue {
 public:
  S3Queue(Store& store, size_t depth)
      : depth_(depth),
        reads_(store, store.settings().limit_requests(std::max(depth, store.settings().max_streams))) {}

  size_t submit(std::span<const Operation> operations, Start /*start*/) override {
    const size_t accepted = std::min(operations.size(), depth_ - in_flight());
    for (const Operation& operation : operations.first(accepted)) begin(operation);
    if (accepted > 0) reads_.drive(false);
    return accepted;
  }

  size_t reap(std::span<Completion> out, size_t at_least) override {
    const size_t wanted = std::min({at_least, in_flight(), out.size()});
    if (reads_.done_count() < out.size()) reads_.drive(false);
    while (reads_.done_count() < wanted) reads_.drive(true);
    const size_t count = std::min(out.size(), reads_.done_count());
    for (Completion& completion : out.first(count)) completion = reads_.take_done();
    return count;
  }

  size_t in_flight() const override { return reads_.in_flight(); }

 private:
  void begin(const Operation& operation) {
    const Result<WantedRead> wanted = wanted_read_of(operation);
    if (wanted.ok()) return reads_.start(operation.tag, *wanted);
    reads_.refuse(operation.tag, wanted.error());
  }

  static Result<WantedRead> wanted_read_of(const Operation& operation) {
    if (const auto* const read = std::get_if<ReadAt>(&operation.what)) {
      const auto& reader = static_cast<const S3Reader&>(*read->reader);
      PENSTOCK_TRY(reader.check_range(read->offset, read->out.size()));
      return WantedRead{reader.name(), reader.etag(), read->offset, read->out};
    }
    const auto& object = std::get<ReadObject>(operation.what);
    PENSTOCK_TRY(check_read_object(object.name, object.length_hint, object.out.size()));
    return wanted_read(object);
  }

  const size_t depth_;
  Reads reads_;
};

}  // namespace

std::unique_ptr<Queue> make_queue(Store& store, size_t depth) {
  return std::make_unique<S3Queue>(store, depth);
}

}  // namespace penstock::s3
