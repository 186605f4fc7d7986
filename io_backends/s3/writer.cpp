// Writes one object. A small object is one PUT. An object larger than a part is a multipart upload, whose
// parts are sent while the caller fills the next one. In both cases publish() makes the whole object visible
// at once.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/s3/parts.hpp"

namespace penstock::s3 {
namespace {

constexpr uint64_t kMaxParts = 10'000;  // S3's limit for one upload

class S3Writer final : public Writer {
 public:
  S3Writer(Store& store, std::string_view name, uint64_t hint)
      : store_(store),
        name_(name),
        part_bytes_(size_t(std::max<uint64_t>(store.settings().part_bytes, hint / kMaxParts + 1))),
        mark_(random_mark()) {}
  ~S3Writer() override { give_up(); }

  using Writer::append;
  Result<void> append(std::span<const std::byte> bytes) override {
    if (finished_) return finished_writer_error(name_);
    Result<void> appended = append_bytes(bytes);
    if (!appended.ok()) give_up(appended);
    return appended;
  }

  Result<void> publish(Durability /*wanted*/, IfExists if_exists) override {
    if (finished_) return finished_writer_error(name_);
    Result<void> done = upload_id_.empty() ? put(if_exists) : complete(if_exists);
    if (done.ok()) upload_id_.clear();
    give_up(done);
    if (done.ok()) store_.published(name_);
    return done;
  }

 private:
  Result<void> append_bytes(std::span<const std::byte> bytes) {
    if (parts_) PENSTOCK_TRY(parts_->check());
    store_.moved().add_written(bytes.size());
    object_bytes_ += bytes.size();
    while (!bytes.empty()) {
      const size_t count = std::min(part_bytes_ - next_part_.size(), bytes.size());
      try {
        if (next_part_.size() + count > next_part_.capacity())
          next_part_.reserve(
              std::min(part_bytes_, std::max(next_part_.size() + count, 2 * next_part_.capacity())));
        next_part_.insert(next_part_.end(), bytes.begin(), bytes.begin() + ptrdiff_t(count));
      } catch (const std::bad_alloc&) {
        return errno_error(ENOMEM, "no memory for a part of", name_);
      }
      bytes = bytes.subspan(count);
      if (next_part_.size() == part_bytes_ && !bytes.empty()) PENSTOCK_TRY(send_part());
    }
    return success();
  }

  Result<void> send_part() {
    if (upload_id_.empty()) PENSTOCK_TRY(begin_upload());
    if (parts_->sent_count() == kMaxParts)
      return make_error(Errc::no_space, "'" + name_ + "' has more than 10000 parts: set a larger part=SIZE");
    return parts_->send(next_part_);
  }

  Result<void> begin_upload() {
    PENSTOCK_ASSIGN(const Answer answer, store_.perform({.method = Method::post,
                                                         .key = store_.key(name_),
                                                         .query = {{"uploads", ""}},
                                                         .headers = {{std::string(kMarkHeader), mark_}},
                                                         .result_element = "InitiateMultipartUploadResult"}));
    if (!answer.ok()) return refusal_error(answer, store_.settings(), "cannot create", name_);
    PENSTOCK_ASSIGN(upload_id_, parse_upload_id(answer.text));
    PENSTOCK_ASSIGN(parts_, Parts::make(store_, name_, upload_id_));
    return success();
  }

  // Fails if the object must not get its name: an object has that name already (with IfExists::fail), or,
  // with Settings::check_names, a folder has it or a parent folder is an object.
  Result<void> check_name(IfExists if_exists) {
    if (if_exists == IfExists::fail) {
      PENSTOCK_ASSIGN(const Answer existing, store_.head(name_));
      if (existing.ok()) return errno_error(EEXIST, "cannot publish", name_);
      if (!says_no_object(existing))
        return refusal_error(existing, store_.settings(), "cannot publish", name_);
    }
    if (!store_.settings().check_names) return success();
    PENSTOCK_TRY(store_.check_parents(name_, "cannot publish"));
    PENSTOCK_ASSIGN(const bool folder, store_.has_folder(name_));
    return folder ? errno_error(EISDIR, "cannot publish", name_) : success();
  }

