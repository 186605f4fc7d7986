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

class Faults {
 public:
  // `root`: what errors call the object "".
  Faults(const std::vector<Fault>& faults, std::uint64_t seed, std::string root) : root_(std::move(root)) {
    for (std::size_t i = 0; i < faults.size(); ++i)
      rules_.push_back(std::make_unique<Rule>(faults[i], RandomStream(seed, "fault").substream(i)));
  }

  // What the next operation of this scope meets: an error, a wait or the end of the process, if anything.
  Result<void> meet(Scope scope, std::string_view operation, std::string_view name) {
    Result<void> met;
    for (const auto& rule : rules_) {
      const Fault& fault = rule->fault;
      if (fault.kind == Kind::flip || fault.kind == Kind::lie) continue;
      if (!concerns(fault, scope, name) || !strikes(*rule) || !met) continue;
      if (fault.kind == Kind::kill) {
        ::raise(SIGKILL);
      } else if (fault.kind == Kind::hang) {
        met = sleep_until(std::chrono::steady_clock::now() + fault.hang);
      } else if (fault.kind == Kind::cut_short) {
        met = make_error(Errc::truncated, "'" + std::string(name) + "' ends early (injected fault)");
      } else {
        met = errno_error(fault.sys_errno, "injected fault: " + std::string(operation),
                          name.empty() ? std::string_view(root_) : name);
      }
    }
    return met;
  }

  // Whether the next sync only says that it was done.
  bool lies(std::string_view name) {
    bool any = false;
    for (const auto& rule : rules_)
      any = (rule->fault.kind == Kind::lie && concerns(rule->fault, Scope::sync, name) && strikes(*rule)) ||
            any;
    return any;
  }

  // After a good read: flips a bit where a rule says so.
  void touch(std::string_view name, std::span<std::byte> out) {
    for (const auto& rule : rules_) {
      if (rule->fault.kind != Kind::flip || !concerns(rule->fault, Scope::read, name) || !strikes(*rule))
        continue;
      if (out.empty()) continue;
      const std::uint64_t bit = rule->random.substream(1).below(0, out.size() * 8);
      out[bit / 8] ^= std::byte{1} << (bit % 8);
    }
  }

 private:
  struct Rule {
    Rule(const Fault& its_fault, RandomStream its_random) : fault(its_fault), random(its_random) {}
    const Fault fault;
    const RandomStream random;
    std::atomic<std::uint64_t> count{0};
  };
  static bool concerns(const Fault& fault, Scope scope, std::string_view name) {
    return (fault.scope == Scope::any || fault.scope == scope) && name.find(fault.name) != std::string::npos;
  }
  static bool strikes(Rule& rule) {
    const std::uint64_t n = rule.count.fetch_add(1, std::memory_order_relaxed);
    if (rule.fault.first == 0) return rule.random.uniform(n) < rule.fault.probability;
    return n + 1 >= rule.fault.first && n + 1 <= rule.fault.last;
  }

  const std::string root_;
  std::vector<std::unique_ptr<Rule>> rules_;
};

std::string root_of(const Backend& backend) {
  const auto path = backend.native_path("");
  return path ? path->string() : "(the tier's root)";
}

class FaultyReader final : public ReaderWrapper {
 public:
  FaultyReader(std::unique_ptr<Reader> inner, std::string_view name, Faults& faults)
      : ReaderWrapper(std::move(inner)), name_(name), faults_(faults) {}

  const std::string& name() const { return name_; }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    PENSTOCK_TRY(faults_.meet(Scope::read, "cannot read", name_));
    PENSTOCK_TRY(inner().read_at(offset, out));
    faults_.touch(name_, out);
    return success();
  }
  Result<std::span<const std::byte>> view(std::uint64_t offset, std::uint64_t length) override {
    PENSTOCK_TRY(faults_.meet(Scope::read, "cannot read", name_));
    return inner().view(offset, length);
  }
  Result<void> read_at_all(std::uint64_t offset, std::span<std::byte> out) override {
    if (auto met = faults_.meet(Scope::read, "cannot read", name_); !met.ok()) {
      PENSTOCK_TRY(inner().read_at_all(offset, {}));  // the other ranks wait for this one
      return met;
    }
    PENSTOCK_TRY(inner().read_at_all(offset, out));
    faults_.touch(name_, out);
    return success();
  }

 private:
  const std::string name_;
  Faults& faults_;
};

