// Threads: one thread at a time uses a Transfers. libcurl calls on_body(), on_header(), on_send() and
// on_rewind() on that thread, inside drive(). Only wake() may come from another thread.
// Lock: none. curl_multi_wakeup() is the only call here that is safe from other threads.
// Memory: every function may allocate. A Slot never moves, because libcurl has its address while the request
// is in flight.
// Ctrl-C: start(), drive() and try_again() call check_interrupt(); this file has no signal handler.
// transfers.hpp tells which requests a signal ends, and when.
// Crash: a request in flight may or may not reach the server.
#include "io_backends/s3/transfers.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <random>

#include "io_backends/core/random.hpp"
#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/text.hpp"

namespace penstock::s3 {
namespace {

// The largest answer that is accepted as text, in bytes. A listing of 1000 names, of 1024 bytes each, has
// 4 MB at most. XML that is hostile needs up to 17 times as much memory as it has bytes (parse_xml()).
constexpr size_t kMaxTextBytes = size_t{8} << 20U;
constexpr long kBufferBytes = 512L << 10U;  // in bytes; the largest value that libcurl accepts
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{10'000};
constexpr std::chrono::seconds kConnectTimeout{10};  // or Settings::timeout, if that is shorter
// time limit of a read that starts after the process was asked to stop
constexpr std::chrono::seconds kStopTimeout{2};

const char* method_name(Method method) {
  constexpr const char* kNames[] = {"GET", "HEAD", "PUT", "POST", "DELETE"};
  return kNames[size_t(method)];
}

bool asked_to_stop() {
  return !check_interrupt().ok();
}

bool is_transient(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:  // also reported if the resolver does not answer
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:  // an interrupted handshake; an untrusted certificate has another code
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_WEIRD_SERVER_REPLY:
      return true;
    default:
      return false;
  }
}

// Returns EMFILE or ENFILE if a try failed because no descriptor was free, else 0. Not every libcurl reports
// this errno, and the resolver and TLS report other errors instead. So this function tries to open a file
// itself, too.
int missing_descriptor_errno(CURL* easy, CURLcode code) {
  if (code != CURLE_COULDNT_RESOLVE_HOST && code != CURLE_COULDNT_CONNECT &&
      code != CURLE_SSL_CONNECT_ERROR && code != CURLE_SSL_CACERT_BADFILE)
    return 0;
  const auto is_descriptor_errno = [](long number) { return number == EMFILE || number == ENFILE; };
  long os_errno = 0;
  ::curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_errno);
  if (is_descriptor_errno(os_errno)) return int(os_errno);
  if (os_errno != 0) return 0;
  const Fd trial(::open("/", O_PATH | O_CLOEXEC));
  return !trial && is_descriptor_errno(errno) ? errno : 0;
}

bool is_transient(long status, const Refusal& refusal) {
  return (status >= 500 && status != 501 && status != 505 && status != 507) || status == 429 ||
         status == 408 || refusal.code == "RequestTimeout";
}

// Whether an answer with a success status also has the result that only an object store sends
// (Request::result_element).
bool has_result(const Request& request, const Answer& answer) {
  if (!request.result_element.empty()) return is_result(answer.text, request.result_element);
  // A HEAD is there to tell the size. A GET is answered by the object or, if a range was requested, by the
  // range.
  if (request.method == Method::head) return answer.status == 200 && answer.has_length;
  if (request.method == Method::get)
    return answer.status == 200 || (answer.status == 206 && (request.first_byte || request.wants_text));
  if (request.method != Method::put && request.method != Method::remove) return true;
  return trim(answer.text).empty() && (request.method == Method::remove || !answer.etag.empty());
}

// Whether `line` is a header with this name.
bool is_header(std::string_view line, std::string_view name) {
  return line.size() > name.size() && line[name.size()] == ':' &&
         equals_ignoring_case(line.substr(0, name.size()), name);
}

}  // namespace

