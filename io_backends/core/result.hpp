// Errors are values: a function that can fail returns a Result<T>. Exceptions come only from lack of memory
// (std::bad_alloc), from libraries, and from parsers that catch their own. error_of() turns a caught
// exception into an Error.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace penstock {

// The kinds of errors that callers distinguish. All back ends map the same fault to the same kind.
enum class Errc : uint8_t {
  invalid_argument,   // wrong input, such as an unknown name or a number out of range
  not_found,          // no such object, folder or plug-in
  already_exists,     // an object or file would be overwritten
  permission_denied,  // not allowed (EACCES, EPERM, EROFS)
  no_space,           // full device, quota or capacity (ENOSPC, EDQUOT)
  truncated,          // an object ends before the requested bytes
  corrupt,            // wrong bytes: a wrong checksum, a wrong format or undecodable data
  io,                 // the device or the network failed (EIO, ESTALE, ...)
  exhausted,          // a limit of this machine: descriptors, memory, threads, size of a file
  busy,               // locked by another process
  timed_out,
  interrupted,  // a signal asked the process to stop
  unsupported,  // this build, back end or machine cannot do it
  internal,     // a bug in Penstock
};

std::string_view errc_name(Errc code);

// The exit code of a command that ends with this error: 2 for wrong usage or a bug in Penstock, 77 for what
// this build or machine does not support, 1 for any other failure.
int exit_code(Errc code);

// An error. Its text names the operation and the object: "cannot open 'n01440764/x.jpg'". It is cheap to
// move, and is made only after a failure.
struct Error {
  Errc code = Errc::internal;
  int sys_errno = 0;  // 0 if no system call failed
  std::string what;

  // `what`, followed by the system's text for sys_errno if it is not 0.
  std::string message() const;
};

// Builds an Error from errno, which decides its kind. `operation` has the form "cannot open".
Error errno_error(int sys_errno, std::string_view operation, std::string_view object);
Error make_error(Errc code, std::string what);
// Builds an Error whose text is fmt::format(format, first, rest...).
template <class First, class... Rest>
Error make_error(Errc code, fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
  return make_error(code, fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
}
// Turns a caught exception into an error, for functions that no exception may leave. If memory or threads ran
// out, the error is `exhausted`. For a std::system_error with another errno, errno_error() chooses the kind.
// Any other exception becomes `internal`, because no code lets one out on purpose.
Error error_of(const std::exception& thrown);

// Either a T or an Error. The compiler warns if a caller ignores it. Reading the value of a failed Result is
// a bug in the caller. It throws std::bad_variant_access, which ends the program, or becomes an `internal`
// error if error_of() gets it.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  // Makes a successful Result of any value that converts to T. This constructor takes neither a Result nor an
  // Error: the `requires` clause excludes both. clang-tidy does not see that, hence the NOLINT.
  template <class U = T>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::remove_cvref_t<U>, Result> &&
           !std::is_same_v<std::remove_cvref_t<U>, Error>)
      Result(U&& value)  // NOLINT(*-explicit-*,bugprone-forwarding-reference-overload)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(*-explicit-*)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  T value_or(T fallback) && { return ok() ? std::get<0>(std::move(state_)) : std::move(fallback); }

  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(*-explicit-*)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<std::monostate, Error> state_;
};

inline Result<void> success() {
  return {};
}

// Returns success or the error of `result`, without its value.
template <class T>
Result<void> outcome_of(const Result<T>& result) {
  return result.ok() ? success() : Result<void>(result.error());
}

}  // namespace penstock

#define PENSTOCK_CONCAT_(a, b) a##b
#define PENSTOCK_CONCAT(a, b) PENSTOCK_CONCAT_(a, b)

// PENSTOCK_TRY(expression): if the expression fails, returns its error from the calling function.
#define PENSTOCK_TRY(...)                                                                              \
  do {                                                                                                 \
    if (auto penstock_try = (__VA_ARGS__); !penstock_try.ok()) return std::move(penstock_try).error(); \
  } while (false)

// PENSTOCK_ASSIGN(auto reader, backend.open(name)): assigns the value, or returns the error from the calling
// function.
#define PENSTOCK_ASSIGN(declaration, ...) \
  PENSTOCK_ASSIGN_(PENSTOCK_CONCAT(penstock_result_, __LINE__), declaration, __VA_ARGS__)
#define PENSTOCK_ASSIGN_(result, declaration, ...)    \
  auto result = (__VA_ARGS__);                        \
  if (!result.ok()) return std::move(result).error(); \
  declaration = *std::move(result)
