#include "profiling/interpose/writer/environment.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

namespace penstock::interpose {
namespace {

// The environment of a program that is executed with the variables `given`.
std::vector<std::string> watched_environment(std::vector<const char*> given, bool keeps_preload = true) {
  static const bool is_saved = [] {
    ::setenv("PENSTOCK_PROFILE_SESSION", "/nowhere", 1);
    save_environment();
    return true;
  }();
  EXPECT_TRUE(is_saved);
  given.push_back(nullptr);
  char* const* variables = const_cast<char* const*>(given.data());
  PENSTOCK_WATCHED_ENVIRONMENT(watched, variables, keeps_preload);
  std::vector<std::string> all;
  for (char* const* at = watched.get(); *at != nullptr; ++at) all.emplace_back(*at);
  return all;
}

TEST(WatchedEnvironment, AddsMissingVariables) {
  const std::vector<std::string> bare = watched_environment({"A=1"});
  ASSERT_GE(bare.size(), 3U);
  EXPECT_EQ(bare[0], "A=1");
  EXPECT_EQ(bare[1].rfind("LD_PRELOAD=", 0), 0U);
  const std::string library = bare[1].substr(11);
  const std::string preload = "LD_PRELOAD=" + library;
  EXPECT_EQ(watched_environment({preload.c_str(), "PENSTOCK_PROFILE_SESSION=/x"}).front(), preload);
  // The last ones have other libraries whose names have the library's in them.
  for (const std::string& others :
       {std::string("/lib/other.so"), library + ".old", "/old" + library, library + ".old:/lib/other.so"}) {
    const std::string given = "LD_PRELOAD=" + others;
    const std::vector<std::string> all =
        watched_environment({given.c_str(), "PENSTOCK_PROFILE_SESSION=/mine"});
    ASSERT_GE(all.size(), 2U);
    EXPECT_EQ(all[0], "PENSTOCK_PROFILE_SESSION=/mine");
    EXPECT_EQ(all[1], preload + ":" + others);
  }
}

TEST(WatchedEnvironment, RemovesTheLibraryForProgramsThatCannotLoadIt) {
  const std::string library = watched_environment({"A=1"}).at(1).substr(11);
  const auto first_variable = [](const std::string& preload) {
    return watched_environment({("LD_PRELOAD=" + preload).c_str(), "A=1"}, false).at(0);
  };
  EXPECT_EQ(first_variable(library), "A=1") << "nothing else is in the list";
  EXPECT_EQ(first_variable(library + ":/lib/other.so"), "LD_PRELOAD=/lib/other.so");
  EXPECT_EQ(first_variable("/lib/a.so " + library + ":/lib/b.so:" + library),
            "LD_PRELOAD=/lib/a.so /lib/b.so:");
  EXPECT_EQ(first_variable(library + ".old"), "LD_PRELOAD=" + library + ".old");
}

}  // namespace
}  // namespace penstock::interpose
