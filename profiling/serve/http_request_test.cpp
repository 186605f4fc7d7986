#include "profiling/serve/http_request.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "profiling/serve/http_response.hpp"

namespace penstock {
namespace {

using State = ParsedRequest::State;

int status_of(std::string_view text) {
  const ParsedRequest parsed = parse_request(text);
  EXPECT_EQ(parsed.state == State::refused, parsed.status != 0);
  return parsed.status;
}

std::string get(std::string_view target) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n\r\n";
}

TEST(HttpRequest, AWholeRequestIsParsed) {
  const std::string text =
      "POST /trace?seconds=2&token=a%20b+c&flag HTTP/1.1\r\nHost: 127.0.0.1:1\r\nX-Odd:\t v \r\n"
      "Content-Length: 4\r\n\r\nbodyNEXT";
  const ParsedRequest parsed = parse_request(text);
  ASSERT_EQ(parsed.state, State::whole);
  EXPECT_EQ(parsed.request.method, "POST");
  EXPECT_EQ(parsed.request.path, "/trace");
  EXPECT_EQ(parsed.request.parameter("seconds"), "2");
  EXPECT_EQ(parsed.request.parameter("token"), "a b c");
  EXPECT_EQ(parsed.request.parameter("flag"), "");
  EXPECT_EQ(parsed.request.parameter("none"), std::nullopt);
  EXPECT_EQ(parsed.request.header("host"), "127.0.0.1:1");
  EXPECT_EQ(parsed.request.header("x-odd"), "v");
  EXPECT_EQ(parsed.request.body, "body");
}

TEST(HttpRequest, ValuesOfParametersMayHaveAnyCharacter) {
  const ParsedRequest parsed = parse_request(get("/x?a=b=c&d=e?f&g?=h&=&i&j=%3d%3F"));
  ASSERT_EQ(parsed.state, State::whole);
  EXPECT_EQ(parsed.request.parameter("a"), "b=c");
  EXPECT_EQ(parsed.request.parameter("d"), "e?f");
  EXPECT_EQ(parsed.request.parameter("g?"), "h");
  EXPECT_EQ(parsed.request.parameter("i"), "");
  EXPECT_EQ(parsed.request.parameter("j"), "=?");
}

// A header's value has no encoding: a '%' stands for itself.
TEST(HttpRequest, HeadersAreNotDecoded) {
  const ParsedRequest parsed = parse_request(
      "GET / HTTP/1.1\r\nHost: 127.0.0.1%3A1\r\nOrigin: http%3A//a\r\nX: a%0d%0ab\r\nRange: "
      "bytes=0-1\r\n\r\n");
  ASSERT_EQ(parsed.state, State::whole);
  EXPECT_EQ(parsed.request.header("host"), "127.0.0.1%3A1");
  EXPECT_EQ(parsed.request.header("origin"), "http%3A//a");
  EXPECT_EQ(parsed.request.header("x"), "a%0d%0ab");
  EXPECT_EQ(parsed.request.headers.size(), 4U) << "nothing is added";
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: %33\r\n\r\nabc"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100%2dcontinue\r\n\r\n"), 417);
}

TEST(HttpRequest, IsIncompleteUntilItsLastByte) {
  const std::string text = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_EQ(parse_request(text.substr(0, length)).state, State::incomplete) << length;
  EXPECT_EQ(parse_request(text).state, State::whole);
}

TEST(HttpRequest, PathsAreDecodedButDotsStay) {
  EXPECT_EQ(parse_request(get("/../etc/passwd")).request.path, "/../etc/passwd");
  EXPECT_EQ(parse_request(get("/%2e%2e/x")).request.path, "/../x");
  EXPECT_EQ(parse_request(get("/a+b")).request.path, "/a+b");
  for (const char* const wrong : {"/%", "/%4", "/%zz", "/%00", "/%0d%0a", "/%7f", "/a#b", "a", "*",
                                  "http://127.0.0.1/", "/a b", "/?a=%", "/?%=a"})
    EXPECT_EQ(status_of(get(wrong)), 400) << wrong;
}

TEST(HttpRequest, MalformedRequestsAreRefused) {
  for (const char* const wrong :
       {"\r\n\r\n",
        "\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET /\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "G@T / HTTP/1.1\r\nHost: a\r\n\r\n",
        "/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nline\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\x01\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -3\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "GETGETGETGETGETGETGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / SMTP\r\nHost: a\r\n\r\n"})
    EXPECT_EQ(status_of(wrong), 400) << wrong;
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"), 501);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n"), 417);
  EXPECT_EQ(parse_request("GET / HTTP/1.0\r\n\r\n").state, State::whole);
}