class FaultyWriter final : public Writer {
 public:
  FaultyWriter(std::unique_ptr<Writer> inner, std::string_view name, Faults& faults)
      : inner_(std::move(inner)), name_(name), faults_(faults) {}

  Result<void> append(std::span<const std::byte> bytes) override {
    PENSTOCK_TRY(meet(Scope::write, "cannot write"));
    return inner_->append(bytes);
  }
  Result<void> append(std::span<const std::span<const std::byte>> pieces) override {
    PENSTOCK_TRY(meet(Scope::write, "cannot write"));
    return inner_->append(pieces);
  }
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    PENSTOCK_TRY(meet(Scope::write, "cannot write"));
    return inner_->write_at(offset, bytes);
  }
  Result<void> publish(Durability wanted, IfExists if_exists) override {
    const bool lie = inner_ && syncs(wanted) && faults_.lies(name_);
    if (syncs(wanted)) PENSTOCK_TRY(meet(Scope::sync, "cannot sync"));
    PENSTOCK_TRY(meet(Scope::publish, "cannot publish"));
    return inner_->publish(lie ? Durability::visible : wanted, if_exists);
  }

 private:
  Result<void> meet(Scope scope, std::string_view operation) {
    if (!inner_)
      return make_error(Errc::invalid_argument,
                        "the writer of '" + name_ + "' has failed or published before");
    auto met = faults_.meet(scope, operation, name_);
    if (!met) inner_.reset();
    return met;
  }

  std::unique_ptr<Writer> inner_;  // gone once a fault has struck
  const std::string name_;
  Faults& faults_;
};

class FaultyNamespace final : public NamespaceWrapper {
 public:
  FaultyNamespace(Namespace& inner, Faults& faults) : NamespaceWrapper(inner), faults_(faults) {}

  Result<void> list(std::string_view folder, const std::function<bool(const Entry&)>& visit) override {
    PENSTOCK_TRY(faults_.meet(Scope::names, "cannot list", folder));
    return inner().list(folder, visit);
  }
  Result<Entry> stat(std::string_view name) override {
    PENSTOCK_TRY(faults_.meet(Scope::names, "cannot look at", name));
    return inner().stat(name);
  }
  Result<void> make_folders(std::string_view folder) override {
    PENSTOCK_TRY(faults_.meet(Scope::names, "cannot make folder", folder));
    return inner().make_folders(folder);
  }
  Result<void> rename_noreplace(std::string_view from, std::string_view to) override {
    PENSTOCK_TRY(faults_.meet(Scope::names, "cannot rename", from));
    return inner().rename_noreplace(from, to);
  }
  Result<void> remove(std::string_view name) override {
    PENSTOCK_TRY(faults_.meet(Scope::names, "cannot remove", name));
    return inner().remove(name);
  }
  Result<void> sync_dir(std::string_view folder) override {
    const bool lie = faults_.lies(folder);
    PENSTOCK_TRY(faults_.meet(Scope::sync, "cannot sync folder", folder));
    return lie ? success() : inner().sync_dir(folder);
  }
  Result<std::unique_ptr<Lock>> lock(std::string_view name) override {
    PENSTOCK_TRY(faults_.meet(Scope::names, "cannot lock", name));
    return inner().lock(name);
  }

 private:
  Faults& faults_;
};

class FaultyQueue final : public Queue {
 public:
  FaultyQueue(std::unique_ptr<Queue> inner, std::size_t depth, Faults& faults)
      : inner_(std::move(inner)), depth_(depth), faults_(faults), flights_(depth) {
    struck_.reserve(depth);
  }

  void lend(std::span<std::byte> memory) override { inner_->lend(memory); }

