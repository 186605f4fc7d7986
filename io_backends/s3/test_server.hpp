// For tests only: an object store in memory that listens on a loopback port. It checks signatures, and a test
// can make its answers fail. It implements the part of S3 that the back end uses, according to the published
// API of S3.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "io_backends/core/system/fd.hpp"
#include "io_backends/s3/sigv4.hpp"

namespace penstock::s3 {

enum class ServerFault : uint8_t {
  none,
  internal_error,    // status 500
  slow_down,         // status 503
  forbidden,         // status 403
  cut,               // the connection closes in the middle of the answer's body
  hang_up,           // the connection closes before any answer
  lost_answer,       // the server does the request, then closes the connection without an answer
  silence,           // the server sends no byte for four seconds, then closes the connection
  no_ranges,         // the server ignores the header Range and sends the whole object
  wrong_range,       // the range in the header Content-Range begins one byte too late
  short_range,       // the server sends half of the requested bytes, and Content-Range says so
  no_content_range,  // the answer has no header Content-Range
  page,              // status 200 and an HTML page; the server does not do the request
  blanks,            // status 200 and blanks, as if the server were still working; it does not do the request
  cut_result,        // status 200 and a part of the XML result; the server does not do the request
  other_result,      // status 200 and the XML result of a listing; the server does not do the request
  late_error,        // status 200 and an XML error; the server does not do the request
  page_after,        // the server does the request, then sends status 200 and an HTML page
};

class TestServer {
 public:
  // Starts a server with one empty bucket, "bucket". Aborts the program if no loopback port is free.
  TestServer();
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  static constexpr const char* kKeyId = "PENSTOCKTEST";
  static constexpr const char* kSecret = "kept/secret+by=nobody";

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/bucket"; }
  // Sets PENSTOCK_TEST_S3 and the credentials in this process's environment.
  void set_environment() const;

  // Makes the next `count` matching requests fail. A request matches if its method is `method` ("": any) and
  // its target or its header Range contains `part`.
  // libcurl itself repeats a request that gets no answer on a reused connection. So one try of the back end
  // may be several requests here, and use up several of the `count` faults hang_up, lost_answer or silence. A
  // test in which all tries must fail passes kAllTries.
  static constexpr unsigned kAllTries = std::numeric_limits<unsigned>::max();
  void inject_faults(ServerFault fault, unsigned count, std::string method = "", std::string part = "");
  // Ends all faults of earlier inject_faults() calls.
  void clear_faults();
  // stop() closes the port and all connections, as if the server were killed. start() listens on the same
  // port again, with the same objects.
  void stop();
  void start();
  // Simulates `times` crashes, one at each `every`th request: it closes all connections, resets the next new
  // connection, and then serves again. It counts requests and not seconds, so the load of the machine does
  // not matter.
  void crash_every(unsigned every, unsigned times);
  unsigned crashes_left();

  // A function that is called with each request before its answer, on the thread that answers.
  using Visitor = std::function<void(const std::string& method, const std::string& range)>;
  void set_visitor(Visitor visitor);
  // Replaces the object, as another client would.
  void replace(const std::string& key, std::string bytes);

  unsigned connections() const { return connections_; }  // connections accepted so far
  unsigned requests() const { return requests_; }
  size_t open_uploads();                               // multipart uploads neither completed nor aborted
  unsigned late_parts() const { return late_parts_; }  // parts that arrived after their upload was aborted
  unsigned most_in_progress() const { return most_in_progress_; }  // largest number of requests at once
  std::atomic<bool> knows_conditions{true};  // false: the server ignores If-None-Match, and If-Match of a PUT
  std::atomic<unsigned> page_keys{1000};     // largest number of keys in one listing
  // Each request waits, for at most ten seconds, until this number of requests are in progress.
  std::atomic<unsigned> min_in_progress{0};

  struct Request {
    std::string method, target, path;  // `path` is decoded
    std::map<std::string, std::string> query, headers;
    std::string body;

    // Returns the header or the query argument with this name, or "" if the request has none.
    std::string header(const std::string& name) const;
    std::string argument(const std::string& name) const;
  };
  struct Reply {
    int status = 200;
    Pairs headers;
    std::string body;

    static Reply refuse(int status, const std::string& code);
  };

 private:
  struct Object {
    std::string bytes, etag, mark;
  };
  struct Upload {
    std::string key, mark;
    std::map<int, std::string> parts;
  };

  void accept();
  void serve(int socket);
  bool serve_request(int socket, std::string& pending);
  bool crash_if_due();
  Visitor current_visitor();
  bool reset_if_due(int socket);
  ServerFault fault_for(const Request& request);
  Reply answer(const Request& request);
  Reply answer_key(const Request& request, const std::string& key);
  Reply get(const Request& request, const Object& object);
  static void change_range(ServerFault fault, Reply& reply);
  Reply put(const Request& request, const std::string& key);
  Reply copy(const Request& request, const std::string& key);
  Reply complete(const Request& request, const std::string& key);
  Reply list(const Request& request);
  Reply check_signature(const Request& request) const;

  Fd listener_;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<unsigned> connections_{0}, requests_{0}, in_progress_{0}, most_in_progress_{0}, late_parts_{0};
  std::mutex mutex_;
  std::map<std::string, Object> objects_;
  std::map<std::string, Upload> uploads_;
  std::set<std::string> aborted_uploads_;
  unsigned next_upload_ = 0, replacements_ = 0;
  struct InjectedFault {
    ServerFault fault = ServerFault::none;
    unsigned count = 0;
    std::string method, part;
  };
  std::vector<InjectedFault> faults_;
  Visitor visitor_;
  unsigned crashes_left_ = 0, crash_interval_ = 0, requests_until_crash_ = 0;
  bool reset_next_ = false;
  std::set<int> sockets_;
  std::vector<std::thread> workers_;
  std::thread acceptor_;
};

}  // namespace penstock::s3
