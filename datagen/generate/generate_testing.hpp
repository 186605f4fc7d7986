// For tests of generate(): data sets in memory, and comparison of all their bytes.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "datagen/generate/generate.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

using Tree = std::map<std::string, std::string>;  // object name -> its bytes

inline Tier tier(const std::string& path, const std::string& options = "") {
  return open_tier("mem:" + path + options, kNoNamedTiers).value();
}

inline std::string content(Backend& backend, std::string_view name) {
  const auto reader = backend.open(name).value();
  std::string bytes(reader->size().value(), '\0');
  EXPECT_TRUE(reader->read_at(0, std::as_writable_bytes(std::span(bytes))).ok());
  return bytes;
}

inline void put(Backend& backend, std::string_view name, const std::string& bytes) {
  const auto writer = backend.create(name).value();
  ASSERT_TRUE(writer->append(std::as_bytes(std::span(bytes))).ok());
  ASSERT_TRUE(writer->publish(Durability::visible).ok());
}

inline void collect(Backend& backend, const std::string& folder, Tree& tree) {
  std::vector<Entry> entries;
  const auto listed = backend.names().list(folder, [&](const Entry& entry) {
    entries.push_back(entry);
    return true;
  });
  ASSERT_TRUE(listed.ok()) << listed.error().what;
  for (const Entry& entry : entries) {
    if (entry.folder)
      collect(backend, entry.name, tree);
    else
      tree[entry.name] = content(backend, entry.name);
  }
}

inline Tree tree_of(Tier& tier) {
  Tree tree;
  collect(*tier.backend, "", tree);
  return tree;
}

inline Result<GenerateResult> make(Tier& tier, const Generation& generation, unsigned threads = 2,
                                   bool resume = false) {
  const auto ranks = single_process();
  Progress progress(false, "", 0, "");
  GenerateResult made;
  PENSTOCK_TRY(generate(generation, tier, threads, resume, *ranks, progress, made));
  return made;
}

// Checks that two data sets are equal, object by object. EXPECT_EQ on the whole trees would print pictures.
inline void expect_same(const Tree& tree, const Tree& expected) {
  for (const auto& [name, bytes] : expected) {
    ASSERT_TRUE(tree.contains(name)) << name;
    EXPECT_TRUE(tree.at(name) == bytes) << name;
  }
  for (const auto& [name, bytes] : tree) EXPECT_TRUE(expected.contains(name)) << name;
}

}  // namespace penstock
