// For tests of objects: opens tiers, and puts objects that contain a text on them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

inline void put(Backend& backend, std::string_view name, std::string_view content) {
  const auto writer = backend.create(name, content.size());
  ASSERT_TRUE(writer.ok()) << writer.error().message();
  ASSERT_TRUE((*writer)->append(bytes_of(content)).ok());
  ASSERT_TRUE((*writer)->publish(Durability::visible).ok());
}

inline Tier tier(const std::string& text) {
  auto opened = open_tier(text, kNoNamedTiers);
  EXPECT_TRUE(opened.ok()) << opened.error().message();
  return *std::move(opened);
}

}  // namespace penstock
