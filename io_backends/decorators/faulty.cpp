// Threads: any thread calls the back end, its Readers and its Namespace. One thread at a time calls a Writer
// or a Queue. A rule is one fault of the user's text. Each rule has an atomic count of the operations to
// which it applies.
// Lock: none.
// Memory: once a Reader, Writer or Queue is made, it allocates only for injected errors.
// Ctrl-C: an injected hang ends with `interrupted`. Nothing else here checks for a signal.
// Crash: the fault `kill` ends the process before the wrapped back end is called.
#include "io_backends/decorators/faulty.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <string>

#include "io_backends/core/random.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/decorators/wrapper.hpp"

namespace penstock {
namespace {

using Scope = Fault::Scope;
using Kind = Fault::Kind;

// A row says which faults a kind of call can have: those of `scope` (faulty.hpp lists the scopes). A
// whole-object read has two rows, since it can have the faults of an open and of a read. The calls of a
// Writer have no row: FaultyWriter injects their faults.
struct FaultPoint {
  CallKind kind;
  Scope scope;
  std::string_view operation;
};
constexpr FaultPoint kFaultPoints[] = {
    {CallKind::open, Scope::open, "cannot open"},
    {CallKind::create, Scope::open, "cannot create"},
    {CallKind::read_object, Scope::open, "cannot open"},
    {CallKind::read_object, Scope::read, "cannot read"},
    {CallKind::read, Scope::read, "cannot read"},
    {CallKind::view, Scope::read, "cannot read"},
    {CallKind::list, Scope::names, "cannot list"},
    {CallKind::stat, Scope::names, "cannot inspect"},
    {CallKind::make_folders, Scope::names, "cannot make folder"},
    {CallKind::rename, Scope::names, "cannot rename"},
    {CallKind::remove, Scope::names, "cannot remove"},
    {CallKind::sync_folder, Scope::sync, "cannot sync folder"},
    {CallKind::lock, Scope::names, "cannot lock"},
};

class Faults {
 public:
  // `root`: the name of the tier's root in errors. They cannot show its object name, which is "".
  Faults(const std::vector<Fault>& faults, uint64_t seed, std::string root) : root_(std::move(root)) {
    for (size_t i = 0; i < faults.size(); ++i)
      rules_.push_back(std::make_unique<Rule>(faults[i], RandomStream(seed, "fault").substream(i)));
  }

  // The hook (wrapper.hpp): makes a call with the faults that the rules give it. A flip happens after the
  // call. A lie replaces the sync of a folder. Any other fault happens before the call. For view() a flip
  // does nothing, because the result is the object's own memory.
  template <class Inner>
  auto around(const BackendCall& call, Inner inner) -> decltype(inner()) {
    const bool skip_sync = call.kind == CallKind::sync_folder && skips_sync(call.object);
    PENSTOCK_TRY(inject(call));
    if constexpr (std::is_same_v<decltype(inner()), Result<void>>)
      if (skip_sync) return success();
    auto result = inner();
    if (result.ok() && (call.kind == CallKind::read || call.kind == CallKind::read_object))
      flip_bits(call.object, call.out.first(bytes_moved(call, result)));
    return result;
  }

  Result<void> inject(const BackendCall& call) {
    for (const FaultPoint& point : kFaultPoints)
      if (point.kind == call.kind) PENSTOCK_TRY(inject(point.scope, point.operation, call.object));
    return success();
  }

  // Injects the faults that the rules have for this operation: an error, a wait, or the end of the process.
  // Every such rule with this scope and name counts the operation, even if an earlier rule has already made
  // the operation fail. The rules of flip and lie count in flip_bits() and skips_sync().
  Result<void> inject(Scope scope, std::string_view operation, std::string_view name) {
    Result<void> injected;
    for (const auto& rule : rules_) {
      const Fault& fault = rule->fault;
      if (fault.kind == Kind::flip || fault.kind == Kind::lie) continue;
      if (!applies(fault, scope, name) || !is_due(*rule) || !injected) continue;
      if (fault.kind == Kind::kill) {
        ::raise(SIGKILL);
      } else if (fault.kind == Kind::hang) {
        injected = sleep_until(std::chrono::steady_clock::now() + fault.hang_time);
      } else if (fault.kind == Kind::cut_short) {
        injected = make_error(Errc::truncated, "'" + std::string(name) + "' ends early (injected fault)");
      } else {
        injected = errno_error(fault.sys_errno, "injected fault: " + std::string(operation),
                               name.empty() ? std::string_view(root_) : name);
      }
    }
    return injected;
  }

  // Whether the next sync must do nothing and report success (the fault `lie`).
  bool skips_sync(std::string_view name) {
    bool skips = false;
    for (const auto& rule : rules_)
      skips = (rule->fault.kind == Kind::lie && applies(rule->fault, Scope::sync, name) && is_due(*rule)) ||
              skips;
    return skips;
  }

