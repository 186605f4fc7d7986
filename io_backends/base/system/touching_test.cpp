// Which pages are touched is asked of the kernel; that lines are is what mapped files show, which turn to
// zeros from the page on that cannot be had (mmap_test.cpp).
#include "io_backends/base/system/touching.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace penstock {
namespace {

using Touch = void (*)(std::span<const std::byte>);

class Touching : public testing::TestWithParam<Touch> {
 protected:
  // Of memory that nobody has touched, those of its pages that are there behind a touch of a part.
  static std::vector<std::size_t> pages_behind(std::size_t offset, std::size_t length) {
    const auto page = static_cast<std::size_t>(::getpagesize());
    constexpr std::size_t kPages = 16;
    void* const memory =
        ::mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    ::madvise(memory, kPages * page, MADV_NOHUGEPAGE);
    GetParam()({static_cast<const std::byte*>(memory) + offset, length});
    std::vector<unsigned char> there(kPages);
    EXPECT_EQ(::mincore(memory, kPages * page, there.data()), 0);
    ::munmap(memory, kPages * page);
    std::vector<std::size_t> pages;
    for (std::size_t i = 0; i < kPages; ++i)
      if ((there[i] & 1U) != 0) pages.push_back(i);
    return pages;
  }
};

TEST_P(Touching, ReachesThePagesOfTheBytesAndNoOthers) {
  const auto page = static_cast<std::size_t>(::getpagesize());
  using Pages = std::vector<std::size_t>;
  EXPECT_EQ(pages_behind(0, 0), Pages());
  EXPECT_EQ(pages_behind(0, 1), Pages({0}));
  EXPECT_EQ(pages_behind(0, page), Pages({0}));
  EXPECT_EQ(pages_behind(page - 1, 2), Pages({0, 1}));
  EXPECT_EQ(pages_behind(page, 3 * page), Pages({1, 2, 3}));
  EXPECT_EQ(pages_behind(page / 2, 2 * page), Pages({0, 1, 2}));
  EXPECT_EQ(pages_behind(page + 100, 5 * page - 99), Pages({1, 2, 3, 4, 5, 6}));
}

INSTANTIATE_TEST_SUITE_P(Ways, Touching, testing::Values(&touch_pages, &touch_lines),
                         [](const auto& way) { return way.param == &touch_pages ? "Pages" : "Lines"; });

}  // namespace
}  // namespace penstock
