// For tests only: a fixture for parts of the library that need a running session.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "profiling/interpose/counting/thread_log.hpp"
#include "profiling/interpose/writer/session_lifetime.hpp"

namespace penstock::interpose {

// One session for all tests of a suite, in a folder that is removed afterwards.
class InSession : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    char folder[] = "/tmp/penstock-interpose-XXXXXX";
    folder_ = ::mkdtemp(folder);
    ::setenv("PENSTOCK_PROFILE_SESSION", folder_.c_str(), 1);
    open_session();
    retire_logs();  // they belong to the session of the previous suite
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }
  void SetUp() override { ASSERT_EQ(session.state.load(), SessionState::running); }
  static inline std::string folder_;
};

}  // namespace penstock::interpose
