// What is in a folder and no back end could read.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

namespace penstock {

// While it lives, is told of what Namespace::list() passes over on this thread since it is neither object nor
// folder: pipes, sockets, devices, and links to such. One at a time on a thread. Back ends whose storage has
// none never say anything.
class PassedOver {
 public:
  using Told = std::function<void(std::string_view name)>;

  explicit PassedOver(Told told) : told_(std::move(told)) { here_ = this; }
  PassedOver(const PassedOver&) = delete;
  PassedOver& operator=(const PassedOver&) = delete;
  ~PassedOver() { here_ = nullptr; }

  // For back ends.
  static void tell(std::string_view name) {
    if (here_ != nullptr) here_->told_(name);
  }

 private:
  static inline thread_local PassedOver* here_ = nullptr;
  Told told_;
};

}  // namespace penstock