Transfers::Transfers(const Settings& settings)
    : settings_(settings), multi_(::curl_multi_init()), pause_seed_(std::random_device{}()) {}

Transfers::~Transfers() {
  for (const auto& slot : slots_) {
    ::curl_multi_remove_handle(multi_, slot->easy);
    ::curl_easy_cleanup(slot->easy);
    ::curl_slist_free_all(slot->headers);
  }
  ::curl_multi_cleanup(multi_);
}

void Transfers::start(uint64_t tag, Request request) {
  if (free_slots_.empty()) {
    auto new_slot = std::make_unique<Slot>();
    new_slot->easy = ::curl_easy_init();
    free_slots_.push_back(new_slot.get());
    slots_.push_back(std::move(new_slot));
    ::curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, std::max(8L, long(slots_.size())));
  }
  Slot& slot = *free_slots_.back();
  free_slots_.pop_back();
  slot.tag = tag;
  slot.request = std::move(request);
  if (slot.request.method != Method::get) slot.request.wants_text = true;
  slot.answer = {};
  slot.in_flight = true;
  slot.awaits_retry = slot.no_retry = false;
  slot.deadline.reset();
  if (asked_to_stop()) slot.deadline = Clock::now() + kStopTimeout;
  // Over TLS a body is sent without a checksum, because TLS itself detects changed bytes.
  slot.payload_hash = settings_.endpoint.tls && !slot.request.body.empty() ? std::string(kUnsignedPayload)
                                                                           : hex(sha256(slot.request.body));
  ++in_flight_;
  start_try(slot);
}

Transfers::Done Transfers::take_done() {
  Done done = std::move(done_.front());
  done_.pop_front();
  return done;
}

void Transfers::cancel(uint64_t tag) {
  for (const auto& slot : slots_) {
    if (!slot->in_flight || slot->tag != tag) continue;
    if (slot->awaits_retry) --waiting_count_;
    if (!slot->awaits_retry) ::curl_multi_remove_handle(multi_, slot->easy);
    release_slot(*slot);
  }
  std::erase_if(done_, [tag](const Done& done) { return done.tag == tag; });
}

void Transfers::stop_retries() {
  for (const auto& slot : slots_) {
    if (!slot->in_flight) continue;
    slot->no_retry = true;
    if (slot->awaits_retry || slot->sent_bytes < slot->request.body.size()) cancel(slot->tag);
  }
}

void Transfers::wake() {
  ::curl_multi_wakeup(multi_);
}

