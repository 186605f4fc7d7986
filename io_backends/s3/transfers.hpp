// Sends signed requests to an object store. One thread keeps many requests in flight. If the network or the
// server fails, a request is tried again after growing pauses.
//
// Ctrl-C: after the process is asked to stop, no request is tried again. Reads (GET, HEAD) then end with
// Errc::interrupted in drive(), which checks every 100 ms. A read that is in flight at the signal ends at
// once, or after two seconds if it has Request::confirms_change. A read that starts later has two seconds, so
// that code that cleans up can still ask which objects exist. A change (PUT, POST, DELETE) goes on until its
// answer or its timeout: without the answer, the state at the server is unknown.
#pragma once

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "io_backends/s3/account.hpp"
#include "io_backends/s3/answers.hpp"

namespace penstock::s3 {

struct Settings {
  Endpoint endpoint;
  Credentials credentials;
  Region region;
  std::string trusted_certificates;  // file with the certificates that https trusts; "": the system's file
  unsigned retries = 0;              // number of tries after the first one
  std::chrono::seconds timeout{};    // longest time for connecting, and longest time without any transfer
  size_t part_bytes = 0;             // if an object needs several requests, the bytes that each moves
  size_t max_streams = 0;            // most requests in flight for the parts of one object
  size_t max_connections = 0;        // most requests in flight of one read, queue or writer; 0: no limit
  bool check_names = true;  // before publishing, check that the name is no folder and no parent is an object

  // Returns `requests`, but at most max_connections if there is that limit.
  size_t limit_requests(size_t requests) const {
    return max_connections == 0 ? requests : std::min(requests, max_connections);
  }
};

enum class Method : uint8_t { get, head, put, post, remove };

// The server's final answer. A status of 300 or above is no error here: the caller decides what it means.
struct Answer {
  long status = 0;
  uint64_t bytes = 0;  // bytes that were written to Request::out
  // size of the whole object, for a HEAD or a GET, even if only a part was requested
  uint64_t object_bytes = 0;
  bool has_length = false;  // the answer has the header Content-Length
  bool is_cut = false;      // the answer had more bytes than `out` has room for
  unsigned tries = 1;
  std::string etag;
  std::string mark;  // value of the header kMarkHeader
  std::string text;
  Refusal refusal;
  // The status means success, but the answer lacks the result that proves it (Request::result_element). ok()
  // is false then.
  bool lacks_result = false;

  bool ok() const { return status >= 200 && status < 300 && !lacks_result; }
};

struct Request {
  Method method = Method::get;
  std::string key = {};  // the full key, with the prefix; "": the bucket itself
  Pairs query = {};
  Pairs headers = {};  // header names are in lower case
  // The caller owns `body` and `out` and keeps them valid until the request is done.
  std::span<const std::byte> body = {};
  std::span<std::byte> out = {};  // receives the bytes of a GET
  bool wants_text = false;        // the body of the answer is XML; it goes to Answer::text instead of `out`
  // The XML element that the body of a successful answer has ("CopyObjectResult"); "" if the body is not such
  // an element. With "", the answer to a PUT must have an ETag, and the answers to PUT and DELETE must have
  // no body. The answer to a HEAD must have status 200 and a Content-Length, that to a GET status 200 or, for
  // a range, 206. Only these results prove success: S3 sends the status of a long operation before the
  // operation ends, and a proxy may answer instead of S3. If such a result is missing, the request is tried
  // again, as after a status of 500.
  std::string_view result_element = {};
  // If it has a value, a GET asks for out.size() bytes from this offset. An answer with other bytes is an
  // error. But if the value is 0, the server may send the whole object.
  std::optional<uint64_t> first_byte = {};
  // Called by drive() at the first bytes of a successful GET, once in each try. The answer is complete except
  // for its bytes. The function must not start or cancel a request.
  std::function<void(const Answer&)> on_head = {};
  // True for a read that checks whether an earlier change succeeded. If such a read is in flight when the
  // process is asked to stop, it gets two more seconds. Other reads end at once.
  bool confirms_change = false;
};

// The name of the header with the mark of a writer, which is a random text. The object store keeps the mark
// with the object. A writer recognises the object that it has made by the mark.
inline constexpr std::string_view kMarkHeader = "x-amz-meta-penstock";

// Keeps requests in flight. Only one thread at a time may use it, but any thread may call wake(). Its
// connections stay open for later requests.
class Transfers {
 public:
  explicit Transfers(const Settings& settings);
  ~Transfers();  // cancels the requests in flight
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  struct Done {
    uint64_t tag = 0;
    Result<Answer> answer = Answer{};
  };

  void start(uint64_t tag, Request request);
  // Ends this request if it is in flight. take_done() then returns no Done for it, and its memory is not used
  // again.
  void cancel(uint64_t tag);
  // Allows no more tries. Cancels the requests whose body is not completely sent, and those that wait for
  // their next try.
  void stop_retries();
  bool any_done() const { return !done_.empty(); }
  Done take_done();  // call it only if any_done()
  // Sends and receives as far as possible without waiting. With `wait` it waits until a request makes
  // progress, at most 100 ms.
  void drive(bool wait);
  void wake();  // any thread may call it; it makes a waiting drive() return soon
  size_t in_flight() const { return in_flight_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    CURL* easy = nullptr;
    curl_slist* headers = nullptr;
    uint64_t tag = 0;
    Request request;
    Answer answer;
    std::string payload_hash;
    size_t sent_bytes = 0;
    bool in_flight = false;     // the slot has a request that is not finished
    bool awaits_retry = false;  // the request waits for its next try, and libcurl does not have it
    bool no_retry = false;      // no further try, because stop_retries() was called
    bool head_seen = false;     // the first bytes of this try have arrived
    bool wrong_range = false;   // the answer of this try has bytes that were not requested
    ContentRange range;         // from the header Content-Range of this try
    Clock::time_point retry_at;
    // when a read must end; set after the process was asked to stop
    std::optional<Clock::time_point> deadline;
    char error_text[CURL_ERROR_SIZE] = {};
  };

  static size_t on_body(char* bytes, size_t size, size_t count, void* slot);
  static size_t on_header(char* bytes, size_t size, size_t count, void* slot);
  static size_t on_send(char* bytes, size_t size, size_t count, void* slot);
  static int on_rewind(void* slot, curl_off_t offset, int origin);

  void start_try(Slot& slot);
  void release_slot(Slot& slot);
  static void inspect_head(Slot& slot);
  void set_method(Slot& slot);
  void set_headers(Slot& slot, const std::string& path, const std::string& query);
  void start_due();
  void end_overdue_reads();
  void on_end(Slot& slot, CURLcode code);
  bool try_again(Slot& slot, CURLcode code);
  void finish(Slot& slot, Result<Answer> answer);
  Error transport_error(const Slot& slot, CURLcode code) const;

  const Settings& settings_;
  CURLM* multi_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_slots_;
  std::deque<Done> done_;
  size_t in_flight_ = 0;
  size_t waiting_count_ = 0;
  uint64_t pause_seed_ = 0;
};

}  // namespace penstock::s3
