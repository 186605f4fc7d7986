#include "io_backends/base/communicator.hpp"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

class SingleProcess final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int rank_on_node() const override { return 0; }
  Result<void> barrier() override { return success(); }
  Result<void> all_reduce(std::span<double>, Reduction) override { return success(); }
  Result<void> all_reduce(std::span<std::uint64_t>, Reduction) override { return success(); }
  Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> bytes) override {
    return std::vector<std::vector<std::byte>>{{bytes.begin(), bytes.end()}};
  }
  Result<void> broadcast(std::vector<std::byte>&) override { return success(); }
  Result<ClockOffset> clock_offset() override { return ClockOffset{}; }
  bool meet(std::chrono::milliseconds) override { return true; }
  void abandon(int) override {}
};

// An error as bytes: its kind, the system's number, the words. No bytes: no error.
std::vector<std::byte> packed(const Result<void>& result) {
  if (result.ok()) return {};
  const Error& error = result.error();
  std::vector<std::byte> bytes(1 + sizeof error.sys_errno + error.what.size());
  bytes[0] = static_cast<std::byte>(error.code);
  std::memcpy(bytes.data() + 1, &error.sys_errno, sizeof error.sys_errno);
  if (!error.what.empty())
    std::memcpy(bytes.data() + 1 + sizeof error.sys_errno, error.what.data(), error.what.size());
  return bytes;
}

Error unpacked(std::span<const std::byte> bytes) {
  Error error;
  error.code = static_cast<Errc>(bytes[0]);
  std::memcpy(&error.sys_errno, bytes.data() + 1, sizeof error.sys_errno);
  bytes = bytes.subspan(1 + sizeof error.sys_errno);
  error.what.resize(bytes.size());
  if (!bytes.empty()) std::memcpy(error.what.data(), bytes.data(), bytes.size());
  return error;
}

}  // namespace

std::unique_ptr<Communicator> single_process() {
  return std::make_unique<SingleProcess>();
}

Result<void> agree(Communicator& ranks, const Result<void>& mine) {
  if (ranks.size() == 1) return mine;
  PENSTOCK_ASSIGN(const auto all, ranks.gather(packed(mine)));
  std::vector<std::byte> verdict;
  if (ranks.root()) {
    const auto failed =
        std::find_if(all.begin(), all.end(), [](const auto& bytes) { return !bytes.empty(); });
    if (failed != all.end()) {
      Error error = unpacked(*failed);
      if (std::any_of(all.begin(), all.end(), [](const auto& bytes) { return bytes.empty(); }))
        error.what = "on rank " + std::to_string(failed - all.begin()) + " of " + std::to_string(all.size()) +
                     ": " + error.what;
      verdict = packed(error);
    }
  }
  PENSTOCK_TRY(ranks.broadcast(verdict));
  if (verdict.empty()) return success();
  return unpacked(verdict);
}

}  // namespace penstock