// RFC 9110, 10.1.1: a client that waits before it sends the body gets 100 (Continue). It gets none if it has
// already sent the body, or if its request will be refused.
TEST(HttpRequest, AClientThatWaitsFor100ContinueIsRecognized) {
  const auto posting = [](std::string_view version, std::string_view expect, std::string_view length) {
    return fmt::format("POST / HTTP/{}\r\nHost: a\r\nExpect: {}\r\nContent-Length: {}\r\n\r\n", version,
                       expect, length);
  };
  for (const char* const expect : {"100-continue", "100-Continue"}) {
    const ParsedRequest parsed = parse_request(posting("1.1", expect, "3"));
    EXPECT_EQ(parsed.state, State::incomplete);
    EXPECT_TRUE(parsed.wants_continue);
    EXPECT_FALSE(parse_request(posting("1.1", expect, "3") + "a").wants_continue);
    EXPECT_EQ(parse_request(posting("1.1", expect, "3") + "abc").state, State::whole);
  }
  EXPECT_FALSE(parse_request(posting("1.0", "100-continue", "3")).wants_continue)
      << "it knows no such answer";
  EXPECT_EQ(parse_request(posting("1.1", "100-continue", "0")).state, State::whole);
  EXPECT_EQ(status_of(posting("1.1", "100-continue", "5000")), 413);
}

TEST(HttpRequest, OnlyHeadersThatAreNotUsedMayHaveNoValue) {
  EXPECT_EQ(parse_request("GET / HTTP/1.1\r\nHost: a\r\nAccept:\r\n\r\n").state, State::whole);
  for (const char* const name :
       {"Host", "origin", "Authorization", "Transfer-Encoding", "Expect", "Content-Length"})
    EXPECT_EQ(status_of(fmt::format("GET / HTTP/1.1\r\n{}: \r\nHost: a\r\n\r\n", name)), 400) << name;
}

// httplib::Server changes what SIGPIPE does in the whole process.
TEST(HttpRequest, ParsingDoesNotChangeSignals) {
  struct sigaction before {};
  struct sigaction after {};
  before.sa_handler = SIG_DFL;
  ASSERT_EQ(::sigaction(SIGPIPE, &before, nullptr), 0);
  EXPECT_EQ(parse_request(get("/")).state, State::whole);
  ::sigaction(SIGPIPE, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_DFL);
}

TEST(HttpRequest, AHeadOfAnAnswerIsWritten) {
  const std::string head = response_head(plain_response(404, "there is no such page"));
  EXPECT_TRUE(head.starts_with("HTTP/1.1 404 Not Found\r\n")) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
  for (const char* const line :
       {"Content-Length: 22\r\n", "Connection: close\r\n", "Cache-Control: no-store\r\n",
        "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"})
    EXPECT_NE(head.find(line), std::string::npos) << line;
  for (const int status : {200, 400, 401, 403, 405, 408, 409, 413, 417, 431, 500, 501, 503, 505})
    EXPECT_TRUE(response_head(plain_response(status, "")).starts_with(fmt::format("HTTP/1.1 {} ", status)));
}

TEST(HttpRequest, SizesOfHeadAndBodyAreLimited) {
  std::string head = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
  head += std::string(kMostHeadBytes - head.size() - 4, 'x');
  EXPECT_EQ(parse_request(head).state, State::incomplete);
  EXPECT_EQ(parse_request(head + "\r\n\r\n").state, State::whole);
  EXPECT_EQ(status_of(head + "x\r\n\r\n"), 431);
  EXPECT_EQ(status_of(head + "xxxx"), 431);
  EXPECT_EQ(status_of(std::string(kMostHeadBytes, 'x')), 431);
  std::string many = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 100; ++i) many += "h" + std::to_string(i) + ": v\r\n";
  EXPECT_EQ(status_of(many + "\r\n"), 400);

  const auto posting = [](const std::string& length) {
    return "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + length + "\r\n\r\n";
  };
  EXPECT_EQ(status_of(posting("4097")), 413);
  EXPECT_EQ(status_of(posting("99999999999999999999999999")), 413);
  EXPECT_EQ(parse_request(posting("4096") + std::string(4095, 'b')).state, State::incomplete);
  EXPECT_EQ(parse_request(posting("4096") + std::string(4096, 'b')).state, State::whole);
}

}  // namespace
}  // namespace penstock
