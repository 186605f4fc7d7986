#include "profiling/serve/http_response.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "io_backends/core/json_text.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

class FileBody : public BodySource {
 public:
  FileBody(Fd fd, uint64_t bytes) : fd_(std::move(fd)), bytes_(bytes) {}
  uint64_t bytes() const override { return bytes_; }
  Result<size_t> read(std::span<char> out) override {
    size_t copied = 0;
    const size_t wanted = size_t(std::min<uint64_t>(out.size(), bytes_ - offset_));
    while (copied < wanted) {
      const ssize_t got = retry_eintr(
          [&] { return ::pread(fd_.get(), out.data() + copied, wanted - copied, off_t(offset_)); });
      if (got <= 0) return errno_error(got < 0 ? errno : EIO, "cannot read", "what was made");
      copied += size_t(got);
      offset_ += uint64_t(got);
    }
    return copied;
  }

 private:
  Fd fd_;
  uint64_t bytes_;
  uint64_t offset_ = 0;
};

std::string_view reason_phrase(int status) {
  static const std::map<int, std::string_view> kReasonPhrases{{200, "OK"},
                                                              {400, "Bad Request"},
                                                              {401, "Unauthorized"},
                                                              {403, "Forbidden"},
                                                              {404, "Not Found"},
                                                              {405, "Method Not Allowed"},
                                                              {408, "Request Timeout"},
                                                              {409, "Conflict"},
                                                              {413, "Content Too Large"},
                                                              {417, "Expectation Failed"},
                                                              {431, "Request Header Fields Too Large"},
                                                              {501, "Not Implemented"},
                                                              {503, "Service Unavailable"},
                                                              {505, "HTTP Version Not Supported"}};
  const auto entry = kReasonPhrases.find(status);
  return entry == kReasonPhrases.end() ? "Internal Server Error" : entry->second;
}

}  // namespace

Result<std::unique_ptr<BodySource>> file_body(Fd fd) {
  struct stat about {};
  if (::fstat(fd.get(), &about) != 0) return errno_error(errno, "cannot inspect", "what was made");
  return std::unique_ptr<BodySource>(std::make_unique<FileBody>(std::move(fd), uint64_t(about.st_size)));
}

HttpResponse plain_response(int status, std::string_view sentence) {
  HttpResponse response;
  response.status = status;
  response.text = std::string(sentence) + "\n";
  return response;
}

HttpResponse json_response(int status, const Json& object) {
  HttpResponse response;
  response.status = status;
  response.content_type = "application/json";
  response.text = one_line(object) + "\n";
  return response;
}

std::string response_head(const HttpResponse& response) {
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n"
      "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: {}\r\n",
      response.status, reason_phrase(response.status), response.content_type,
      response.body != nullptr ? response.body->bytes() : response.text.size(), response.content_policy);
  for (const auto& [name, value] : response.headers) head += fmt::format("{}: {}\r\n", name, value);
  return head + "\r\n";
}

}  // namespace penstock
