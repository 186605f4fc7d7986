// For tests only: an object store in memory on a port of loopback, which checks signatures and whose answers
// can be made to fail. As much of S3 as the back end uses, from the same published rules.
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

enum class Mishap : std::uint8_t {
  none,
  internal_error,  // 500
  slow_down,       // 503
  forbidden,       // 403
  cut,             // the connection ends in the middle of the answer's body
  hang_up,         // and before any answer
  lost_answer,     // the request is done, then as hang_up
  silence,         // nothing for four seconds, then as hang_up
  no_ranges,       // the whole object, whatever part of it was asked for
  wrong_range,     // the bytes one further than those that were asked for, and says so
  short_range,     // half of them, and says so
  unsaid_range,    // does not say which bytes these are
  page,            // 200 and a page of HTML; nothing is done
  blanks,          // 200 and white space, as a server sends while it works; nothing is done
  cut_result,      // 200 and the beginning of the result; nothing is done
  other_result,    // 200 and the result of a listing; nothing is done
  late_error,      // 200 and an error; nothing is done
  page_after,      // the request is done, then as page
};

class TestServer {
 public:
  // Has one bucket, "bucket". Ends the program where loopback gives no port.
  TestServer();
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  static constexpr const char* kKeyId = "PENSTOCKTEST";
  static constexpr const char* kSecret = "kept/secret+by=nobody";

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/bucket"; }
  // Sets PENSTOCK_TEST_S3 and the credentials in this process's environment.
  void announce() const;

  // The next `count` requests of this method ("" any) go wrong whose target, or whose header Range, contains
  // `part`. libcurl by itself sends a request again that finds no answer on a connection it had kept, so that
  // one try of ours may use up several of hang_up, lost_answer and silence: who wants all tries to fail says
  // kAll.
  static constexpr unsigned kAll = std::numeric_limits<unsigned>::max();
  void spoil(Mishap mishap, unsigned count, std::string method = "", std::string part = "");
  // What spoil() said is over.
  void forgive();
  // As a server that is killed, and one that comes back on the same port with the same objects.
  void stop();
  void start();
  // Dies at each `every`th request, `times` times: all connections are cut, the first client that comes then
  // is turned away, and it is back. Its life is counted in requests, so that no load of the machine matters.
  void die(unsigned times, unsigned every);
  unsigned deaths_to_come();

  // Called with each request before it is answered, by the thread that answers it.
  using Visitor = std::function<void(const std::string& method, const std::string& range)>;
  void set_visitor(Visitor visitor);
  // As a client elsewhere would.
  void replace(const std::string& key, std::string bytes);

  unsigned connections() const { return connections_; }  // taken so far
  unsigned requests() const { return requests_; }
  std::size_t uploads();                                   // multipart uploads neither completed nor aborted
  unsigned late_parts() const { return late_parts_; }      // that came after their upload was aborted
  unsigned most_at_once() const { return most_at_once_; }  // requests in work at the same time
  std::atomic<bool> knows_conditions{true};  // else it ignores If-None-Match and a writer's If-Match
  std::atomic<unsigned> page{1000};          // the most keys that it lists at once
  std::atomic<unsigned> gather{0};  // requests wait until that many were in work at once, or ten seconds

  struct Request {
    std::string method, target, path;  // the path decoded
    std::map<std::string, std::string> query, headers;
    std::string body;

    std::string header(const std::string& name) const;  // "" where there is none, as
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
  bool serve_one(int socket, std::string& pending);
  bool dies();
  Visitor visitor_now();
  bool turns_away(int socket);
  Mishap mishap_of(const Request& request);
  Reply answer(const Request& request);
  Reply answer_key(const Request& request, const std::string& key);
  Reply get(const Request& request, const Object& object);
  static void spoil_range(Mishap mishap, Reply& reply);
  Reply put(const Request& request, const std::string& key);
  Reply copy(const Request& request, const std::string& key);
  Reply complete(const Request& request, const std::string& key);
  Reply list(const Request& request);
  Reply check_signature(const Request& request) const;

  Fd listener_;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<unsigned> connections_{0}, requests_{0}, at_once_{0}, most_at_once_{0}, late_parts_{0};
  std::mutex mutex_;
  std::map<std::string, Object> objects_;
  std::map<std::string, Upload> uploads_;
  std::set<std::string> aborted_;
  unsigned next_upload_ = 0, replaced_ = 0;
  struct Spoiled {
    Mishap mishap = Mishap::none;
    unsigned count = 0;
    std::string method, part;
  };
  std::vector<Spoiled> spoiled_;
  Visitor visitor_;
  unsigned deaths_ = 0, every_ = 0, until_death_ = 0;
  bool turns_away_ = false;
  std::set<int> sockets_;
  std::vector<std::thread> workers_;
  std::thread acceptor_;
};

}  // namespace penstock::s3
