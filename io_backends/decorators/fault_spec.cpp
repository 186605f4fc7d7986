// Parses the text of faults. faulty.hpp has the grammar.
#include <algorithm>
#include <cerrno>
#include <string>

#include "io_backends/core/options.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/decorators/faulty.hpp"

namespace penstock {
namespace {

using Scope = Fault::Scope;
using Kind = Fault::Kind;

struct KindRow {
  std::string_view name;
  Kind kind;
  int sys_errno;
  Scope scope;
};
constexpr KindRow kKinds[] = {
    {"eio", Kind::error, EIO, Scope::any},
    {"enospc", Kind::error, ENOSPC, Scope::write},
    {"edquot", Kind::error, EDQUOT, Scope::write},
    {"efbig", Kind::error, EFBIG, Scope::write},
    {"eacces", Kind::error, EACCES, Scope::open},
    {"eperm", Kind::error, EPERM, Scope::open},
    {"erofs", Kind::error, EROFS, Scope::open},
    {"emfile", Kind::error, EMFILE, Scope::open},
    {"enoent", Kind::error, ENOENT, Scope::open},
    {"enomem", Kind::error, ENOMEM, Scope::any},
    {"estale", Kind::error, ESTALE, Scope::any},
    {"ebusy", Kind::error, EBUSY, Scope::any},
    {"etimedout", Kind::error, ETIMEDOUT, Scope::any},
    {"short", Kind::cut_short, 0, Scope::read},
    {"flip", Kind::flip, 0, Scope::read},
    {"kill", Kind::kill, 0, Scope::any},
    {"hang", Kind::hang, 0, Scope::any},
    {"lie", Kind::lie, 0, Scope::sync},
};

struct ScopeRow {
  std::string_view name;
  Scope scope;
};
constexpr ScopeRow kScopes[] = {
    {"open", Scope::open}, {"read", Scope::read},   {"write", Scope::write}, {"publish", Scope::publish},
    {"sync", Scope::sync}, {"names", Scope::names}, {"any", Scope::any},
};

template <class Rows>
Result<const std::remove_extent_t<Rows>*> find_row(const Rows& rows, std::string_view what,
                                                   std::string_view word) {
  const auto* row =
      std::find_if(std::begin(rows), std::end(rows), [&](const auto& r) { return r.name == word; });
  if (row != std::end(rows)) return row;
  std::vector<std::string_view> names;
  for (const auto& r : rows) names.push_back(r.name);
  return unknown_name(what, word, names);
}

Error bad_fault(std::string_view text, std::string_view why) {
  return make_error(Errc::invalid_argument, "fault '" + std::string(text) + "': " + std::string(why));
}

Result<void> parse_when(std::string_view text, std::string_view when, Fault& fault) {
  if (!when.starts_with('#')) {
    PENSTOCK_ASSIGN(fault.probability, parse_real(when));
    if (fault.probability >= 0 && fault.probability <= 1) return success();
    return bad_fault(text, "a probability must be between 0 and 1");
  }
  when.remove_prefix(1);
  const bool is_open_ended = when.ends_with("..");
  if (is_open_ended) when.remove_suffix(2);
  PENSTOCK_ASSIGN(fault.first_operation, parse_count(when));
  if (fault.first_operation == 0) return bad_fault(text, "operations are numbered from #1");
  fault.last_operation = is_open_ended ? UINT64_MAX : fault.first_operation;
  return success();
}

// Parses the time of the fault hang=TIME. Fails if the time is missing, or if a fault of another kind has
// one. `value` is the text after the name of the kind, from the '=' on.
Result<void> parse_time(std::string_view text, std::string_view value, Fault& fault) {
  if ((fault.kind == Kind::hang) == value.empty())
    return bad_fault(text, "only hang takes a time, as in hang=2s@#1");
  if (value.empty()) return success();
  PENSTOCK_ASSIGN(fault.hang_time, parse_duration(value.substr(1)));
  return success();
}

Result<void> parse_where(std::string_view text, std::string_view where, Fault& fault) {
  const size_t slash = std::min(where.find('/'), where.size());
  PENSTOCK_ASSIGN(const auto* const row, find_row(kScopes, "fault scope", where.substr(0, slash)));
  fault.scope = row->scope;
  fault.name = where.substr(std::min(slash + 1, where.size()));
  if (slash != where.size() && fault.name.empty())
    return bad_fault(text, "a part of an object's name must follow the '/'");
  if ((fault.kind == Kind::cut_short || fault.kind == Kind::flip) && fault.scope != Scope::read)
    return bad_fault(text, "short and flip apply only to read");
  if (fault.kind == Kind::lie && fault.scope != Scope::sync)
    return bad_fault(text, "lie applies only to sync");
  return success();
}

Result<Fault> parse_fault(std::string_view text) {
  const size_t at_sign = text.find('@');
  if (at_sign == std::string_view::npos)
    return bad_fault(text,
                     "the condition is missing; write eio@0.01 (a probability), eio@#3 (the third operation) "
                     "or eio@#3.. (from the third on)");
  std::string_view kind = text.substr(0, at_sign);
  Fault fault;
  const size_t colon = kind.find(':');
  std::string_view scope;
  if (colon != std::string_view::npos) {
    scope = kind.substr(0, colon);
    kind.remove_prefix(colon + 1);
  }
  const size_t equals = std::min(kind.find('='), kind.size());
  PENSTOCK_ASSIGN(const auto* const row, find_row(kKinds, "fault", kind.substr(0, equals)));
  fault.kind = row->kind;
  fault.sys_errno = row->sys_errno;
  fault.scope = row->scope;
  PENSTOCK_TRY(parse_time(text, kind.substr(equals), fault));
  if (colon != std::string_view::npos) PENSTOCK_TRY(parse_where(text, scope, fault));
  PENSTOCK_TRY(parse_when(text, text.substr(at_sign + 1), fault));
  return fault;
}

}  // namespace

Result<std::vector<Fault>> parse_faults(std::string_view text) {
  std::vector<Fault> faults;
  for (;;) {
    const size_t plus = std::min(text.find('+'), text.size());
    PENSTOCK_ASSIGN(Fault fault, parse_fault(text.substr(0, plus)));
    faults.push_back(std::move(fault));
    if (plus == text.size()) return faults;
    text.remove_prefix(plus + 1);
  }
}

}  // namespace penstock