void Transfers::start_try(Slot& slot) {
  const unsigned tries = slot.answer.tries;
  slot.answer = {};
  slot.answer.tries = tries;
  slot.sent_bytes = 0;
  slot.head_seen = slot.wrong_range = false;
  slot.range = {};
  slot.error_text[0] = '\0';
  if (slot.easy == nullptr || multi_ == nullptr)
    return finish(slot, errno_error(ENOMEM, "cannot ask", settings_.endpoint.server));
  const std::string path =
      "/" + uri_encode(settings_.endpoint.bucket, false) +
      (slot.request.key.empty() ? std::string() : "/" + uri_encode(slot.request.key, true));
  const std::string query = query_string(slot.request.query);
  ::curl_easy_reset(slot.easy);
  const std::string url = settings_.endpoint.server + path + (query.empty() ? "" : "?" + query);
  ::curl_easy_setopt(slot.easy, CURLOPT_URL, url.c_str());
  ::curl_easy_setopt(slot.easy, CURLOPT_PATH_AS_IS, 1L);
  ::curl_easy_setopt(slot.easy, CURLOPT_HTTP_VERSION, long(CURL_HTTP_VERSION_1_1));
  // libcurl must use no signals: its SIGALRM for a resolver timeout is unsafe with threads.
  ::curl_easy_setopt(slot.easy, CURLOPT_NOSIGNAL, 1L);
  ::curl_easy_setopt(slot.easy, CURLOPT_ERRORBUFFER, slot.error_text);
  ::curl_easy_setopt(slot.easy, CURLOPT_BUFFERSIZE, kBufferBytes);
  ::curl_easy_setopt(slot.easy, CURLOPT_CONNECTTIMEOUT,
                     long(std::min(settings_.timeout, kConnectTimeout).count()));
  ::curl_easy_setopt(slot.easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  ::curl_easy_setopt(slot.easy, CURLOPT_LOW_SPEED_TIME, long(settings_.timeout.count()));
  if (!settings_.trusted_certificates.empty())
    ::curl_easy_setopt(slot.easy, CURLOPT_CAINFO, settings_.trusted_certificates.c_str());
  ::curl_easy_setopt(slot.easy, CURLOPT_PRIVATE, &slot);
  ::curl_easy_setopt(slot.easy, CURLOPT_WRITEFUNCTION, &Transfers::on_body);
  ::curl_easy_setopt(slot.easy, CURLOPT_WRITEDATA, &slot);
  ::curl_easy_setopt(slot.easy, CURLOPT_HEADERFUNCTION, &Transfers::on_header);
  ::curl_easy_setopt(slot.easy, CURLOPT_HEADERDATA, &slot);
  set_method(slot);
  set_headers(slot, path, query);
  ::curl_multi_add_handle(multi_, slot.easy);
}

void Transfers::set_method(Slot& slot) {
  switch (slot.request.method) {
    case Method::get:
      return;
    case Method::head:
      ::curl_easy_setopt(slot.easy, CURLOPT_NOBODY, 1L);
      return;
    case Method::remove:
      ::curl_easy_setopt(slot.easy, CURLOPT_CUSTOMREQUEST, "DELETE");
      return;
    case Method::post:
      ::curl_easy_setopt(slot.easy, CURLOPT_CUSTOMREQUEST, "POST");
      [[fallthrough]];
    case Method::put:
      ::curl_easy_setopt(slot.easy, CURLOPT_UPLOAD, 1L);
      ::curl_easy_setopt(slot.easy, CURLOPT_INFILESIZE_LARGE,
                         static_cast<curl_off_t>(slot.request.body.size()));
      ::curl_easy_setopt(slot.easy, CURLOPT_READFUNCTION, &Transfers::on_send);
      ::curl_easy_setopt(slot.easy, CURLOPT_READDATA, &slot);
      ::curl_easy_setopt(slot.easy, CURLOPT_SEEKFUNCTION, &Transfers::on_rewind);
      ::curl_easy_setopt(slot.easy, CURLOPT_SEEKDATA, &slot);
      ::curl_easy_setopt(slot.easy, CURLOPT_UPLOAD_BUFFERSIZE, kBufferBytes);
  }
}

void Transfers::set_headers(Slot& slot, const std::string& path, const std::string& query) {
  ::curl_slist_free_all(std::exchange(slot.headers, nullptr));
  const auto add = [&](const std::string& line) {
    slot.headers = ::curl_slist_append(slot.headers, line.c_str());
  };
  const auto add_all = [&](const Pairs& headers) {
    for (const auto& [name, value] : headers) add(std::string(name).append(": ").append(value));
  };
  add("Expect:");  // send the body without waiting for "100 Continue"
  add_all(slot.request.headers);
  if (slot.request.first_byte)
    add("range: bytes=" + std::to_string(*slot.request.first_byte) + "-" +
        std::to_string(*slot.request.first_byte + slot.request.out.size() - 1));
  const Credentials& credentials = settings_.credentials;
  if (!credentials.key_id.empty()) {
    const std::string date = amz_date(std::time(nullptr));
    SignedRequest signed_request{method_name(slot.request.method), path, query, {}, slot.payload_hash};
    signed_request.headers = {{"x-amz-content-sha256", slot.payload_hash}, {"x-amz-date", date}};
    if (!credentials.session_token.empty())
      signed_request.headers.emplace_back("x-amz-security-token", credentials.session_token);
    add_all(signed_request.headers);
    signed_request.headers.emplace_back("host", settings_.endpoint.host);
    for (const auto& header : slot.request.headers)
      if (header.first.starts_with("x-amz-")) signed_request.headers.push_back(header);
    add("Authorization: " + authorization(signed_request, credentials, settings_.region.name, "s3", date));
  }
  ::curl_easy_setopt(slot.easy, CURLOPT_HTTPHEADER, slot.headers);
}

// libcurl calls this with the next bytes of the answer. Returns how many bytes it took. If the bytes were not
// requested, or do not fit, it takes fewer than it got. Then libcurl ends the transfer with
// CURLE_WRITE_ERROR.
size_t Transfers::on_body(char* bytes, size_t size, size_t count, void* to) {
  Slot& slot = *static_cast<Slot*>(to);
  const size_t length = size * count;
  if (!slot.head_seen) inspect_head(slot);
  if (slot.wrong_range) return 0;
  if (slot.request.wants_text || !slot.answer.ok()) {
    if (slot.answer.text.size() + length > kMaxTextBytes) return 0;
    slot.answer.text.append(bytes, length);
    return length;
  }
  const size_t free_bytes = slot.request.out.size() - slot.answer.bytes;
  const size_t copied_bytes = std::min(free_bytes, length);
  std::copy_n(reinterpret_cast<const std::byte*>(bytes), copied_bytes,
              slot.request.out.begin() + ptrdiff_t(slot.answer.bytes));
  slot.answer.bytes += copied_bytes;
  slot.answer.is_cut = copied_bytes < length;
  return copied_bytes;
}

void Transfers::inspect_head(Slot& slot) {
  Answer& answer = slot.answer;
  slot.head_seen = true;
  ::curl_easy_getinfo(slot.easy, CURLINFO_RESPONSE_CODE, &answer.status);
  curl_off_t length = -1;
  ::curl_easy_getinfo(slot.easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  answer.object_bytes = length > 0 ? uint64_t(length) : 0;
  answer.has_length = length >= 0;
  if (!answer.ok()) return;
  if (slot.request.first_byte) {
    if (answer.status == 206) answer.object_bytes = slot.range.object_bytes.value_or(0);
    slot.wrong_range =
        answer.status == 206 ? slot.range.first != slot.request.first_byte : *slot.request.first_byte > 0;
  }
  if (!slot.wrong_range && slot.request.on_head) slot.request.on_head(answer);
}

size_t Transfers::on_header(char* bytes, size_t size, size_t count, void* to) {
  Slot& slot = *static_cast<Slot*>(to);
  const std::string_view line(bytes, size * count);
  if (line.starts_with("HTTP/")) slot.range = {};
  if (is_header(line, "content-range")) slot.range = parse_content_range(trim(line.substr(14)));
  if (is_header(line, "etag")) slot.answer.etag = trim(line.substr(5));
  if (is_header(line, kMarkHeader)) slot.answer.mark = trim(line.substr(kMarkHeader.size() + 1));
  if (is_header(line, "x-amz-bucket-region")) slot.answer.refusal.region = trim(line.substr(20));
  return line.size();
}

size_t Transfers::on_send(char* bytes, size_t size, size_t count, void* from) {
  Slot& slot = *static_cast<Slot*>(from);
  const auto rest = slot.request.body.subspan(slot.sent_bytes);
  const size_t length = std::min(rest.size(), size * count);
  std::copy_n(rest.begin(), length, reinterpret_cast<std::byte*>(bytes));
  slot.sent_bytes += length;
  return length;
}

// Sets the position in the body from which the next bytes are sent. libcurl calls this before it sends the
// body again on another connection.
int Transfers::on_rewind(void* from, curl_off_t offset, int origin) {
  Slot& slot = *static_cast<Slot*>(from);
  if (origin != SEEK_SET || offset < 0 || uint64_t(offset) > slot.request.body.size())
    return CURL_SEEKFUNC_FAIL;
  slot.sent_bytes = size_t(offset);
  return CURL_SEEKFUNC_OK;
}

// Starts the next try of each request whose pause is over. After a signal it ends the requests that wait for
// their next try.
void Transfers::start_due() {
  if (waiting_count_ == 0) return;
  const auto now = Clock::now();
  for (const auto& slot : slots_) {
    if (!slot->awaits_retry || (slot->retry_at > now && !asked_to_stop())) continue;
    slot->awaits_retry = false;
    --waiting_count_;
    if (const Result<void> interrupt_check = check_interrupt(); !interrupt_check.ok())
      finish(*slot, interrupt_check.error());
    else
      start_try(*slot);
  }
}

// If the process was asked to stop, ends each read (GET, HEAD) whose deadline has passed. A read in flight
// without a deadline gets one first: the present time, or kStopTimeout later if it confirms a change.
// Requests that change the store (PUT, POST, DELETE) go on.
void Transfers::end_overdue_reads() {
  const Result<void> interrupt_check = check_interrupt();
  if (interrupt_check.ok() || in_flight_ == 0) return;
  const auto now = Clock::now();
  for (const auto& slot : slots_) {
    const Method method = slot->request.method;
    if (!slot->in_flight || slot->awaits_retry || (method != Method::get && method != Method::head)) continue;
    if (!slot->deadline) slot->deadline = slot->request.confirms_change ? now + kStopTimeout : now;
    if (*slot->deadline > now) continue;
    ::curl_multi_remove_handle(multi_, slot->easy);
    finish(*slot, make_error(interrupt_check.error().code, "cannot " + std::string(method_name(method)) +
                                                               " '" + slot->request.key +
                                                               "': " + interrupt_check.error().what));
  }
}

void Transfers::drive(bool wait) {
  constexpr std::chrono::milliseconds kLongestWait{100};  // longest wait before the next check for a signal
  start_due();
  int running = 0;
  ::curl_multi_perform(multi_, &running);
  const auto collect = [&] {
    int messages_left = 0;
    while (const CURLMsg* const message = ::curl_multi_info_read(multi_, &messages_left)) {
      void* slot = nullptr;
      ::curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &slot);
      on_end(*static_cast<Slot*>(slot), message->data.result);
    }
  };
  collect();
  end_overdue_reads();
  if (!wait || any_done() || in_flight_ == 0) return;
  auto pause = kLongestWait;
  const auto now = Clock::now();
  for (const auto& slot : slots_)
    if (slot->awaits_retry)
      pause = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(slot->retry_at - now), {}, pause);
  ::curl_multi_poll(multi_, nullptr, 0, int(pause.count()), nullptr);
  start_due();
  ::curl_multi_perform(multi_, &running);
  collect();
  end_overdue_reads();
}

