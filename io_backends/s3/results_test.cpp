// Tests answers with status 200 that prove nothing, as from a proxy that answers instead of the store.
#include <cstddef>
#include <cstdlib>
#include <string>

#include "io_backends/s3/s3_fixture.hpp"

namespace penstock::s3 {
namespace {

class S3Results : public S3 {
 protected:
  void SetUp() override {
    S3::SetUp();
    if (backend) remake({{"part", "5MiB"}, {"retries", "1"}});
  }

  const Bytes large = pattern(5 * kMiB + 1);
};

TEST_F(S3Results, RequestsWithoutAResultAreSentAgain) {
  server.inject_faults(ServerFault::page, 1, "PUT", "small");
  ASSERT_OK(put("small", "bytes"));
  EXPECT_EQ(text_of(*get("small")), "bytes");
  server.inject_faults(ServerFault::page, 1, "PUT", "partNumber=1");
  ASSERT_OK(put("large", large));
  EXPECT_TRUE(*get("large") == large);
  server.inject_faults(ServerFault::page, 1, "DELETE", "large");
  EXPECT_OK(backend->names().remove("large"));
  EXPECT_ERRC(Errc::not_found, backend->names().stat("large"));
}

TEST_F(S3Results, ARemovalWithoutAResultIsNotDone) {
  ASSERT_OK(put("small", "bytes"));
  for (const ServerFault fault : {ServerFault::page, ServerFault::blanks}) {
    server.inject_faults(fault, TestServer::kAllTries, "DELETE");
    EXPECT_ERRC(Errc::io, backend->names().remove("small"), "'small'");
    server.clear_faults();
    EXPECT_OK(backend->names().stat("small"));
  }
  server.inject_faults(ServerFault::page_after, TestServer::kAllTries, "DELETE");
  EXPECT_OK(backend->names().remove("small"));
  EXPECT_ERRC(Errc::not_found, backend->names().stat("small"));
}

TEST_F(S3Results, AnUploadThatCannotBeCreatedLeavesNothing) {
  for (const ServerFault fault :
       {ServerFault::page, ServerFault::blanks, ServerFault::cut_result, ServerFault::late_error}) {
    server.inject_faults(fault, TestServer::kAllTries, "POST", "uploads");
    EXPECT_ERRC(Errc::io, put("large", large), "'large'") << int(fault);
    server.clear_faults();
    EXPECT_EQ(server.open_uploads(), 0U);
  }
}

TEST_F(S3Results, AnAbortWithoutAResultIsSentAgain) {
  server.inject_faults(ServerFault::page, TestServer::kAllTries, "POST", "uploadId=");
  server.inject_faults(ServerFault::page, 1, "DELETE", "uploadId=");
  EXPECT_ERRC(Errc::io, put("large", large), "'large'");
  EXPECT_EQ(server.open_uploads(), 0U);
}

TEST_F(S3Results, AnUploadThatStaysOpenIsNamed) {
  size_t open = 0;
  for (const ServerFault fault : {ServerFault::page, ServerFault::blanks}) {
    server.inject_faults(ServerFault::page, TestServer::kAllTries, "POST", "uploadId=");
    server.inject_faults(fault, TestServer::kAllTries, "DELETE", "uploadId=");
    EXPECT_ERRC(Errc::io, put("large", large), "'upload/" + std::to_string(++open) + "'");
    server.clear_faults();
    EXPECT_EQ(server.open_uploads(), open);
  }
}

// After a failed upload, the name belongs to another writer's object, or the server refuses the HEAD for it.
TEST_F(S3Results, AnotherObjectProvesNoUpload) {
  store("large", large);
  server.inject_faults(ServerFault::page, TestServer::kAllTries, "POST", "uploadId=");
  EXPECT_ERRC(Errc::io, put("large", large), "'large'");
  server.clear_faults();
  server.inject_faults(ServerFault::page_after, TestServer::kAllTries, "POST", "uploadId=");
  server.inject_faults(ServerFault::forbidden, TestServer::kAllTries, "HEAD");
  EXPECT_ERRC(Errc::io, put("large", large), "'large'");
  server.clear_faults();
  EXPECT_EQ(server.open_uploads(), 0U);
}

TEST_F(S3Results, ARenameSucceedsIfTheCopyExists) {
  const Bytes bytes = pattern(100);
  ASSERT_OK(put("from", bytes));
  server.inject_faults(ServerFault::page_after, TestServer::kAllTries, "PUT", "to");
  ASSERT_OK(backend->names().rename_noreplace("from", "to"));
  server.clear_faults();
  EXPECT_ERRC(Errc::not_found, backend->names().stat("from"));
  EXPECT_EQ(*get("to"), bytes);
}

TEST_F(S3Results, ALockIsHeldIfItsObjectExists) {
  server.inject_faults(ServerFault::page, TestServer::kAllTries, "PUT", "lock");
  EXPECT_ERRC(Errc::io, backend->names().lock("lock"), "'lock'");
  server.clear_faults();
  EXPECT_ERRC(Errc::not_found, backend->names().stat("lock"));
  server.inject_faults(ServerFault::page_after, TestServer::kAllTries, "PUT", "lock");
  const auto held = backend->names().lock("lock");
  ASSERT_OK(held);
  EXPECT_ERRC(Errc::busy, backend->names().lock("lock"));
}

TEST_F(S3Results, AListingWithoutAResultFails) {
  ASSERT_OK(put("small", "bytes"));
  const auto list = [&] { return backend->names().list("", [](const Entry&) { return true; }); };
  for (const ServerFault fault :
       {ServerFault::page, ServerFault::blanks, ServerFault::cut_result, ServerFault::late_error}) {
    server.inject_faults(fault, TestServer::kAllTries, "GET", "list-type=2");
    EXPECT_ERRC(Errc::io, list()) << int(fault);
    server.clear_faults();
    EXPECT_OK(list());
  }
}

// The remedy that the error message gives must work.
TEST_F(S3Results, NoProxyAvoidsAProxy) {
  TestServer proxy;
  proxy.inject_faults(ServerFault::page, TestServer::kAllTries);
  const std::string url = proxy.url();
  ::setenv("http_proxy", url.substr(0, url.rfind('/')).c_str(), 1);
  ::unsetenv("no_proxy");
  EXPECT_ERRC(Errc::io, put("small", "bytes"), "no_proxy");
  ::setenv("no_proxy", "127.0.0.1", 1);
  EXPECT_OK(put("small", "bytes"));
  ::unsetenv("http_proxy");
}

}  // namespace
}  // namespace penstock::s3
