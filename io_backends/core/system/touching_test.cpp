#include "io_backends/core/system/touching.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <set>
#include <vector>

namespace penstock {
namespace {

using Touch = void (*)(std::span<const std::byte>);

class Touching : public testing::TestWithParam<Touch> {
 protected:
  // Returns the numbers of the pages that become resident when a part of new memory is touched.
  static std::vector<size_t> touched_pages(size_t offset, size_t length) {
    const auto page = size_t(::getpagesize());
    constexpr size_t kPages = 16;
    void* const memory =
        ::mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    ::madvise(memory, kPages * page, MADV_NOHUGEPAGE);
    GetParam()({static_cast<const std::byte*>(memory) + offset, length});
    std::vector<unsigned char> residency(kPages);
    EXPECT_EQ(::mincore(memory, kPages * page, residency.data()), 0);
    ::munmap(memory, kPages * page);
    std::vector<size_t> pages;
    for (size_t i = 0; i < kPages; ++i)
      if ((residency[i] & 1U) != 0) pages.push_back(i);
    return pages;
  }
};

TEST_P(Touching, ReachesThePagesOfTheBytesAndNoOthers) {
  const auto page = size_t(::getpagesize());
  using Pages = std::vector<size_t>;
  EXPECT_EQ(touched_pages(0, 0), Pages());
  EXPECT_EQ(touched_pages(0, 1), Pages({0}));
  EXPECT_EQ(touched_pages(0, page), Pages({0}));
  EXPECT_EQ(touched_pages(page - 1, 2), Pages({0, 1}));
  EXPECT_EQ(touched_pages(page, 3 * page), Pages({1, 2, 3}));
  EXPECT_EQ(touched_pages(page / 2, 2 * page), Pages({0, 1, 2}));
  EXPECT_EQ(touched_pages(page + 100, 5 * page - 99), Pages({1, 2, 3, 4, 5, 6}));
}

// Returns the numbers of the units (pages or lines) that contain the touched bytes, counted from 0.
template <class Each>
std::set<uintptr_t> units_touched(Each each, size_t unit, size_t offset, size_t length) {
  alignas(kTouchedPageBytes) static const std::byte bytes[6 * kTouchedPageBytes]{};
  std::set<uintptr_t> units;
  const auto begin = reinterpret_cast<uintptr_t>(bytes);
  each(std::span(bytes).subspan(offset, length), [&](const std::byte& byte) {
    const auto at = reinterpret_cast<uintptr_t>(&byte) - begin;
    EXPECT_TRUE(at >= offset && at < offset + length) << at;
    units.insert(at / unit);
  });
  return units;
}

TEST(TouchingEach, TouchesTheLineOrPageOfTheBytesAndNoOther) {
  for (const size_t offset : {0U, 1U, 63U, 64U, 4095U, 4096U})
    for (const size_t length :
         {1U, 2U, 63U, 64U, 65U, 127U, 4096U, 4097U, 8191U, 8192U, 8255U, 16383U, 20000U}) {
      const auto expect_all = [&](const std::set<uintptr_t>& units, size_t unit) {
        EXPECT_EQ(units.size(), (offset + length - 1) / unit - offset / unit + 1) << offset << " " << length;
      };
      expect_all(units_touched([](auto bytes, auto visit) { for_each_line(bytes, visit); }, kTouchedLineBytes,
                               offset, length),
                 kTouchedLineBytes);
      expect_all(units_touched([](auto bytes, auto visit) { for_each_page(bytes, visit); }, kTouchedPageBytes,
                               offset, length),
                 kTouchedPageBytes);
    }
}

INSTANTIATE_TEST_SUITE_P(Ways, Touching, testing::Values(&touch_pages, &touch_lines),
                         [](const auto& way) { return way.param == &touch_pages ? "Pages" : "Lines"; });

}  // namespace
}  // namespace penstock
