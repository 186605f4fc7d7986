#include "io_backends/core/system/streaming_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

TEST(StreamingCopy, EveryLengthAndAlignmentGivesTheSameBytesAndNoOthers) {
  const std::vector<std::byte> source = pattern(kLeastStreamedBytes + 5000);
  constexpr std::byte kUntouched{0xA5};
  for (const size_t length : {size_t{0}, size_t{1}, size_t{4096}, kLeastStreamedBytes - 1,
                              kLeastStreamedBytes, kLeastStreamedBytes + 1, kLeastStreamedBytes + 63,
                              kLeastStreamedBytes + 1087, kLeastStreamedBytes + 4711})
    for (const size_t from : {0U, 1U, 17U, 64U})
      for (const size_t to : {0U, 1U, 16U, 63U, 100U}) {
        std::vector<std::byte> out(kLeastStreamedBytes + 6000, kUntouched);
        copy_streamed(std::span(out).subspan(to), std::span(source).subspan(from, length));
        const auto begin = out.begin() + ptrdiff_t(to);
        const auto end = begin + ptrdiff_t(length);
        ASSERT_TRUE(std::equal(begin, end, source.begin() + ptrdiff_t(from)))
            << length << " from " << from << " to " << to;
        const auto untouched = [](std::byte byte) { return byte == kUntouched; };
        ASSERT_TRUE(std::all_of(out.begin(), begin, untouched) && std::all_of(end, out.end(), untouched))
            << length << " from " << from << " to " << to;
      }
}

}  // namespace
}  // namespace penstock
