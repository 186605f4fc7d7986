#include "io_backends/backend/queue.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "io_backends/backend/backend.hpp"

namespace penstock {
namespace {

class BlockingQueue final : public Queue {
 public:
  BlockingQueue(Backend& backend, size_t depth) : backend_(backend), depth_(depth) { done_.reserve(depth); }

  size_t submit(std::span<const Operation> operations, Start /*start*/) override {
    const size_t accepted = std::min(operations.size(), depth_ - done_.size());
    for (const Operation& operation : operations.first(accepted))
      done_.push_back({operation.tag, perform(backend_, operation)});
    return accepted;
  }

  size_t reap(std::span<Completion> out, size_t /*at_least*/) override {
    const size_t count = std::min(out.size(), done_.size());
    const auto end = done_.begin() + ptrdiff_t(count);
    std::move(done_.begin(), end, out.begin());
    done_.erase(done_.begin(), end);
    return count;
  }

  size_t in_flight() const override { return done_.size(); }

 private:
  Backend& backend_;
  const size_t depth_;
  std::vector<Completion> done_;
};

}  // namespace

Result<std::unique_ptr<Queue>> deep_queue(Backend& backend, size_t depth) {
  PENSTOCK_TRY(check_queue_depth(depth));
  if (depth == 1 || backend.caps().async) return backend.queue(depth);
  return thread_pool_queue(backend, depth);
}

Result<std::unique_ptr<Queue>> blocking_queue(Backend& backend, size_t depth) {
  PENSTOCK_TRY(check_queue_depth(depth));
  return std::make_unique<BlockingQueue>(backend, depth);
}

Result<void> check_queue_depth(size_t depth) {
  constexpr size_t kMaxDepth = 65536;
  if (depth >= 1 && depth <= kMaxDepth) return success();
  return make_error(Errc::invalid_argument, "a queue depth must be 1 to 65536, not " + std::to_string(depth));
}

std::span<std::byte> output_span(const Operation& operation) {
  return std::visit([](const auto& what) { return what.out; }, operation.what);
}

Result<uint64_t> perform(Backend& backend, const Operation& operation) {
  if (const auto* read = std::get_if<ReadAt>(&operation.what)) {
    PENSTOCK_TRY(read->reader->read_at(read->offset, read->out));
    return uint64_t{read->out.size()};
  }
  const auto& object = std::get<ReadObject>(operation.what);
  return backend.read_object(object.name, object.length_hint, object.out);
}

}  // namespace penstock
