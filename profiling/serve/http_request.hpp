// One HTTP/1.1 request, read out of the bytes that a client has sent so far. Anybody may send anything: what
// is not exactly a request is refused, nothing is guessed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock {

constexpr std::size_t kMostHeadBytes = 8192;
constexpr std::size_t kMostBodyBytes = 4096;

struct HttpRequest {
  std::string method;                                        // as sent: "GET"
  std::string path;                                          // decoded, without the query; begins with '/'
  std::vector<std::pair<std::string, std::string>> query;    // decoded, in order
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case, each once
  std::string body;

  // Of the first of that name; nothing where there is none.
  std::optional<std::string_view> parameter(std::string_view name) const;
  std::optional<std::string_view> header(std::string_view name) const;
};

struct ParsedRequest {
  enum class State { incomplete, whole, refused };
  State state = State::incomplete;
  int status = 0;           // of a refused one: 400, 413, 417, 431, 501 or 505
  std::string_view reason;  // likewise: a sentence, a literal
  bool waits = false;       // an incomplete one: the client waits for "100 Continue" before it sends the body
  HttpRequest request;      // of a whole one
};

// `received`: all bytes of the connection up to now. Incomplete where more may make it whole, which is never
// so beyond kMostHeadBytes + kMostBodyBytes; bytes behind a whole request are not looked at. Chunked bodies,
// headers that are folded or sent twice, ends of lines without CR and paths that decode to control characters
// are refused.
ParsedRequest parse_request(std::string_view received);

// Percent-encoding away; nothing where it is broken. `plus`: '+' stands for a blank, as in queries.
std::optional<std::string> percent_decoded(std::string_view text, bool plus);

}  // namespace penstock
