// What is in a folder and no back end could read.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

namespace penstock {

// While it lives, is told of what Namespace::list() passes over on this thread since it is neither object nor
// folder: pipes, sockets, devices, and links to such. One at a time on a thread. Back ends whose storage has
// none never say anything.
class SkippedEntries {
 public:
  using Callback = std::function<void(std::string_view name)>;

  explicit SkippedEntries(Callback callback) : callback_(std::move(callback)) { here_ = this; }
  SkippedEntries(const SkippedEntries&) = delete;
  SkippedEntries& operator=(const SkippedEntries&) = delete;
  ~SkippedEntries() { here_ = nullptr; }

  // For back ends.
  static void report(std::string_view name) {
    if (here_ != nullptr) here_->callback_(name);
  }

 private:
  static inline thread_local SkippedEntries* here_ = nullptr;
  Callback callback_;
};

}  // namespace penstock
