#include "io_backends/base/communicator.hpp"

namespace penstock {
namespace {

class SingleProcess final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Result<void> barrier() override { return success(); }
  Result<void> all_reduce(std::span<double>, Reduction) override { return success(); }
  Result<void> all_reduce(std::span<std::uint64_t>, Reduction) override { return success(); }
  Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> bytes) override {
    return std::vector<std::vector<std::byte>>{{bytes.begin(), bytes.end()}};
  }
  Result<void> broadcast(std::vector<std::byte>&) override { return success(); }
  Result<ClockOffset> clock_offset() override { return ClockOffset{}; }
};

}  // namespace

std::unique_ptr<Communicator> single_process() {
  return std::make_unique<SingleProcess>();
}

}  // namespace penstock
