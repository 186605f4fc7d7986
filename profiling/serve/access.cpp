#include "profiling/serve/access.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "io_backends/core/text.hpp"

namespace penstock {
namespace {

constexpr size_t kTokenBytes = 16;
constexpr uint16_t kHttpPort = 80;
constexpr int kMostTries = 3;

std::string_view next_word(std::string_view& line) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

// Returns the token in an Authorization header: the text after the word "Bearer", which may be in upper or
// lower case (RFC 9110, 11.1). Returns "" if the header begins with another word.
std::string_view bearer_of(std::string_view header) {
  constexpr std::string_view kScheme = "bearer ";
  if (!equals_ignoring_case(header.substr(0, kScheme.size()), kScheme)) return "";
  header.remove_prefix(kScheme.size());
  while (header.starts_with(' ')) header.remove_prefix(1);
  return header;
}

// Writes an address and a port as /proc/net/tcp does: "0100007F:1F90" is 127.0.0.1:8080.
std::string socket_end_text(uint32_t address, uint16_t port) {
  return fmt::format("{:08X}:{:04X}", address, port);
}

}  // namespace

Result<std::string> make_token() {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != ssize_t(bytes.size()))
    return errno_error(errno, "cannot make a token of", "getrandom");
  std::string token;
  for (const unsigned char byte : bytes) fmt::format_to(std::back_inserter(token), "{:02x}", byte);
  return token;
}

bool same_secret(std::string_view one, std::string_view other) {
  // The time of the comparison must not depend on where the texts differ. So the loop never ends early: it
  // runs once for each character of `one`, which is the client's text. The lengths of the texts are not
  // secret.
  unsigned difference = one.size() == other.size() ? 0 : 1;
  for (size_t i = 0; i < one.size(); ++i) {
    const char other_char = other.empty() ? '\0' : other[i % other.size()];
    difference |= unsigned(static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other_char));
  }
  // `volatile` prevents the compiler from ending the loop at the first difference.
  volatile unsigned result = difference;
  return result == 0;
}

bool has_token(const HttpRequest& request, std::string_view token) {
  if (const auto header = request.header("authorization")) return same_secret(bearer_of(*header), token);
  const auto parameter = request.parameter("token");
  return parameter && same_secret(*parameter, token);
}

bool is_for_this_server(const HttpRequest& request, uint16_t port) {
  const auto host = request.header("host");
  const auto is_own_name = [&](std::string_view name) {
    // Browsers leave the port out of Host and Origin if it is 80, the default of http.
    if (port == kHttpPort && (name == "127.0.0.1" || name == "localhost")) return true;
    return name == fmt::format("127.0.0.1:{}", port) || name == fmt::format("localhost:{}", port);
  };
  if (!host || !is_own_name(*host)) return false;
  const auto origin = request.header("origin");
  constexpr std::string_view kScheme = "http://";
  return !origin || (origin->starts_with(kScheme) && is_own_name(origin->substr(kScheme.size())));
}

std::optional<uid_t> socket_owner(std::string_view table, const SocketEnds& ends) {
  const std::string local_end = socket_end_text(ends.local_address, ends.local_port);
  const std::string remote_end = socket_end_text(ends.remote_address, ends.remote_port);
  const std::string ipv4_prefix = fmt::format(
      "{:016X}{:08X}", 0, htonl(0xFFFFU));  // begin of an IPv6 address that contains an IPv4 address
  const auto is_end = [&](std::string_view word, const std::string& end) {
    if (word.starts_with(ipv4_prefix)) word.remove_prefix(ipv4_prefix.size());
    return word == end;
  };
  while (!table.empty()) {
    std::string_view line = take_part(table, '\n');
    next_word(line);  // skips the number of the line
    if (!is_end(next_word(line), local_end) || !is_end(next_word(line), remote_end)) continue;
    for (int i = 0; i < 4; ++i) next_word(line);  // skips state, queues, timer, retransmits
    const std::optional<uint64_t> uid = parse_digits<uint64_t>(next_word(line));
    next_word(line);  // skips the count of timeouts
    const std::optional<uint64_t> inode = parse_digits<uint64_t>(next_word(line));
    if (uid && *uid <= UINT32_MAX && inode && *inode != 0) return static_cast<uid_t>(*uid);
  }
  return std::nullopt;
}

std::optional<uid_t> peer_of(int fd) {
  struct sockaddr_in own_address {};
  struct sockaddr_in peer_address {};
  socklen_t own_bytes = sizeof own_address;
  socklen_t peer_bytes = sizeof peer_address;
  if (::getsockname(fd, reinterpret_cast<struct sockaddr*>(&own_address), &own_bytes) != 0 ||
      ::getpeername(fd, reinterpret_cast<struct sockaddr*>(&peer_address), &peer_bytes) != 0 ||
      own_address.sin_family != AF_INET || peer_address.sin_family != AF_INET)
    return std::nullopt;
  const SocketEnds ends{peer_address.sin_addr.s_addr, ntohs(peer_address.sin_port),
                        own_address.sin_addr.s_addr, ntohs(own_address.sin_port)};
  // Reads the table up to kMostTries times, because one reading may miss the connection: the kernel returns
  // the table in several pieces, and a row may move between them.
  for (int i = 0; i < kMostTries; ++i) {
    for (const char* const name : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
      std::ifstream in(name, std::ios::binary);
      const std::string table{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
      if (const auto owner = socket_owner(table, ends)) return owner;
    }
  }
  return std::nullopt;
}

}  // namespace penstock