  Result<void> put(IfExists if_exists) {
    PENSTOCK_TRY(check_name(if_exists));
    return publish_by({.method = Method::put,
                       .key = store_.key(name_),
                       .headers = {{std::string(kMarkHeader), mark_}},
                       .body = next_part_},
                      if_exists);
  }

  Result<void> complete(IfExists if_exists) {
    // The name is checked while the parts are in flight, if the connections have no limit (max_connections).
    // With a limit, the parts may use all connections. So the name is checked after the parts have arrived.
    const bool check_name_first = store_.settings().max_connections == 0;
    if (check_name_first) PENSTOCK_TRY(check_name(if_exists));
    if (!next_part_.empty()) PENSTOCK_TRY(send_part());
    PENSTOCK_ASSIGN(const std::vector<std::string> etags, parts_->finish());
    if (!check_name_first) PENSTOCK_TRY(check_name(if_exists));
    std::string xml = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
    for (size_t i = 0; i < etags.size(); ++i)
      xml +=
          "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" + etags[i] + "</ETag></Part>";
    xml += "</CompleteMultipartUpload>";
    return publish_by({.method = Method::post,
                       .key = store_.key(name_),
                       .query = {{"uploadId", upload_id_}},
                       .body = std::as_bytes(std::span(xml)),
                       .result_element = "CompleteMultipartUploadResult"},
                      if_exists);
  }

  // Sends the request that makes the object visible.
  Result<void> publish_by(Request request, IfExists if_exists) {
    Request unconditional = request;
    if (if_exists == IfExists::fail) request.headers.emplace_back("if-none-match", "*");
    Result<Answer> answer = store_.perform(std::move(request));
    // Status 501 means that the server does not support the condition if-none-match. The request is repeated
    // without it: check_name() has already found that the name is free.
    if (answer.ok() && answer->status == 501 && if_exists == IfExists::fail)
      answer = store_.perform(std::move(unconditional));
    if (answer.ok() && answer->ok()) return success();
    // The request may have succeeded although it seems to have failed: its answer may be lost or replaced, or
    // libcurl may have repeated it. In that case the object has this writer's mark and size.
    const Result<Answer> existing = store_.head(name_, true);
    if (existing.ok() && existing->ok() && existing->mark == mark_ && existing->object_bytes == object_bytes_)
      return success();
    if (!answer.ok()) return answer.error();
    return refusal_error(*answer, store_.settings(), "cannot publish", name_);
  }

  // Frees the memory and aborts the multipart upload. If the object is already visible, it stays.
  void give_up() {
    Result<void> outcome = success();
    give_up(outcome);
  }

  // Does the same as give_up() without an argument. If `outcome` is an error and the upload could not be
  // aborted, it adds the second failure to the text of that error.
  void give_up(Result<void>& outcome) {
    finished_ = true;
    parts_.reset();
    const std::string upload = std::exchange(upload_id_, {});
    next_part_ = {};
    if (upload.empty()) return;
    const Result<Answer> aborted =
        store_.perform({.method = Method::remove, .key = store_.key(name_), .query = {{"uploadId", upload}}});
    const bool is_aborted = aborted.ok() && (aborted->status == 204 || aborted->status == 404);
    if (is_aborted || outcome.ok()) return;
    outcome.error().what +=
        ". Its multipart upload '" + printable(upload) +
        "' could not be aborted: remove it, or set a lifecycle rule that removes incomplete uploads";
  }

  Store& store_;
  const std::string name_;
  const size_t part_bytes_;
  const std::string mark_;
  std::string upload_id_;  // id of the multipart upload; "": none
  Part next_part_;
  uint64_t object_bytes_ = 0;  // bytes that were appended so far
  std::unique_ptr<Parts> parts_;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Writer> make_writer(Store& store, std::string_view name, uint64_t bytes_hint) {
  return std::make_unique<S3Writer>(store, name, bytes_hint);
}

}  // namespace penstock::s3
