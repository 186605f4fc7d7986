// Sends signed requests to an object store. One thread keeps many in flight. If the network or the server
// fails, a request is tried again after growing pauses.
//
// Ctrl-C: after the process is asked to stop, no request is tried again. Reads (GET, HEAD) are cut off with
// Errc::interrupted when drive() runs, which checks every 100 ms. A read in flight at the signal is cut off
// at once. A read that starts later has two seconds, so that cleaning up can still ask which objects exist. A
// change (PUT, POST, DELETE) keeps its answer or its timeout, because only they show the state at the server.
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
  std::string region;
  std::string trusted;             // file with the certificates that https trusts; "": the system's file
  unsigned retries = 0;            // after the first try
  std::chrono::seconds timeout{};  // limit for connecting, and for a time in which no byte moves
  std::size_t part = 0;            // bytes of each request, if an object needs several
  std::size_t streams = 0;         // limit of part requests in flight for one object
  std::size_t connections = 0;     // limit of requests in flight of one read, queue or writer; 0: no limit
  bool checks = true;  // before publishing, check that the name is no folder and no parent is an object

  // `requests`, but not more than the limit `connections`.
  std::size_t at_once(std::size_t requests) const {
    return connections == 0 ? requests : std::min(requests, connections);
  }
};

enum class Method : std::uint8_t { get, head, put, post, remove };

// The server's final answer. The caller judges a status of 300 and above.
struct Answer {
  long status = 0;
  std::uint64_t bytes = 0;  // bytes written to Request::out
  std::uint64_t total = 0;  // of a HEAD or GET: the size of the whole object, also if a part was requested
  bool more = false;        // the answer did not fit into `out`
  unsigned tries = 1;
  std::string etag;
  std::string mark;  // the header kMark
  std::string text;
  Refusal refusal;
  // The status means success, but the result that proves it is missing (Request::result). Then ok() is false.
  bool lacks_result = false;

  bool ok() const { return status >= 200 && status < 300 && !lacks_result; }
};

struct Request {
  Method method = Method::get;
  std::string key = {};  // the full key, with the prefix; "": the bucket itself
  Pairs query = {};
  Pairs headers = {};  // names in lower case
  // The caller owns `body` and `out` and keeps them valid until the request is done.
  std::span<const std::byte> body = {};
  std::span<std::byte> out = {};  // receives the bytes of a GET
  bool wants_text = false;        // the answer is XML for Answer::text, not bytes for `out`
  // The XML element that the answer to a successful request consists of ("CopyObjectResult"). "": the answer
  // has no such element; then the answer to a PUT must have an ETag, and the answers to PUT and DELETE no
  // body. S3 sends the status of a long operation before it ends, and a proxy may answer instead of S3. So
  // only these prove success. Without them the request is tried again, as after a status of 500.
  std::string_view result = {};
  // The first byte of a GET of at most out.size() bytes. An answer with other bytes is an error. If this is
  // 0, the server may send the whole object.
  std::optional<std::uint64_t> from = {};
  // Called by drive() at the first bytes of a successful GET, once in each try. The answer is complete except
  // for its bytes. Must not start or cancel a request.
  std::function<void(const Answer&)> on_head = {};
  // Checks the outcome of an earlier change. If it is in flight when the process is asked to stop, it has two
  // seconds.
  bool confirms_change = false;
};

// The header with the mark that a writer gives its object. The writer recognises its own object by it.
inline constexpr std::string_view kMark = "x-amz-meta-penstock";

// Keeps requests in flight. One thread at a time uses it and drives them; wake() alone may come from another
// thread. Its connections stay open for later requests.
class Transfers {
 public:
  explicit Transfers(const Settings& settings);
  ~Transfers();  // cuts off the requests in flight
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  struct Done {
    std::uint64_t tag = 0;
    Result<Answer> answer = Answer{};
  };

  void start(std::uint64_t tag, Request request);
  // Cuts off this request if it is in flight. It then gets no Done, and its memory is not used again.
  void cancel(std::uint64_t tag);
  // Ends all retries, and cuts off requests whose body is not completely sent.
  void stop_retries();
  bool any_done() const { return !done_.empty(); }
  Done next();  // only if any_done()
  // Sends and receives as far as possible without waiting. With `wait` it waits until a request makes
  // progress, at most 100 ms.
  void drive(bool wait);
  void wake();  // may be called by another thread; makes a waiting drive() return soon
  std::size_t in_flight() const { return in_flight_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    CURL* easy = nullptr;
    curl_slist* headers = nullptr;
    std::uint64_t tag = 0;
    Request request;
    Answer answer;
    std::string payload_hash;
    std::size_t sent = 0;
    bool in_flight = false;     // has a request that is not finished
    bool awaits_retry = false;  // waits for its next try; not at libcurl then
    bool no_retry = false;      // stop_retries() was called
    bool head_seen = false;     // the first bytes of this try have arrived
    bool wrong_range = false;   // the server sends other bytes than requested
    ContentRange range;         // Content-Range of this try
    Clock::time_point retry_at;
    std::optional<Clock::time_point> deadline;  // set after the process was asked to stop
    char error_text[CURL_ERROR_SIZE] = {};
  };

  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* slot);
  static std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* slot);
  static std::size_t on_send(char* bytes, std::size_t size, std::size_t count, void* slot);
  static int on_rewind(void* slot, curl_off_t offset, int origin);

  void begin(Slot& slot);
  void release_slot(Slot& slot);
  static void inspect_head(Slot& slot);
  void set_method(Slot& slot);
  void set_headers(Slot& slot, const std::string& path, const std::string& query);
  void start_due();
  void cut_off();
  void ended(Slot& slot, CURLcode code);
  bool try_again(Slot& slot, CURLcode code);
  void finish(Slot& slot, Result<Answer> answer);
  Error transport_error(const Slot& slot, CURLcode code) const;

  const Settings& settings_;
  CURLM* multi_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_;
  std::deque<Done> done_;
  std::size_t in_flight_ = 0;
  std::size_t waiting_ = 0;
  std::uint64_t pause_seed_ = 0;
};

}  // namespace penstock::s3
