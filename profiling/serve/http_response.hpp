// An HTTP answer: a status, headers, and a body that is a text or is read while it is sent.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/fd.hpp"
#include "results/record/record.hpp"

namespace penstock {

// A body that is read in pieces while it is sent. Only one thread may use an instance.
class BodySource {
 public:
  virtual ~BodySource() = default;
  virtual uint64_t bytes() const = 0;
  // Reads the next bytes and returns how many; 0 at the end of the body.
  virtual Result<size_t> read(std::span<char> out) = 0;
};

// Makes a body of the bytes of an open file, up to its present size.
Result<std::unique_ptr<BodySource>> file_body(Fd fd);

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  // further headers, in addition to those that every answer has
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string text{};
  std::unique_ptr<BodySource> body{};  // if not null, sent instead of `text`
  // The value of the header Content-Security-Policy: what a browser lets the body do. The default is the
  // strictest.
  std::string content_policy = "default-src 'none'; frame-ancestors 'none'";
};

// A text answer with one sentence and a newline.
HttpResponse plain_response(int status, std::string_view sentence);
// A JSON answer in one line.
HttpResponse json_response(int status, const Json& object);

// The status line, all headers and the empty line, written by cpp-httplib.
std::string response_head(const HttpResponse& response);

}  // namespace penstock