  // Flips a bit of `out` if a rule says so. Called after a successful read.
  void flip_bits(std::string_view name, std::span<std::byte> out) {
    for (const auto& rule : rules_) {
      if (rule->fault.kind != Kind::flip || !applies(rule->fault, Scope::read, name) || !is_due(*rule))
        continue;
      if (out.empty()) continue;
      const uint64_t bit = rule->random.substream(1).below(0, out.size() * 8);
      out[bit / 8] ^= std::byte{1} << (bit % 8);
    }
  }

 private:
  struct Rule {
    Rule(const Fault& its_fault, RandomStream its_random) : fault(its_fault), random(its_random) {}
    const Fault fault;
    const RandomStream random;
    std::atomic<uint64_t> count{0};
  };
  static bool applies(const Fault& fault, Scope scope, std::string_view name) {
    return (fault.scope == Scope::any || fault.scope == scope) && name.find(fault.name) != std::string::npos;
  }
  static bool is_due(Rule& rule) {
    // The number of this operation for the rule. A relaxed add is enough: no other memory depends on the
    // count, and each operation gets its own number even with many threads.
    const uint64_t n = rule.count.fetch_add(1, std::memory_order_relaxed);
    if (rule.fault.first_operation == 0) return rule.random.uniform(n) < rule.fault.probability;
    return n + 1 >= rule.fault.first_operation && n + 1 <= rule.fault.last_operation;
  }

  const std::string root_;
  std::vector<std::unique_ptr<Rule>> rules_;
};

std::string root_of(const Backend& backend) {
  const auto path = backend.native_path("");
  return path ? path->string() : "(the tier's root)";
}

// A Writer with injected faults. This class is its own hook (wrapper.hpp): DecoratedWriter calls around() for
// each write. A fault that makes a call fail also destroys the wrapped Writer, and all later calls fail.
class FaultyWriter final : public DecoratedWriter<FaultyWriter> {
 public:
  FaultyWriter(std::unique_ptr<Writer> inner, std::string_view name, Faults& faults)
      : DecoratedWriter(std::move(inner), name, *this), faults_(faults) {}

  template <class Inner>
  Result<void> around(const BackendCall& /*write*/, Inner inner) {
    PENSTOCK_TRY(inject(Scope::write, "cannot write"));
    return inner();
  }
  Result<void> publish(Durability wanted, IfExists if_exists) override {
    const bool skip_sync = !closed() && syncs(wanted) && faults_.skips_sync(name());
    if (syncs(wanted)) PENSTOCK_TRY(inject(Scope::sync, "cannot sync"));
    PENSTOCK_TRY(inject(Scope::publish, "cannot publish"));
    return inner().publish(skip_sync ? Durability::visible : wanted, if_exists);
  }

 private:
  Result<void> inject(Scope scope, std::string_view operation) {
    if (closed()) return finished_writer_error(name());
    auto injected = faults_.inject(scope, operation, name());
    if (!injected) close();
    return injected;
  }

  Faults& faults_;
};

class FaultyQueue final : public Queue {
 public:
  FaultyQueue(std::unique_ptr<Queue> inner, size_t depth, Faults& faults)
      : inner_(std::move(inner)), depth_(depth), faults_(faults), flights_(depth) {
    failed_completions_.reserve(depth);
  }

  void register_memory(std::span<std::byte> memory) override { inner_->register_memory(memory); }

  size_t submit(std::span<const Operation> operations, Start start) override {
    const size_t accepted = std::min(operations.size(), depth_ - in_flight());
    for (const Operation& operation : operations.first(accepted)) {
      const Flight flight{.call = FlightTable<Faults>::call_of(operation)};
      if (auto injected = faults_.inject(flight.call); !injected) {
        failed_completions_.push_back({operation.tag, std::move(injected).error()});
        continue;
      }
      const Operation forwarded = flights_.add(operation, flight);
      // This loop ends, because the wrapped queue is as deep as this one and so has room.
      while (inner_->submit({&forwarded, 1}, start) == 0) {
      }
    }
    return accepted;
  }

  size_t reap(std::span<Completion> out, size_t at_least) override {
    size_t count = 0;
    for (; count < out.size() && !failed_completions_.empty(); ++count) {
      out[count] = std::move(failed_completions_.back());
      failed_completions_.pop_back();
    }
    const size_t missing = at_least > count ? at_least - count : 0;
    const size_t more = inner_->reap(out.subspan(count), missing);
    for (Completion& done : out.subspan(count, more)) {
      const BackendCall call = flights_.take(done).call;
      if (done.bytes.ok()) faults_.flip_bits(call.object, call.out.first(*done.bytes));
    }
    return count + more;
  }

  size_t in_flight() const override { return flights_.in_flight() + failed_completions_.size(); }

 private:
  const std::unique_ptr<Queue> inner_;
  const size_t depth_;
  Faults& faults_;
  FlightTable<Faults> flights_;
  std::vector<Completion> failed_completions_;
};

using FaultyBackend = DecoratedBackend<Faults, FaultyQueue, FaultyWriter>;

}  // namespace

std::unique_ptr<Backend> faulty(std::unique_ptr<Backend> inner, const std::vector<Fault>& faults,
                                uint64_t seed) {
  std::string root = root_of(*inner);
  return std::make_unique<FaultyBackend>(std::move(inner), true, faults, seed, std::move(root));
}

}  // namespace penstock
