// Tests collective calls over MPI: mpirun starts this program as both ranks of a job of two.
#include "io_backends/core/ranks/communicator.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "io_backends/core/ranks/launcher.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

constexpr size_t kGiB = size_t{1} << 30U;

// The job, which is joined once because MPI can be initialised only once.
Communicator* job() {
  static const auto ranks = join_ranks(look_for_launcher());
  EXPECT_OK(ranks);
  return ranks.ok() ? ranks->get() : nullptr;
}

// A range of addresses that is never touched, so it takes no memory.
class ReservedAddresses {
 public:
  explicit ReservedAddresses(size_t bytes)
      : bytes_(bytes),
        at_(::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~ReservedAddresses() { ::munmap(at_, bytes_); }
  ReservedAddresses(const ReservedAddresses&) = delete;
  ReservedAddresses& operator=(const ReservedAddresses&) = delete;

  bool is_reserved() const { return at_ != MAP_FAILED; }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(at_), bytes_}; }

 private:
  const size_t bytes_;
  void* const at_;
};

// In each case an int cannot hold the sum of all ranks' bytes, or even the bytes of one rank.
TEST(MpiRanks, TooManyBytesToGatherFailOnEveryRank) {
  Communicator* const ranks = job();
  ASSERT_NE(ranks, nullptr);
  ASSERT_EQ(ranks->size(), 2);
  for (const auto& [roots, others] : {std::pair{3 * kGiB / 2, 3 * kGiB / 2}, std::pair{size_t{1}, 5 * kGiB},
                                      std::pair{5 * kGiB, size_t{1}}}) {
    const ReservedAddresses mine(ranks->root() ? roots : others);
    ASSERT_TRUE(mine.is_reserved());
    EXPECT_ERRC(Errc::internal, ranks->gather(mine.bytes()), "2 GiB");
    EXPECT_OK(ranks->barrier());
  }
  const std::byte own[] = {std::byte(ranks->rank() + 1), std::byte{9}};
  const auto all = ranks->gather(std::span(own).first(ranks->root() ? 1 : 2));
  ASSERT_OK(all) << "the ranks are still at the same place";
  EXPECT_EQ(all->size(), ranks->root() ? 2U : 0U);
  if (all->size() != 2) return;
  EXPECT_EQ(all->at(0), std::vector<std::byte>{std::byte{1}});
  EXPECT_EQ(all->at(1), (std::vector<std::byte>{std::byte{2}, std::byte{9}}));
}

}  // namespace
}  // namespace penstock
