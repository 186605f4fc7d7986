#include "profiling/serve/http_request.hpp"

#include <algorithm>
#include <iterator>

#include "io_backends/core/text.hpp"

namespace penstock {
namespace {

constexpr size_t kMostHeaders = 64;
// the headers that this server reads
constexpr std::string_view kUsedHeaders[] = {"authorization", "content-length", "expect",
                                             "host",          "origin",         "transfer-encoding"};
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";

ParsedRequest refuse(int status, std::string_view reason) {
  return {.state = ParsedRequest::State::refused, .status = status, .reason = reason};
}
ParsedRequest bad_request(std::string_view reason) {
  return refuse(400, reason);
}

bool has_control(std::string_view text, char allowed = ' ') {
  return std::any_of(text.begin(), text.end(), [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c != allowed && (byte < 0x20 || byte == 0x7F);
  });
}

std::optional<std::string_view> find(const std::vector<std::pair<std::string, std::string>>& pairs,
                                     std::string_view name) {
  for (const auto& [key, value] : pairs)
    if (key == name) return value;
  return std::nullopt;
}

// Returns why the first line ("GET /path?query HTTP/1.1") is refused; "" if it is not. httplib also accepts
// more blanks, a fragment, and a '%' without two hexadecimal digits.
std::string_view check_request_line(std::string_view line) {
  if (std::count(line.begin(), line.end(), ' ') != 2 || has_control(line)) return "no request line";
  if (!line.substr(line.find(' ')).starts_with(" /") || line.find('#') != std::string_view::npos)
    return "the target must be a path";
  for (size_t at = line.find('%'); at != std::string_view::npos; at = line.find('%', at + 1))
    if (line.find_first_not_of("0123456789abcdefABCDEF", at + 1) < at + 3)
      return "the target is badly encoded";
  return "";
}

// The first line, with all '?' and '=' encoded that are part of a parameter's value. httplib does not accept
// a second '?', and drops a second '='.
std::string with_encoded_values(std::string_view line) {
  std::string encoded;
  bool in_query = false;
  bool in_value = false;
  for (const char c : line.substr(0, line.rfind(' '))) {
    if (in_query && c == '?')
      encoded += "%3F";
    else if (in_value && c == '=')
      encoded += "%3D";
    else
      encoded += c;
    in_value = in_query && c != '&' && (in_value || c == '=');
    in_query = in_query || c == '?';
  }
  return encoded.append(line.substr(line.rfind(' ')));
}

// Returns why a header is refused; "" if it is not.
std::string_view check_header(std::string_view name, std::string_view value) {
  // the characters of a token (RFC 9110, 5.6.2)
  constexpr std::string_view kNameCharacters = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";
  if (name.empty() || name.find_first_not_of(kNameCharacters) != std::string_view::npos)
    return "a line that is not a header";
  if (has_control(value, '\t')) return "control characters in a header";
  const bool is_used =
      std::find(std::begin(kUsedHeaders), std::end(kUsedHeaders), name) != std::end(kUsedHeaders);
  return is_used && value.empty() ? "a header without a value" : "";
}

// Sets `bytes` to the length of the body, from the headers. Returns a refusal with status and reason, or
// nullopt if the headers are valid.
std::optional<ParsedRequest> read_length(const HttpRequest& request, size_t& bytes) {
  if (request.header("transfer-encoding")) return refuse(501, "chunked bodies are not supported");
  if (const auto expected = request.header("expect"); expected && lower_case(*expected) != "100-continue")
    return refuse(417, "only 'Expect: 100-continue' is supported");
  const std::string_view length = request.header("content-length").value_or("0");
  if (length.find_first_not_of("0123456789") != std::string_view::npos)
    return bad_request("a length that is not a number");
  bytes = parse_digits<size_t>(length).value_or(SIZE_MAX);
  if (bytes > kMostBodyBytes) return refuse(413, "the body is too long");
  return std::nullopt;
}

// Parses the lines of a head. The last one has no line end.
ParsedRequest parse_head(std::string_view lines) {
  const std::string_view first_line = lines.substr(0, lines.find(kLineEnd));
  if (const std::string_view wrong = check_request_line(first_line); !wrong.empty())
    return bad_request(wrong);
  const std::string_view version = first_line.substr(first_line.rfind(' ') + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return version.starts_with("HTTP/") ? refuse(505, "only HTTP/1.0 and HTTP/1.1 are supported")
                                        : bad_request("no HTTP version");
  std::optional<HttpRequest> request = read_request_line(with_encoded_values(first_line));
  if (!request) return bad_request("no valid method or target");
  if (has_control(request->path)) return bad_request("the path is badly encoded");
  for (lines.remove_prefix(first_line.size()); !lines.empty();) {
    lines.remove_prefix(kLineEnd.size());
    const std::string_view line = lines.substr(0, lines.find(kLineEnd));
    lines.remove_prefix(line.size());
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return bad_request("a line that is not a header");
    std::string name = lower_case(line.substr(0, colon));
    const std::string_view value = trim(line.substr(colon + 1), " \t");
    if (const std::string_view wrong = check_header(name, value); !wrong.empty()) return bad_request(wrong);
    if (request->header(name)) return bad_request("a header twice");
    if (request->headers.size() == kMostHeaders) return bad_request("too many headers");
    request->headers.emplace_back(std::move(name), value);
  }
  return {.state = ParsedRequest::State::whole, .request = *std::move(request)};
}

}  // namespace

std::optional<std::string_view> HttpRequest::parameter(std::string_view name) const {
  return find(query, name);
}

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  return find(headers, name);
}

ParsedRequest parse_request(std::string_view received) {
  const std::string_view head = received.substr(0, kMostHeadBytes);
  // A first line that does not end with CR LF is refused at once. All other errors are found only when the
  // head is whole or has reached its limit.
  const size_t line_feed = head.find('\n');
  if (line_feed != std::string_view::npos && (line_feed < 2 || head[line_feed - 1] != '\r'))
    return bad_request("a line without CR LF at its end");
  const size_t head_end = head.find(kHeadEnd);
  if (head_end == std::string_view::npos)
    return head.size() < kMostHeadBytes ? ParsedRequest{} : refuse(431, "the request header is too long");
  ParsedRequest parsed = parse_head(head.substr(0, head_end));
  if (parsed.state == ParsedRequest::State::refused) return parsed;
  HttpRequest& request = parsed.request;
  const bool version_1_1 = head.substr(0, line_feed).ends_with("1.1\r");
  if (version_1_1 && !request.header("host")) return bad_request("no host");
  size_t body_bytes = 0;
  if (const auto refusal = read_length(request, body_bytes)) return *refusal;
  const std::string_view body = received.substr(head_end + kHeadEnd.size());
  if (body.size() < body_bytes)
    return {.wants_continue = version_1_1 && request.header("expect") && body.empty()};
  request.body = body.substr(0, body_bytes);
  return parsed;
}

}  // namespace penstock
