// Requests to an object store: signed, many in flight from one thread, tried again with growing pauses where
// the network or the server fails.
//
// When we are asked to stop, there are no more tries, and what asks only (GET, HEAD) is cut off with
// Errc::interrupted within some 100 ms of being driven: at once if it was in flight, else, so that cleaning
// up can still look at what is there, two seconds after it started. What changes something at the server has
// its answer or its time out: only they tell what is there now.
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
  std::string trusted;             // file of certificates that https is checked against; "": the system's
  unsigned retries = 0;            // after the first try
  std::chrono::seconds timeout{};  // for a connection, and without a byte moving
  std::size_t part = 0;            // bytes of a request that is one of several for an object
  std::size_t streams = 0;         // such requests in flight at once, for one object
  std::size_t connections = 0;     // requests in flight at once, of one read, queue or writer; 0: no limit
  bool checks = true;              // look before publishing whether the name is free to be an object's

  // How many of that many may be in flight at once.
  std::size_t at_once(std::size_t requests) const {
    return connections == 0 ? requests : std::min(requests, connections);
  }
};

enum class Method : std::uint8_t { get, head, put, post, remove };

// What the server said in the end. A status of 300 and above is for the caller to judge.
struct Answer {
  long status = 0;
  std::uint64_t bytes = 0;  // now in Request::out
  std::uint64_t total = 0;  // of a HEAD or a GET: the size of the object, whatever part of it was asked for
  bool more = false;        // there was more than fits into `out`
  unsigned tries = 1;
  std::string etag;
  std::string mark;  // the header kMark
  std::string text;
  Refusal refusal;
  // The status says success, and nothing else of the answer does: see Request::result. Then ok() is false.
  bool lacks_result = false;

  bool ok() const { return status >= 200 && status < 300 && !lacks_result; }
};

struct Request {
  Method method = Method::get;
  std::string key = {};  // whole, with the prefix; "": the bucket itself
  Pairs query = {};
  Pairs headers = {};                    // names in lower case
  std::span<const std::byte> body = {};  // belongs to the caller until the answer is there, as `out` does
  std::span<std::byte> out = {};         // where the bytes of a GET go
  bool wants_text = false;               // the answer is XML for Answer::text, not bytes for `out`
  // The element that the answer to a request that succeeded consists of ("CopyObjectResult"). "": it has
  // none; then the answer to a PUT has an ETag, and that to a PUT or DELETE no body. S3 sends the status of
  // long work before its end, and a proxy may answer in S3's place: only these prove success. Without them
  // the request is tried again, as after a status of 500.
  std::string_view result = {};
  // A GET of no more than out.size() bytes from here on. Other bytes than these are an error, but for a whole
  // object where this is 0.
  std::optional<std::uint64_t> from = {};
  // Called by drive() when the first bytes of a good GET are there, in each try: of the answer, all is there
  // but them. Starts and cancels nothing.
  std::function<void(const Answer&)> on_head = {};
  // Asks what has become of a change of ours: has its two seconds though it was in flight when we were asked
  // to stop.
  bool settles = false;
};

// A word of ours that an object carries, by which its writer knows it again.
inline constexpr std::string_view kMark = "x-amz-meta-penstock";

// Requests in flight, driven by the one thread that calls. Keeps its connections for later requests.
class Transfers {
 public:
  explicit Transfers(const Settings& settings);
  ~Transfers();  // what is in flight is cut off
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  struct Done {
    std::uint64_t tag = 0;
    Result<Answer> answer = Answer{};
  };

  void start(std::uint64_t tag, Request request);
  // That request is cut off, if it is in flight: there will be no Done of it, and nothing touches its memory.
  void cancel(std::uint64_t tag);
  // There are no more tries, and requests whose body is not on its way whole are cut off.
  void wind_up();
  bool any_done() const { return !done_.empty(); }
  Done next();  // of any_done()
  // Moves what can be moved; waits for something to happen where `wait`.
  void drive(bool wait);
  void wake();  // another thread: has drive() return soon
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
    bool flies = false;   // has a request
    bool waits = false;   // for its next try
    bool last = false;    // which there will not be
    bool headed = false;  // the first bytes of this try are there
    bool astray = false;  // they are not those that were asked for
    ContentRange range;   // of this try
    Clock::time_point due;
    std::optional<Clock::time_point> cut_off;  // when we have been asked to stop
    char words[CURL_ERROR_SIZE] = {};
  };

  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* slot);
  static std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* slot);
  static std::size_t on_send(char* bytes, std::size_t size, std::size_t count, void* slot);
  static int on_rewind(void* slot, curl_off_t offset, int origin);

  void begin(Slot& slot);
  void free(Slot& slot);
  static void inspect_head(Slot& slot);
  void set_method(Slot& slot);
  void set_headers(Slot& slot, const std::string& path, const std::string& query);
  void start_due();
  void cut_off();
  void ended(Slot& slot, CURLcode code);
  bool try_again(Slot& slot, CURLcode code);
  void finish(Slot& slot, Result<Answer> answer);
  Error broken(const Slot& slot, CURLcode code) const;

  const Settings& settings_;
  CURLM* multi_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_;
  std::deque<Done> done_;
  std::size_t in_flight_ = 0;
  std::size_t waiting_ = 0;
  std::uint64_t pauses_ = 0;
};

}  // namespace penstock::s3
