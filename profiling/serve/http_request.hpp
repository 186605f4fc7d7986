// Parses one HTTP/1.1 request from the bytes that a client has sent so far. The bytes may come from an
// attacker. Anything that is not exactly a request is refused; nothing is guessed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock {

constexpr size_t kMostHeadBytes = 8192;
constexpr size_t kMostBodyBytes = 4096;

struct HttpRequest {
  std::string method;                                        // as sent: "GET"
  std::string path;                                          // decoded, without the query; begins with '/'
  std::vector<std::pair<std::string, std::string>> query;    // decoded parameters
  std::vector<std::pair<std::string, std::string>> headers;  // as sent, but names in lower case
  std::string body;

  // The value of the first entry with this name; nullopt if there is none.
  std::optional<std::string_view> parameter(std::string_view name) const;
  std::optional<std::string_view> header(std::string_view name) const;
};

struct ParsedRequest {
  enum class State { incomplete, whole, refused };
  State state = State::incomplete;
  int status = 0;               // if refused: 400, 413, 417, 431, 501 or 505
  std::string_view reason{};    // if refused: a sentence; refers to a string literal
  bool wants_continue = false;  // if incomplete: the client waits for "100 Continue" before it sends the body
  HttpRequest request{};        // set if the state is `whole`
};

// Parses a request. `received`: all bytes that the connection has received so far. The state of the result is
// `incomplete` if more bytes can complete the request. If `received` has more than kMostHeadBytes +
// kMostBodyBytes, the state is never `incomplete`, so a client cannot fill the memory. Bytes after a whole
// request are ignored.
// Refused are: chunked bodies, folded or repeated headers, line ends without CR, and paths that decode to
// control characters.
ParsedRequest parse_request(std::string_view received);

// Reads the method, the path and the query from the first line of a request, with cpp-httplib. It accepts
// more than parse_request(). Returns nullopt if it does not accept the line.
std::optional<HttpRequest> read_request_line(const std::string& line);

}  // namespace penstock