void Transfers::on_end(Slot& slot, CURLcode code) {
  Answer& answer = slot.answer;
  if (!slot.head_seen) inspect_head(slot);
  const int descriptor_errno = missing_descriptor_errno(slot.easy, code);
  ::curl_multi_remove_handle(multi_, slot.easy);
  // If no descriptor is free, the request is not tried again: it would fail in the same way until this
  // process closes some descriptors.
  if (descriptor_errno != 0)
    return finish(slot,
                  errno_error(descriptor_errno, std::string("cannot ") + method_name(slot.request.method),
                              slot.request.key));
  // If on_body() stopped the transfer because `out` is full, that is no error of the transfer: the caller
  // sees Answer::is_cut.
  if (code == CURLE_WRITE_ERROR && answer.is_cut) code = CURLE_OK;
  if (code == CURLE_OK && slot.wrong_range) code = CURLE_WRITE_ERROR;
  if (answer.object_bytes == 0 && answer.status != 206) answer.object_bytes = answer.bytes;
  const bool maybe_refused = !answer.text.empty() && (!answer.ok() || slot.request.method != Method::get ||
                                                      !slot.request.result_element.empty());
  if (code == CURLE_OK && maybe_refused) {
    const std::string region = answer.refusal.region;
    answer.refusal = parse_refusal(answer.text);
    if (answer.refusal.region.empty()) answer.refusal.region = region;
    // The body of an answer with a success status may still be an error, which becomes status 500: S3 sends
    // the status of a copy or of a completed upload before the work ends, and the work may then fail.
    if (answer.ok() && !answer.refusal.code.empty()) answer.status = 500;
  }
  answer.lacks_result = code == CURLE_OK && answer.ok() && !has_result(slot.request, answer);
  if (try_again(slot, code)) return;
  if (code != CURLE_OK) return finish(slot, transport_error(slot, code));
  finish(slot, std::move(answer));
}

