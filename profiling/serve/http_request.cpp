#include "profiling/serve/http_request.hpp"

#include <algorithm>

#include "io_backends/core/text.hpp"

namespace penstock {
namespace {

constexpr std::size_t kMostHeaders = 64;
constexpr std::size_t kMostMethod = 16;

ParsedRequest refused(int status, std::string_view reason) {
  ParsedRequest parsed;
  parsed.state = ParsedRequest::State::refused;
  parsed.status = status;
  parsed.reason = reason;
  return parsed;
}
ParsedRequest malformed(std::string_view reason) {
  return refused(400, reason);
}

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// A token according to RFC 9110, 5.6.2.
bool is_token(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_alphanumeric(c) || kOthers.find(c) != std::string_view::npos;
  });
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), is_control);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string_view> find(const std::vector<std::pair<std::string, std::string>>& pairs,
                                     std::string_view name) {
  for (const auto& [key, value] : pairs)
    if (key == name) return value;
  return std::nullopt;
}

// Parses the target into path and query. Returns the error; "" if there is none.
std::string_view read_target(std::string_view target, HttpRequest& request) {
  if (target.empty() || target.front() != '/') return "the target must be a path";
  if (std::any_of(target.begin(), target.end(), [](char c) { return is_control(c) || c == '#'; }))
    return "the target has characters that none has";
  const std::size_t mark = target.find('?');
  const std::optional<std::string> path = percent_decoded(target.substr(0, mark), false);
  if (!path || has_control(*path)) return "the path is badly encoded";
  request.path = *path;
  if (mark == std::string_view::npos) return "";
  for (std::string_view rest = target.substr(mark + 1); !rest.empty();) {
    std::string_view part = take_part(rest, '&');
    if (part.empty()) continue;
    std::optional<std::string> name = percent_decoded(take_part(part, '='), true);
    std::optional<std::string> value = percent_decoded(part, true);
    if (!name || !value) return "the query is badly encoded";
    request.query.emplace_back(*std::move(name), *std::move(value));
  }
  return "";
}

// Parses the first line. Returns a refusal, or nullopt if the line is valid.
std::optional<ParsedRequest> read_line(std::string_view line, HttpRequest& request, bool& version_1_1) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return malformed("no request line");
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method) || method.size() > kMostMethod) return malformed("no such method");
  if (target.find(' ') != std::string_view::npos) return malformed("blanks in the target");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    if (version.starts_with("HTTP/")) return refused(505, "HTTP/1.1 is spoken here");
    return malformed("no version of HTTP");
  }
  version_1_1 = version == "HTTP/1.1";
  request.method = method;
  if (const std::string_view wrong = read_target(target, request); !wrong.empty()) return malformed(wrong);
  return std::nullopt;
}

std::string_view read_header(std::string_view line, HttpRequest& request) {
  if (line.front() == ' ' || line.front() == '\t') return "folded headers";
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return "a line that is no header";
  const std::string_view value = trim(line.substr(colon + 1), " \t");
  if (std::any_of(value.begin(), value.end(), [](char c) { return is_control(c) && c != '\t'; }))
    return "control characters in a header";
  std::string name = lower_case(line.substr(0, colon));
  if (find(request.headers, name)) return "a header twice";
  if (request.headers.size() >= kMostHeaders) return "too many headers";
  request.headers.emplace_back(std::move(name), value);
  return "";
}

// Finds the length of the body from the headers. Returns a refusal, or nullopt.
std::optional<ParsedRequest> read_length(const HttpRequest& request, std::size_t& bytes) {
  if (request.header("transfer-encoding")) return refused(501, "chunked bodies are not read here");
  if (const auto expected = request.header("expect"); expected && lower_case(*expected) != "100-continue")
    return refused(417, "nothing else than 100-continue is to be expected here");
  const std::optional<std::string_view> length = request.header("content-length");
  if (!length) return std::nullopt;
  if (length->empty() ||
      !std::all_of(length->begin(), length->end(), [](char c) { return c >= '0' && c <= '9'; }))
    return malformed("a length that is no number");
  const auto number = parse_digits<std::size_t>(*length);
  if (!number || *number > kMostBodyBytes) return refused(413, "the body is too long");
  bytes = *number;
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> HttpRequest::parameter(std::string_view name) const {
  return find(query, name);
}

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  return find(headers, name);
}

std::optional<std::string> percent_decoded(std::string_view text, bool plus) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

ParsedRequest parse_request(std::string_view received) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const std::string_view head = received.substr(0, kMostHeadBytes);
  // Refuses at once if no further bytes can make a valid request.
  const std::size_t line_feed = head.find('\n');
  if (line_feed != std::string_view::npos && (line_feed < 2 || head[line_feed - 1] != '\r'))
    return malformed("a line that does not end as lines do");
  const std::size_t end = head.find(kEnd);
  if (end == std::string_view::npos)
    return head.size() < kMostHeadBytes ? ParsedRequest{} : refused(431, "the request's head is too long");
  ParsedRequest parsed;
  HttpRequest& request = parsed.request;
  bool version_1_1 = false;
  bool first = true;
  for (std::string_view rest = received.substr(0, end + 2); !rest.empty(); first = false) {
    const std::size_t line_end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, line_end);
    rest.remove_prefix(line_end + 2);
    if (first) {
      if (const auto refusal = read_line(line, request, version_1_1)) return *refusal;
    } else if (const std::string_view wrong = read_header(line, request); !wrong.empty()) {
      return malformed(wrong);
    }
  }
  if (version_1_1 && !request.header("host")) return malformed("no host");
  std::size_t body = 0;
  if (const auto refusal = read_length(request, body)) return *refusal;
  const std::size_t begin = end + kEnd.size();
  if (received.size() - begin < body) {
    ParsedRequest part;
    part.wants_continue = version_1_1 && request.header("expect").has_value() && received.size() == begin;
    return part;
  }
  request.body = received.substr(begin, body);
  parsed.state = ParsedRequest::State::whole;
  return parsed;
}

}  // namespace penstock
