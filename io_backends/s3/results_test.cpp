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

TEST_F(S3Results, RequestsWithoutThemAreSentAgain) {
  server.spoil(Mishap::page, 1, "PUT", "small");
  ASSERT_OK(put("small", "bytes"));
  EXPECT_EQ(text_of(*get("small")), "bytes");
  server.spoil(Mishap::page, 1, "PUT", "partNumber=1");
  ASSERT_OK(put("large", large));
  EXPECT_TRUE(*get("large") == large);
  server.spoil(Mishap::page, 1, "DELETE", "large");
  EXPECT_OK(backend->names().remove("large"));
  EXPECT_ERRC(Errc::not_found, backend->names().stat("large"));
}

TEST_F(S3Results, ARemovalWithoutOneIsNotDone) {
  ASSERT_OK(put("small", "bytes"));
  for (const Mishap mishap : {Mishap::page, Mishap::blanks}) {
    server.spoil(mishap, TestServer::kAll, "DELETE");
    EXPECT_ERRC(Errc::io, backend->names().remove("small"), "'small'");
    server.forgive();
    EXPECT_OK(backend->names().stat("small"));
  }
  server.spoil(Mishap::page_after, TestServer::kAll, "DELETE");
  EXPECT_OK(backend->names().remove("small"));
  EXPECT_ERRC(Errc::not_found, backend->names().stat("small"));
}

TEST_F(S3Results, AnUploadThatCannotBeCreatedIsNone) {
  for (const Mishap mishap : {Mishap::page, Mishap::blanks, Mishap::cut_result, Mishap::late_error}) {
    server.spoil(mishap, TestServer::kAll, "POST", "uploads");
    EXPECT_ERRC(Errc::io, put("large", large), "'large'") << static_cast<int>(mishap);
    server.forgive();
    EXPECT_EQ(server.uploads(), 0U);
  }
}

TEST_F(S3Results, AnAbortWithoutOneIsSentAgain) {
  server.spoil(Mishap::page, TestServer::kAll, "POST", "uploadId=");
  server.spoil(Mishap::page, 1, "DELETE", "uploadId=");
  EXPECT_ERRC(Errc::io, put("large", large), "'large'");
  EXPECT_EQ(server.uploads(), 0U);
}

TEST_F(S3Results, AnUploadThatStaysOpenIsNamed) {
  std::size_t open = 0;
  for (const Mishap mishap : {Mishap::page, Mishap::blanks}) {
    server.spoil(Mishap::page, TestServer::kAll, "POST", "uploadId=");
    server.spoil(mishap, TestServer::kAll, "DELETE", "uploadId=");
    EXPECT_ERRC(Errc::io, put("large", large), "'upload/" + std::to_string(++open) + "'");
    server.forgive();
    EXPECT_EQ(server.uploads(), open);
  }
}

// After a failed upload, the name has another writer's object, or cannot be asked for.
TEST_F(S3Results, AnotherObjectProvesNoUpload) {
  store("large", large);
  server.spoil(Mishap::page, TestServer::kAll, "POST", "uploadId=");
  EXPECT_ERRC(Errc::io, put("large", large), "'large'");
  server.forgive();
  server.spoil(Mishap::page_after, TestServer::kAll, "POST", "uploadId=");
  server.spoil(Mishap::forbidden, TestServer::kAll, "HEAD");
  EXPECT_ERRC(Errc::io, put("large", large), "'large'");
  server.forgive();
  EXPECT_EQ(server.uploads(), 0U);
}

TEST_F(S3Results, ACopyThatIsThereIsARename) {
  const Bytes bytes = pattern(100);
  ASSERT_OK(put("from", bytes));
  server.spoil(Mishap::page_after, TestServer::kAll, "PUT", "to");
  ASSERT_OK(backend->names().rename_noreplace("from", "to"));
  server.forgive();
  EXPECT_ERRC(Errc::not_found, backend->names().stat("from"));
  EXPECT_EQ(*get("to"), bytes);
}

TEST_F(S3Results, ALockIsHeldWhenItIsThere) {
  server.spoil(Mishap::page, TestServer::kAll, "PUT", "lock");
  EXPECT_ERRC(Errc::io, backend->names().lock("lock"), "'lock'");
  server.forgive();
  EXPECT_ERRC(Errc::not_found, backend->names().stat("lock"));
  server.spoil(Mishap::page_after, TestServer::kAll, "PUT", "lock");
  const auto held = backend->names().lock("lock");
  ASSERT_OK(held);
  EXPECT_ERRC(Errc::busy, backend->names().lock("lock"));
}

TEST_F(S3Results, AListingWithoutOneFails) {
  ASSERT_OK(put("small", "bytes"));
  const auto list = [&] { return backend->names().list("", [](const Entry&) { return true; }); };
  for (const Mishap mishap : {Mishap::page, Mishap::blanks, Mishap::cut_result, Mishap::late_error}) {
    server.spoil(mishap, TestServer::kAll, "GET", "list-type=2");
    EXPECT_ERRC(Errc::io, list()) << static_cast<int>(mishap);
    server.forgive();
    EXPECT_OK(list());
  }
}

// The remedy that the error message gives must work.
TEST_F(S3Results, AProxyIsPassedByWithNoProxy) {
  TestServer proxy;
  proxy.spoil(Mishap::page, TestServer::kAll);
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