// Decides whether the request is tried again. If it is, sets the time of the next try and returns true.
bool Transfers::try_again(Slot& slot, CURLcode code) {
  const bool transient =
      code == CURLE_OK ? slot.answer.lacks_result || is_transient(slot.answer.status, slot.answer.refusal)
                       : is_transient(code);
  if (!transient || slot.no_retry || slot.answer.tries > settings_.retries || asked_to_stop()) return false;
  const unsigned doublings = std::min(slot.answer.tries - 1, 10U);
  const auto longest_pause = std::min(kFirstPause * (1U << doublings), kLongestPause);
  // The next try comes at a random time in the second half of the pause. So clients whose requests failed at
  // the same time do not retry at the same time.
  const double fraction = 0.5 + 0.5 * RandomStream(++pause_seed_, "pauses").uniform(0);
  auto pause = std::chrono::duration_cast<Clock::duration>(longest_pause * fraction);
  curl_off_t retry_after_s = 0;
  ::curl_easy_getinfo(slot.easy, CURLINFO_RETRY_AFTER, &retry_after_s);
  if (retry_after_s > 0)
    pause = std::min<Clock::duration>(std::chrono::seconds(retry_after_s), kLongestPause);
  slot.retry_at = Clock::now() + pause;
  slot.awaits_retry = true;
  ++slot.answer.tries;
  ++waiting_count_;
  return true;
}