  std::size_t submit(std::span<const Operation> operations, Start start) override {
    const std::size_t taken = std::min(operations.size(), depth_ - in_flight());
    for (const Operation& operation : operations.first(taken)) {
      if (auto met = meet(operation); !met) {
        struck_.push_back({operation.tag, std::move(met).error()});
        continue;
      }
      const Flight flight{operation.tag, out_of(operation), name_of(operation)};
      const Operation forwarded = unwrapped(operation, flights_.add(flight));
      // The wrapped queue is as deep as this one, so it has room.
      while (inner_->submit({&forwarded, 1}, start) == 0) {
      }
    }
    return taken;
  }

  std::size_t reap(std::span<Completion> out, std::size_t at_least) override {
    std::size_t count = 0;
    for (; count < out.size() && !struck_.empty(); ++count) {
      out[count] = std::move(struck_.back());
      struck_.pop_back();
    }
    const std::size_t missing = at_least > count ? at_least - count : 0;
    const std::size_t more = inner_->reap(out.subspan(count), missing);
    for (Completion& done : out.subspan(count, more)) {
      const auto slot = static_cast<std::size_t>(done.tag);
      const Flight& flight = flights_.at(slot);
      done.tag = flight.tag;
      if (done.bytes.ok()) faults_.touch(flight.name, flight.out.first(*done.bytes));
      flights_.remove(slot);
    }
    return count + more;
  }

  std::size_t in_flight() const override { return flights_.in_flight() + struck_.size(); }

 private:
  struct Flight {
    std::uint64_t tag = 0;
    std::span<std::byte> out;
    std::string_view name;
  };

  static std::string_view name_of(const Operation& operation) {
    if (const auto* read = std::get_if<ReadAt>(&operation.what))
      return static_cast<FaultyReader*>(read->reader)->name();
    return std::get<ReadObject>(operation.what).name;
  }

  Result<void> meet(const Operation& operation) {
    const std::string_view name = name_of(operation);
    if (std::holds_alternative<ReadObject>(operation.what))
      PENSTOCK_TRY(faults_.meet(Scope::open, "cannot open", name));
    return faults_.meet(Scope::read, "cannot read", name);
  }

  const std::unique_ptr<Queue> inner_;
  const std::size_t depth_;
  Faults& faults_;
  FlightTable<Flight> flights_;
  std::vector<Completion> struck_;
};

class FaultyBackend final : public BackendWrapper {
 public:
  FaultyBackend(std::unique_ptr<Backend> backend, const std::vector<Fault>& faults, std::uint64_t seed)
      : BackendWrapper(std::move(backend)),
        faults_(faults, seed, root_of(inner())),
        names_(inner().names(), faults_) {}

  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    PENSTOCK_TRY(faults_.meet(Scope::open, "cannot open", name));
    PENSTOCK_ASSIGN(auto reader, inner().open(name));
    return std::make_unique<FaultyReader>(std::move(reader), name, faults_);
  }
  Result<std::unique_ptr<Writer>> create(std::string_view name, std::uint64_t bytes_hint) override {
    PENSTOCK_TRY(faults_.meet(Scope::open, "cannot create", name));
    PENSTOCK_ASSIGN(auto writer, inner().create(name, bytes_hint));
    return std::make_unique<FaultyWriter>(std::move(writer), name, faults_);
  }
  Result<std::uint64_t> read_object(std::string_view name, std::uint64_t length_hint,
                                    std::span<std::byte> out) override {
    PENSTOCK_TRY(faults_.meet(Scope::open, "cannot open", name));
    PENSTOCK_TRY(faults_.meet(Scope::read, "cannot read", name));
    PENSTOCK_ASSIGN(const std::uint64_t bytes, inner().read_object(name, length_hint, out));
    faults_.touch(name, out.first(bytes));
    return bytes;
  }
  Result<std::unique_ptr<Queue>> queue(std::size_t depth) override {
    PENSTOCK_ASSIGN(auto queue, inner().queue(depth));
    return std::make_unique<FaultyQueue>(std::move(queue), depth, faults_);
  }
  Namespace& names() override { return names_; }

 private:
  Faults faults_;
  FaultyNamespace names_;
};

}  // namespace

std::unique_ptr<Backend> faulty(std::unique_ptr<Backend> inner, const std::vector<Fault>& faults,
                                std::uint64_t seed) {
  return std::make_unique<FaultyBackend>(std::move(inner), faults, seed);
}

}  // namespace penstock
