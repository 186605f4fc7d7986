// What is answered: a status, headers and a body that is either here or made while it is sent.
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

// One thread.
class BodySource {
 public:
  virtual ~BodySource() = default;
  virtual std::uint64_t bytes() const = 0;
  // The next ones: as many as have room, fewer at the end only, then 0.
  virtual Result<std::size_t> read(std::span<char> out) = 0;
};

// An open file, as long as it is now.
Result<std::unique_ptr<BodySource>> file_body(Fd fd);

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers;  // besides those that each answer has
  std::string text;
  std::unique_ptr<BodySource> body;  // instead of the text
  // What a browser lets the body do; the most strict where nothing is said.
  std::string content_policy = "default-src 'none'; frame-ancestors 'none'";
};

// A sentence, with an end of line.
HttpResponse plain_response(int status, std::string_view sentence);
// One line.
HttpResponse json_response(int status, const Json& object);

// The first line, all headers and the empty line.
std::string response_head(const HttpResponse& response);

}  // namespace penstock