void Transfers::finish(Slot& slot, Result<Answer> answer) {
  done_.push_back({slot.tag, std::move(answer)});
  release_slot(slot);
}

void Transfers::release_slot(Slot& slot) {
  slot.in_flight = slot.awaits_retry = false;
  slot.request = {};
  free_slots_.push_back(&slot);
  --in_flight_;
}

Error Transfers::transport_error(const Slot& slot, CURLcode code) const {
  const std::string& key = slot.request.key;
  const std::string object = key.empty() ? "the bucket '" + settings_.endpoint.bucket + "'" : "'" + key + "'";
  std::string what = "cannot " + std::string(method_name(slot.request.method)) + " " + object + " at " +
                     settings_.endpoint.server + ": ";
  if (code == CURLE_WRITE_ERROR) {
    if (slot.request.wants_text) return make_error(Errc::corrupt, what + "its answer is too long");
    if (slot.answer.status != 206)
      return make_error(Errc::unsupported, what + "the server does not support partial reads (Range)");
    return make_error(Errc::corrupt, what + "the server sent other bytes than requested");
  }
  what += slot.error_text[0] != '\0' ? slot.error_text : ::curl_easy_strerror(code);
  if (slot.answer.tries > 1) what += " (tried " + std::to_string(slot.answer.tries) + " times)";
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
    return make_error(Errc::permission_denied,
                      what + ": set AWS_CA_BUNDLE to a file of certificates to trust");
  if (code == CURLE_OPERATION_TIMEDOUT) return make_error(Errc::timed_out, std::move(what));
  if (code == CURLE_OUT_OF_MEMORY) return make_error(Errc::exhausted, std::move(what));
  return make_error(Errc::io, std::move(what));
}

}  // namespace penstock::s3
