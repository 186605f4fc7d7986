// Reads the first lines of requests and writes the heads of answers with cpp-httplib. No other source
// includes its header, because it is large.
//
// httplib reads and writes messages only in Server::process_request(), which takes a stream. Here the stream
// is a buffer in memory, so httplib opens no socket and starts no thread. The pre-routing handler gets the
// request and always reports that it has made the answer. So httplib never opens a file, and never reads or
// decompresses a body.
#include <httplib.h>
#include <signal.h>

#include "profiling/serve/http_request.hpp"
#include "profiling/serve/http_response.hpp"

namespace penstock {
namespace {

class MessageServer : public httplib::Server {
 public:
  // Reads `head`, calls `handler` with the request, and returns the answer that httplib writes. If httplib
  // refuses the request, it does not call `handler`.
  template <class Handler>
  static std::string answer(const std::string& head, const Handler& handler) {
    // The constructor of httplib::Server makes the whole process ignore SIGPIPE. This is undone.
    struct sigaction pipe_action {};
    ::sigaction(SIGPIPE, nullptr, &pipe_action);
    MessageServer new_server;
    ::sigaction(SIGPIPE, &pipe_action, nullptr);
    new_server.set_pre_routing_handler([&](const httplib::Request& request, httplib::Response& response) {
      handler(request, response);
      return HandlerResponse::Handled;
    });
    httplib::detail::BufferStream stream;
    stream.write(head.data(), head.size());
    bool is_closed = false;
    const auto process = [&](auto& server) {  // the arguments depend on the version of cpp-httplib
      if constexpr (requires { server.process_request(stream, true, is_closed, nullptr); })
        server.process_request(stream, true, is_closed, nullptr);
      else
        server.process_request(stream, "", 0, "", 0, true, is_closed, nullptr);
    };
    process(new_server);
    return stream.get_buffer().substr(head.size());
  }
};

}  // namespace

std::optional<HttpRequest> read_request_line(const std::string& line) {
  std::optional<HttpRequest> result;
  MessageServer::answer(line + "\r\n\r\n",
                        [&](const httplib::Request& request, httplib::Response& /*response*/) {
                          result.emplace();
                          result->method = request.method;
                          result->path = request.path;
                          result->query.assign(request.params.begin(), request.params.end());
                        });
  return result;
}

std::string response_head(const HttpResponse& response) {
  return MessageServer::answer(
      "GET / HTTP/1.0\r\n\r\n", [&](const httplib::Request& /*request*/, httplib::Response& out) {
        const uint64_t bytes = response.body != nullptr ? response.body->bytes() : response.text.size();
        out.status = response.status;
        out.headers = {{"Content-Type", response.content_type},
                       {"Content-Length", std::to_string(bytes)},
                       {"Cache-Control", "no-store"},
                       {"Referrer-Policy", "no-referrer"},
                       {"X-Content-Type-Options", "nosniff"},
                       {"Cross-Origin-Resource-Policy", "same-origin"},
                       {"Content-Security-Policy", response.content_policy}};
        for (const auto& [name, value] : response.headers) out.set_header(name.c_str(), value);
      });
}

}  // namespace penstock
