// Writes one object. A small object is one PUT. An object larger than a part is a multipart upload, whose
// parts are sent while the caller fills the next one. In both cases publish() shows the whole object at once.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/s3/parts.hpp"

namespace penstock::s3 {
namespace {

constexpr std::uint64_t kMostParts = 10'000;  // S3's limit

class S3Writer final : public Writer {
 public:
  S3Writer(Store& store, std::string_view name, std::uint64_t hint)
      : store_(store),
        name_(name),
        part_(
            static_cast<std::size_t>(std::max<std::uint64_t>(store.settings().part, hint / kMostParts + 1))),
        mark_(random_mark()) {}
  ~S3Writer() override { give_up(); }

  using Writer::append;
  Result<void> append(std::span<const std::byte> bytes) override {
    if (finished_) return spent_error(name_);
    Result<void> taken = take(bytes);
    if (!taken.ok()) give_up(taken);
    return taken;
  }

  Result<void> publish(Durability /*wanted*/, IfExists if_exists) override {
    if (finished_) return spent_error(name_);
    Result<void> done = upload_.empty() ? put(if_exists) : complete(if_exists);
    if (done.ok()) upload_.clear();
    give_up(done);
    if (done.ok()) store_.published(name_);
    return done;
  }

 private:
  Result<void> take(std::span<const std::byte> bytes) {
    if (parts_) PENSTOCK_TRY(parts_->state());
    store_.moved().add_written(bytes.size());
    bytes_ += bytes.size();
    while (!bytes.empty()) {
      const std::size_t count = std::min(part_ - filling_.size(), bytes.size());
      try {
        if (filling_.size() + count > filling_.capacity())
          filling_.reserve(std::min(part_, std::max(filling_.size() + count, 2 * filling_.capacity())));
        filling_.insert(filling_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
      } catch (const std::bad_alloc&) {
        return errno_error(ENOMEM, "no memory for a part of", name_);
      }
      bytes = bytes.subspan(count);
      if (filling_.size() == part_ && !bytes.empty()) PENSTOCK_TRY(send_part());
    }
    return success();
  }

  Result<void> send_part() {
    if (upload_.empty()) PENSTOCK_TRY(begin_upload());
    if (parts_->sent() == kMostParts)
      return make_error(Errc::no_space, "'" + name_ + "' has more than 10000 parts: say part=SIZE, larger");
    return parts_->send(filling_);
  }

  Result<void> begin_upload() {
    PENSTOCK_ASSIGN(const Answer answer, store_.perform({.method = Method::post,
                                                         .key = store_.key(name_),
                                                         .query = {{"uploads", ""}},
                                                         .headers = {{std::string(kMark), mark_}},
                                                         .result = "InitiateMultipartUploadResult"}));
    if (!answer.ok()) return refused(answer, store_.settings(), "cannot create", name_);
    PENSTOCK_ASSIGN(upload_, parse_upload_id(answer.text));
    PENSTOCK_ASSIGN(parts_, Parts::make(store_, name_, upload_));
    return success();
  }

  // Fails if the object must not get this name: it exists (IfExists::fail), it is a folder, or a parent is an
  // object.
  Result<void> check_name(IfExists if_exists) {
    if (if_exists == IfExists::fail) {
      PENSTOCK_ASSIGN(const Answer existing, store_.head(name_));
      if (existing.ok()) return errno_error(EEXIST, "cannot publish", name_);
    }
    if (!store_.settings().checks) return success();
    PENSTOCK_TRY(store_.check_parents(name_, "cannot publish"));
    PENSTOCK_ASSIGN(const bool folder, store_.has_folder(name_));
    return folder ? errno_error(EISDIR, "cannot publish", name_) : success();
  }

  Result<void> put(IfExists if_exists) {
    PENSTOCK_TRY(check_name(if_exists));
    return publish_by({.method = Method::put,
                       .key = store_.key(name_),
                       .headers = {{std::string(kMark), mark_}},
                       .body = filling_},
                      if_exists);
  }

  Result<void> complete(IfExists if_exists) {
    // The requests of check_name() come in addition to the parts in flight. With a limit of connections the
    // parts may use all of them, so the check waits until the parts have arrived.
    const bool check_first = store_.settings().connections == 0;
    if (check_first) PENSTOCK_TRY(check_name(if_exists));
    if (!filling_.empty()) PENSTOCK_TRY(send_part());
    PENSTOCK_ASSIGN(const std::vector<std::string> etags, parts_->finish());
    if (!check_first) PENSTOCK_TRY(check_name(if_exists));
    std::string xml = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
    for (std::size_t i = 0; i < etags.size(); ++i)
      xml +=
          "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" + etags[i] + "</ETag></Part>";
    xml += "</CompleteMultipartUpload>";
    return publish_by({.method = Method::post,
                       .key = store_.key(name_),
                       .query = {{"uploadId", upload_}},
                       .body = std::as_bytes(std::span(xml)),
                       .result = "CompleteMultipartUploadResult"},
                      if_exists);
  }

  // Sends the request that makes the object visible.
  Result<void> publish_by(Request request, IfExists if_exists) {
    Request plain = request;
    if (if_exists == IfExists::fail) request.headers.emplace_back("if-none-match", "*");
    Result<Answer> answer = store_.perform(std::move(request));
    // Status 501: the server does not support the condition. check_name() has already found that the name is
    // free.
    if (answer.ok() && answer->status == 501 && if_exists == IfExists::fail)
      answer = store_.perform(std::move(plain));
    if (answer.ok() && answer->ok()) return success();
    // The request may have succeeded although its answer was lost or replaced, and libcurl may have repeated
    // it. In that case the object has this writer's mark and size.
    const Result<Answer> existing = store_.head(name_, true);
    if (existing.ok() && existing->ok() && existing->mark == mark_ && existing->total == bytes_)
      return success();
    if (!answer.ok()) return answer.error();
    return refused(*answer, store_.settings(), "cannot publish", name_);
  }

  // Frees the memory and aborts the multipart upload. An object that is already visible stays.
  void give_up() {
    Result<void> outcome = success();
    give_up(outcome);
  }

  // Like give_up(). If `outcome` is an error and the upload could not be aborted, adds that to its text.
  void give_up(Result<void>& outcome) {
    finished_ = true;
    parts_.reset();
    const std::string upload = std::exchange(upload_, {});
    filling_ = {};
    if (upload.empty()) return;
    const Result<Answer> aborted =
        store_.perform({.method = Method::remove, .key = store_.key(name_), .query = {{"uploadId", upload}}});
    const bool gone = aborted.ok() && (aborted->status == 204 || aborted->status == 404);
    if (gone || outcome.ok()) return;
    outcome.error().what +=
        ". Its multipart upload '" + printable(upload) +
        "' could not be aborted: remove it, or have the bucket's rules remove incomplete uploads";
  }

  Store& store_;
  const std::string name_;
  const std::size_t part_;
  const std::string mark_;
  std::string upload_;  // id of the multipart upload; "": none
  Part filling_;
  std::uint64_t bytes_ = 0;  // appended so far
  std::unique_ptr<Parts> parts_;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Writer> make_writer(Store& store, std::string_view name, std::uint64_t bytes_hint) {
  return std::make_unique<S3Writer>(store, name, bytes_hint);
}

}  // namespace penstock::s3
