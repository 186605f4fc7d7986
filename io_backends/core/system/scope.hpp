// Cleans up at the end of a scope, however the scope is left.
#pragma once

#include <utility>

namespace penstock {

// A deleter for std::unique_ptr over an object of a C library: std::unique_ptr<std::FILE,
// FreeBy<std::fclose>>.
template <auto function>
struct FreeBy {
  template <class T>
  void operator()(T* object) const {
    function(object);
  }
};

// Calls `function` at the end of the scope, also after an error or an exception, unless cancel() was called.
// `function` must not throw.
template <class Function>
class AtScopeEnd {
 public:
  explicit AtScopeEnd(Function function) : function_(std::move(function)) {}
  AtScopeEnd(const AtScopeEnd&) = delete;
  AtScopeEnd& operator=(const AtScopeEnd&) = delete;
  ~AtScopeEnd() {
    if (is_active_) function_();
  }
  void cancel() { is_active_ = false; }

 private:
  Function function_;
  bool is_active_ = true;
};

}  // namespace penstock
