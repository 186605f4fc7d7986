// The connections to one object store, shared by all threads that use it.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/core/result.hpp"
#include "io_backends/s3/transfers.hpp"

namespace penstock::s3 {

// Hands out Transfers, which keep their connections between uses. Any thread.
class Client {
 public:
  explicit Client(Settings settings) : settings_(std::move(settings)) {}

  class Lease {
   public:
    explicit Lease(Client& client);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Transfers* operator->() { return transfers_.get(); }

   private:
    Client& client_;
    std::unique_ptr<Transfers> transfers_;
  };

  // One request, now.
  Result<Answer> perform(Request request);

  const Settings& settings() const { return settings_; }

 private:
  const Settings settings_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Transfers>> idle_;
};

// The refusal in `answer` as an error: "cannot open 'n01/x.jpg': ...", with the remedy where there is one.
Error refused(const Answer& answer, const Settings& settings, std::string_view operation,
              std::string_view object);

}  // namespace penstock::s3
