// What has to happen at the end of a scope, on every way out of it.
#pragma once

#include <utility>

namespace penstock {

// For std::unique_ptr over what a C library made: std::unique_ptr<std::FILE, FreeBy<std::fclose>>.
template <auto function>
struct FreeBy {
  template <class T>
  void operator()(T* object) const {
    function(object);
  }
};

// Calls `function` at the end of the scope, also when an error returns or an exception unwinds, unless it was
// cancelled. It must not throw.
template <class Function>
class AtScopeEnd {
 public:
  explicit AtScopeEnd(Function function) : function_(std::move(function)) {}
  AtScopeEnd(const AtScopeEnd&) = delete;
  AtScopeEnd& operator=(const AtScopeEnd&) = delete;
  ~AtScopeEnd() {
    if (wanted_) function_();
  }
  void cancel() { wanted_ = false; }

 private:
  Function function_;
  bool wanted_ = true;
};

}  // namespace penstock
