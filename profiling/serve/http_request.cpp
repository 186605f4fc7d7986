#include "profiling/serve/http_request.hpp"

#include <algorithm>

#include "io_backends/core/text.hpp"

namespace penstock {
namespace {

constexpr size_t kMostHeaders = 64;
constexpr size_t kMostMethodBytes = 16;

ParsedRequest refuse(int status, std::string_view reason) {
  ParsedRequest parsed;
  parsed.state = ParsedRequest::State::refused;
  parsed.status = status;
  parsed.reason = reason;
  return parsed;
}
ParsedRequest bad_request(std::string_view reason) {
  return refuse(400, reason);
}

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// True if the text is a "token" of RFC 9110 (5.6.2): not empty, and without blanks and separators.
bool is_token(std::string_view text) {
  constexpr std::string_view kOtherTokenCharacters = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_alphanumeric(c) || kOtherTokenCharacters.find(c) != std::string_view::npos;
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

// Splits the target of the request ("/path?query") into path and query. Returns the reason why it is invalid;
// "" if it is valid.
std::string_view read_target(std::string_view target, HttpRequest& request) {
  if (target.empty() || target.front() != '/') return "the target must be a path";
  if (std::any_of(target.begin(), target.end(), [](char c) { return is_control(c) || c == '#'; }))
    return "the target has characters that none has";
  const size_t question_mark = target.find('?');
  const std::optional<std::string> path = percent_decoded(target.substr(0, question_mark), false);
  if (!path || has_control(*path)) return "the path is badly encoded";
  request.path = *path;
  if (question_mark == std::string_view::npos) return "";
  for (std::string_view rest = target.substr(question_mark + 1); !rest.empty();) {
    std::string_view parameter = take_part(rest, '&');
    if (parameter.empty()) continue;
    std::optional<std::string> name = percent_decoded(take_part(parameter, '='), true);
    std::optional<std::string> value = percent_decoded(parameter, true);
    if (!name || !value) return "the query is badly encoded";
    request.query.emplace_back(*std::move(name), *std::move(value));
  }
  return "";
}

// Parses the first line ("GET /path HTTP/1.1"). Returns a refusal with status and reason, or nullopt if the
// line is valid.
std::optional<ParsedRequest> read_line(std::string_view line, HttpRequest& request, bool& version_1_1) {
  const size_t first_blank = line.find(' ');
  const size_t last_blank = line.rfind(' ');
  if (first_blank == std::string_view::npos || first_blank == last_blank)
    return bad_request("no request line");
  const std::string_view method = line.substr(0, first_blank);
  const std::string_view target = line.substr(first_blank + 1, last_blank - first_blank - 1);
  const std::string_view version = line.substr(last_blank + 1);
  if (!is_token(method) || method.size() > kMostMethodBytes) return bad_request("no such method");
  if (target.find(' ') != std::string_view::npos) return bad_request("blanks in the target");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    if (version.starts_with("HTTP/")) return refuse(505, "HTTP/1.1 is spoken here");
    return bad_request("no version of HTTP");
  }
  version_1_1 = version == "HTTP/1.1";
  request.method = method;
  if (const std::string_view wrong = read_target(target, request); !wrong.empty()) return bad_request(wrong);
  return std::nullopt;
}

std::string_view read_header(std::string_view line, HttpRequest& request) {
  if (line.front() == ' ' || line.front() == '\t') return "folded headers";
  const size_t colon = line.find(':');
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

// Sets `bytes` to the length of the body, from the headers. Returns a refusal with status and reason, or
// nullopt if the headers are valid.
std::optional<ParsedRequest> read_length(const HttpRequest& request, size_t& bytes) {
  if (request.header("transfer-encoding")) return refuse(501, "chunked bodies are not read here");
  if (const auto expected = request.header("expect"); expected && lower_case(*expected) != "100-continue")
    return refuse(417, "nothing else than 100-continue is to be expected here");
  const std::optional<std::string_view> length_header = request.header("content-length");
  if (!length_header) return std::nullopt;
  if (length_header->empty() ||
      !std::all_of(length_header->begin(), length_header->end(), [](char c) { return c >= '0' && c <= '9'; }))
    return bad_request("a length that is no number");
  const auto body_length = parse_digits<size_t>(*length_header);
  if (!body_length || *body_length > kMostBodyBytes) return refuse(413, "the body is too long");
  bytes = *body_length;
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> HttpRequest::parameter(std::string_view name) const {
  return find(query, name);
}

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  return find(headers, name);
}

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_blank) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high_digit = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low_digit = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high_digit < 0 || low_digit < 0) return std::nullopt;
      out += char(high_digit * 16 + low_digit);
      i += 2;
    }
  }
  return out;
}

ParsedRequest parse_request(std::string_view received) {
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  const std::string_view head = received.substr(0, kMostHeadBytes);
  // A first line that does not end with CR LF is refused at once. All other errors are found only when the
  // head is whole or has reached its limit.
  const size_t line_feed = head.find('\n');
  if (line_feed != std::string_view::npos && (line_feed < 2 || head[line_feed - 1] != '\r'))
    return bad_request("a line that does not end as lines do");
  const size_t head_end = head.find(kHeadEnd);
  if (head_end == std::string_view::npos)
    return head.size() < kMostHeadBytes ? ParsedRequest{} : refuse(431, "the request's head is too long");
  ParsedRequest parsed;
  HttpRequest& request = parsed.request;
  bool version_1_1 = false;
  bool is_first_line = true;
  for (std::string_view rest = received.substr(0, head_end + 2); !rest.empty(); is_first_line = false) {
    const size_t line_end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, line_end);
    rest.remove_prefix(line_end + 2);
    if (is_first_line) {
      if (const auto refusal = read_line(line, request, version_1_1)) return *refusal;
    } else if (const std::string_view wrong = read_header(line, request); !wrong.empty()) {
      return bad_request(wrong);
    }
  }
  if (version_1_1 && !request.header("host")) return bad_request("no host");
  size_t body_bytes = 0;
  if (const auto refusal = read_length(request, body_bytes)) return *refusal;
  const size_t body_begin = head_end + kHeadEnd.size();
  if (received.size() - body_begin < body_bytes) {
    ParsedRequest incomplete;
    incomplete.wants_continue =
        version_1_1 && request.header("expect").has_value() && received.size() == body_begin;
    return incomplete;
  }
  request.body = received.substr(body_begin, body_bytes);
  parsed.state = ParsedRequest::State::whole;
  return parsed;
}

}  // namespace penstock
