#include "profiling/serve/access.hpp"

#include <gtest/gtest.h>

#include <set>

namespace penstock {
namespace {

HttpRequest request_with(std::string host, std::string origin = "") {
  HttpRequest request;
  request.headers.emplace_back("host", std::move(host));
  if (!origin.empty()) request.headers.emplace_back("origin", std::move(origin));
  return request;
}

TEST(Access, TokensHave128BitsAndDiffer) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) {
    const Result<std::string> token = make_token();
    ASSERT_TRUE(token.ok());
    EXPECT_EQ(token->size(), 32U);
    EXPECT_EQ(token->find_first_not_of("0123456789abcdef"), std::string::npos);
    tokens.insert(*token);
  }
  EXPECT_EQ(tokens.size(), 100U);
}

TEST(Access, ComparesSecrets) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abd", "abc"));
  EXPECT_FALSE(same_secret("bbc", "abc"));
  EXPECT_FALSE(same_secret("ab", "abc"));
  EXPECT_FALSE(same_secret("abcabc", "abc"));
  EXPECT_FALSE(same_secret("", "abc"));
  EXPECT_FALSE(same_secret("abc", ""));
  EXPECT_FALSE(same_secret(std::string_view("abc\0", 4), "abc"));
}

TEST(Access, ATokenIsAcceptedInTheQueryOrTheHeader) {
  HttpRequest request;
  EXPECT_FALSE(has_token(request, "secret"));
  request.query.emplace_back("token", "secret");
  EXPECT_TRUE(has_token(request, "secret"));
  request.headers.emplace_back("authorization", "Bearer wrong");
  EXPECT_FALSE(has_token(request, "secret"));  // if this header is present, the token in the query is ignored
  request.headers.back().second = "Bearer secret";
  EXPECT_TRUE(has_token(request, "secret"));
  request.query.clear();
  EXPECT_TRUE(has_token(request, "secret"));
  for (const char* const right : {"bearer secret", "BEARER secret", "bEARER   secret"}) {
    request.headers.back().second = right;
    EXPECT_TRUE(has_token(request, "secret")) << right;
  }
  for (const char* const wrong :
       {"secret", "Bearer", "Bearer ", "Bearersecret", "Basic secret", "Bearer SECRET"}) {
    request.headers.back().second = wrong;
    EXPECT_FALSE(has_token(request, "secret")) << wrong;
  }
}

TEST(Access, OtherHostNamesAndOriginsAreRefused) {
  EXPECT_TRUE(is_for_this_server(request_with("127.0.0.1:8080"), 8080));
  EXPECT_TRUE(is_for_this_server(request_with("localhost:8080"), 8080));
  EXPECT_FALSE(is_for_this_server(request_with("127.0.0.1"), 8080));
  EXPECT_FALSE(is_for_this_server(request_with("127.0.0.1:8081"), 8080));
  EXPECT_FALSE(is_for_this_server(request_with("evil.example:8080"), 8080));
  EXPECT_FALSE(is_for_this_server(request_with("127.0.0.1:8080.evil.example"), 8080));
  EXPECT_FALSE(is_for_this_server(HttpRequest{}, 8080));
  EXPECT_TRUE(is_for_this_server(request_with("127.0.0.1:8080", "http://127.0.0.1:8080"), 8080));
  EXPECT_TRUE(is_for_this_server(request_with("127.0.0.1:8080", "http://localhost:8080"), 8080));
  EXPECT_FALSE(is_for_this_server(request_with("127.0.0.1:8080", "http://127.0.0.1:8081"), 8080));
  EXPECT_FALSE(is_for_this_server(request_with("127.0.0.1:8080", "https://127.0.0.1:8080"), 8080));
  EXPECT_FALSE(is_for_this_server(request_with("127.0.0.1:8080", "null"), 8080));
  EXPECT_FALSE(is_for_this_server(request_with("127.0.0.1:8080", "http://evil.example"), 8080));
}

TEST(Access, TheDefaultPortMayBeMissingInHost) {
  EXPECT_TRUE(is_for_this_server(request_with("127.0.0.1", "http://127.0.0.1"), 80));
  EXPECT_TRUE(is_for_this_server(request_with("localhost", "http://localhost"), 80));
  EXPECT_TRUE(is_for_this_server(request_with("127.0.0.1:80"), 80));
  EXPECT_FALSE(is_for_this_server(request_with("evil.example"), 80));
  EXPECT_FALSE(is_for_this_server(request_with("127.0.0.1", "http://evil.example"), 80));
  EXPECT_FALSE(is_for_this_server(request_with("localhost"), 8080));
}

// /proc/net/tcp as the kernel writes it on x86-64.
constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 "
    "0\n"
    "   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 20 4\n"
    "   2: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 13 1 0 20 4\n"
    "   3: 0100007F:C351 0100007F:1F90 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4\n"
    "   4: 0100007F:C352 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 14 1 0 20 "
    "4\n";
constexpr uint32_t kLoopback = 0x0100007F;

SocketEnds from_port(uint16_t port) {
  return {.local_address = kLoopback, .local_port = port, .remote_address = kLoopback, .remote_port = 8080};
}

TEST(Access, TheUserOfAClientOwnsItsSocket) {
  EXPECT_EQ(socket_owner(kTable, from_port(50000)), uid_t{1001});
  EXPECT_EQ(socket_owner(kTable, from_port(50002)), uid_t{0});
  EXPECT_EQ(socket_owner(kTable, from_port(50003)), std::nullopt);
  EXPECT_EQ(socket_owner("", from_port(50000)), std::nullopt);
}

TEST(Access, AClosedSocketHasNoOwner) {
  EXPECT_EQ(socket_owner(kTable, from_port(50001)), std::nullopt);
}

TEST(Access, AnIPv6SocketWithAnIPv4AddressIsFound) {
  constexpr std::string_view kTable6 =
      "  sl  local_address                         remote_address                        st tx_queue "
      "rx_queue "
      "tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0000000000000000FFFF00000100007F:C350 0000000000000000FFFF00000100007F:1F90 01 "
      "00000000:00000000 00:00000000 00000000  1002        0 15 1 0 20 4\n";
  EXPECT_EQ(socket_owner(kTable6, from_port(50000)), uid_t{1002});
}

TEST(Access, TruncatedLinesAreIgnored) {
  const std::string_view row = kTable.substr(kTable.find("   2:"));
  const size_t inode = row.find(" 13 ");
  for (size_t length = 0; length <= inode; ++length)
    EXPECT_EQ(socket_owner(row.substr(0, length), from_port(50000)), std::nullopt) << length;
}

}  // namespace
}  // namespace penstock
