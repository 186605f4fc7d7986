#include "profiling/serve/http_response.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "io_backends/core/json.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

class FileBody : public BodySource {
 public:
  FileBody(Fd fd, uint64_t bytes) : fd_(std::move(fd)), bytes_(bytes) {}
  uint64_t bytes() const override { return bytes_; }
  Result<size_t> read(std::span<char> out) override {
    if (offset_ == bytes_) return 0;
    const size_t wanted = size_t(std::min<uint64_t>(out.size(), bytes_ - offset_));
    const ssize_t got = retry_eintr([&] { return ::pread(fd_.get(), out.data(), wanted, off_t(offset_)); });
    if (got <= 0) return errno_error(got < 0 ? errno : EIO, "cannot read", "the prepared file");
    offset_ += uint64_t(got);
    return size_t(got);
  }

 private:
  Fd fd_;
  uint64_t bytes_;
  uint64_t offset_ = 0;
};

}  // namespace

Result<std::unique_ptr<BodySource>> file_body(Fd fd) {
  struct stat about {};
  if (::fstat(fd.get(), &about) != 0) return errno_error(errno, "cannot inspect", "the prepared file");
  return std::unique_ptr<BodySource>(std::make_unique<FileBody>(std::move(fd), uint64_t(about.st_size)));
}

HttpResponse plain_response(int status, std::string_view sentence) {
  return {.status = status, .text = std::string(sentence) + "\n"};
}

HttpResponse json_response(int status, const Json& object) {
  return {.status = status, .content_type = "application/json", .text = one_line(object) + "\n"};
}

}  // namespace penstock
