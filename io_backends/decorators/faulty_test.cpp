#include "io_backends/decorators/faulty.hpp"

#include <cerrno>
#include <csignal>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/decorators/wrapper.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

TEST(FaultGrammar, ReadsScopesKindsAndTimes) {
  const auto faults = parse_faults("eio@0.25+write:enospc@#3+publish:estale@#2..+short@1+emfile@#1");
  ASSERT_OK(faults);
  ASSERT_EQ(faults->size(), 5U);
  EXPECT_EQ((*faults)[0].scope, Fault::Scope::any);
  EXPECT_EQ((*faults)[0].sys_errno, EIO);
  EXPECT_EQ((*faults)[0].probability, 0.25);
  EXPECT_EQ((*faults)[1].scope, Fault::Scope::write);
  EXPECT_EQ((*faults)[1].first_operation, 3U);
  EXPECT_EQ((*faults)[1].last_operation, 3U);
  EXPECT_EQ((*faults)[2].scope, Fault::Scope::publish);
  EXPECT_EQ((*faults)[2].last_operation, UINT64_MAX);
  EXPECT_EQ((*faults)[3].kind, Fault::Kind::cut_short);
  EXPECT_EQ((*faults)[4].scope, Fault::Scope::open);
}

TEST(FaultGrammar, ReadsNamesAndTimes) {
  const auto faults = parse_faults("sync/MANIFEST:lie@1+hang=20ms@#2+any/ckpt/run:kill@#3+lie@0.5");
  ASSERT_OK(faults);
  ASSERT_EQ(faults->size(), 4U);
  EXPECT_EQ((*faults)[0].kind, Fault::Kind::lie);
  EXPECT_EQ((*faults)[0].name, "MANIFEST");
  EXPECT_EQ((*faults)[1].kind, Fault::Kind::hang);
  EXPECT_EQ((*faults)[1].hang_time, std::chrono::milliseconds(20));
  EXPECT_EQ((*faults)[1].scope, Fault::Scope::any);
  EXPECT_EQ((*faults)[2].kind, Fault::Kind::kill);
  EXPECT_EQ((*faults)[2].name, "ckpt/run");
  EXPECT_EQ((*faults)[3].scope, Fault::Scope::sync);
  EXPECT_EQ((*faults)[3].name, "");
}

TEST(FaultGrammar, RefusesOtherTextWithARemedy) {
  for (const auto& [text, hint] : std::vector<std::pair<std::string, std::string>>{{"", "eio@0.01"},
                                                                                   {"eio", "eio@0.01"},
                                                                                   {"eoi@0.1", "'eio'"},
                                                                                   {"raed:eio@0.1", "'read'"},
                                                                                   {"eio@2", "0 and 1"},
                                                                                   {"eio@-1", "0 and 1"},
                                                                                   {"eio@#0", "#1"},
                                                                                   {"eio@x", "x"},
                                                                                   {"eio@0.1+", "eio@0.01"},
                                                                                   {"write:flip@0.1", "read"},
                                                                                   {"hang@1", "hang=2s@#1"},
                                                                                   {"hang=@1", ""},
                                                                                   {"eio=2s@1", "hang=2s@#1"},
                                                                                   {"names:lie@1", "sync"},
                                                                                   {"sync/:lie@1", "name"},
                                                                                   {"any/x:flip@1", "read"},
                                                                                   {"eio@#-3", "-3"},
                                                                                   {"eio@nan", ""}}) {
    const auto faults = parse_faults(text);
    EXPECT_ERRC(Errc::invalid_argument, faults, hint) << text;
  }
}

class Faulty : public testing::Test {
 protected:
  // Makes a memory store with one object, and opens the store again with these faults.
  static Tier open(const std::string& faults, const std::string& more = "") {
    static int count = 0;
    const std::string store = "t=mem:faulty" + std::to_string(count++);
    auto plain = open_tier(store, kNoNamedTiers);
    EXPECT_OK(plain);
    EXPECT_OK(put(*plain->backend, "object", Durability::visible));
    auto tier = open_tier(store + more + ",fail=" + faults, kNoNamedTiers);
    EXPECT_OK(tier);
    return *std::move(tier);
  }
  static Result<void> put(Backend& backend, std::string_view name, Durability wanted = Durability::visible) {
    PENSTOCK_ASSIGN(const auto writer, backend.create(name));
    PENSTOCK_TRY(writer->append(pattern(1'000)));
    return writer->publish(wanted);
  }
  static Result<void> get(Backend& backend) {
    std::vector<std::byte> out(1'000);
    PENSTOCK_TRY(backend.read_object("object", 1'000, out));
    return success();
  }
};

TEST_F(Faulty, EachKindGivesItsErrc) {
  const std::vector<std::pair<std::string, Errc>> table{{"eio", Errc::io},
                                                        {"estale", Errc::io},
                                                        {"enospc", Errc::no_space},
                                                        {"edquot", Errc::no_space},
                                                        {"efbig", Errc::exhausted},
                                                        {"eacces", Errc::permission_denied},
                                                        {"eperm", Errc::permission_denied},
                                                        {"erofs", Errc::permission_denied},
                                                        {"emfile", Errc::exhausted},
                                                        {"enomem", Errc::exhausted},
                                                        {"enoent", Errc::not_found},
                                                        {"ebusy", Errc::busy},
                                                        {"etimedout", Errc::timed_out}};
  for (const auto& [kind, errc] : table) {
    for (const char* scope : {"read:", "any:"}) {
      const Tier tier = open(scope + kind + "@1");
      const auto failed = get(*tier.backend);
      EXPECT_ERRC(errc, failed) << kind;
      EXPECT_NE(failed.error().what.find("injected"), std::string::npos) << "nobody takes it for a real one";
    }
  }
  EXPECT_ERRC(Errc::truncated, get(*open("short@1").backend));
}

TEST_F(Faulty, AffectsExactlyTheGivenOperations) {
  const Tier third = open("read:eio@#3");
  for (int i = 1; i <= 6; ++i) EXPECT_EQ(get(*third.backend).ok(), i != 3) << i;
  const Tier onwards = open("read:eio@#3..");
  for (int i = 1; i <= 6; ++i) EXPECT_EQ(get(*onwards.backend).ok(), i < 3) << i;
  const Tier never = open("eio@0");
  const Tier always = open("open:eio@1");
  for (int i = 1; i <= 20; ++i) {
    EXPECT_OK(get(*never.backend));
    EXPECT_ERRC(Errc::io, get(*always.backend));
  }
}

TEST_F(Faulty, ItsErrorsNameTheObject) {
  const Tier tier = open("any:eio@1");
  Namespace& names = tier.backend->names();
  const auto visit = [](const Entry&) { return true; };
  for (const auto& failed :
       {names.list("a/folder", visit), names.make_folders("a/folder"), names.remove("a/folder"),
        names.rename_noreplace("a/folder", "b"), names.sync_dir("a/folder")})
    EXPECT_ERRC(Errc::io, failed, "'a/folder'");
  EXPECT_ERRC(Errc::io, names.stat("object"), "'object'");
  EXPECT_ERRC(Errc::io, names.lock("object"), "'object'");
  EXPECT_ERRC(Errc::io, tier.backend->open("object"), "'object'");
  EXPECT_ERRC(Errc::io, tier.backend->create("object"), "'object'");
  EXPECT_ERRC(Errc::io, names.list("", visit), "'(the tier's root)'");
  EXPECT_ERRC(Errc::io, names.stat(""), "'(the tier's root)'");
  const auto folder = open_tier("posix:/nowhere/at-all,fail=any:eio@1", kNoNamedTiers);
  ASSERT_OK(folder);
  EXPECT_ERRC(Errc::io, folder->backend->names().stat(""), "'/nowhere/at-all'");
}

TEST_F(Faulty, ProbabilitiesAreSeeded) {
  const auto failures = [](const Tier& tier) {
    std::string failed;
    for (int i = 0; i < 400; ++i) failed += get(*tier.backend).ok() ? '.' : 'x';
    return failed;
  };
  const std::string first = failures(open("read:eio@0.25"));
  EXPECT_EQ(failures(open("read:eio@0.25")), first);
  EXPECT_NE(failures(open("read:eio@0.25", ",fail_seed=2")), first);
  const auto count = std::count(first.begin(), first.end(), 'x');
  EXPECT_GT(count, 60);
  EXPECT_LT(count, 140);
}

TEST_F(Faulty, EachScopeAffectsItsOwnCalls) {
  struct Outcome {
    bool open, read, write, publish, sync, names;
  };
  const auto outcome = [](const std::string& fault) {
    const Tier tier = open(fault);
    Backend& backend = *tier.backend;
    Outcome ok{};
    auto reader = backend.open("object");
    ok.open = reader.ok();
    std::vector<std::byte> out(10);
    ok.read = !reader.ok() || (*reader)->read_at(0, out).ok();
    auto writer = backend.create("other");
    ok.write = !writer.ok() || (*writer)->append(pattern(10)).ok();
    ok.publish = !writer.ok() || !ok.write || (*writer)->publish(Durability::visible).ok();
    ok.sync = backend.names().sync_dir("").ok();
    ok.names = backend.names().stat("object").ok();
    return std::vector<bool>{ok.open, ok.read, ok.write, ok.publish, ok.sync, ok.names};
  };
  EXPECT_EQ(outcome("open:eio@1"), (std::vector<bool>{false, true, true, true, true, true}));
  EXPECT_EQ(outcome("read:eio@1"), (std::vector<bool>{true, false, true, true, true, true}));
  EXPECT_EQ(outcome("write:eio@1"), (std::vector<bool>{true, true, false, true, true, true}));
  EXPECT_EQ(outcome("publish:eio@1"), (std::vector<bool>{true, true, true, false, true, true}));
  EXPECT_EQ(outcome("sync:eio@1"), (std::vector<bool>{true, true, true, true, false, true}));
  EXPECT_EQ(outcome("names:eio@1"), (std::vector<bool>{true, true, true, true, true, false}));
}

TEST_F(Faulty, AWriterWithAFaultIsClosedAndLeavesNothing) {
  for (const std::string fault : {"write:enospc@#1", "publish:eio@#1", "sync:eio@#1"}) {
    const Tier tier = open(fault);
    EXPECT_FALSE(put(*tier.backend, "other", Durability::file).ok()) << fault;
    EXPECT_ERRC(Errc::not_found, tier.backend->names().stat("other"));
    EXPECT_OK(put(*tier.backend, "other", Durability::file));
  }
  const Tier tier = open("write:enospc@#2");
  auto writer = tier.backend->create("other");
  ASSERT_OK(writer);
  EXPECT_OK((*writer)->append(pattern(10)));
  EXPECT_ERRC(Errc::no_space, (*writer)->append(pattern(10)));
  EXPECT_ERRC(Errc::invalid_argument, (*writer)->append(pattern(10)));
  EXPECT_ERRC(Errc::invalid_argument, (*writer)->publish(Durability::visible));
}

TEST_F(Faulty, AFlipChangesOneBitAndSaysNothing) {
  const auto changed_bits = [](std::span<const std::byte> out) {
    const auto bytes = pattern(1'000);
    int bits = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      bits += __builtin_popcount(std::to_integer<unsigned>(bytes[i] ^ out[i]));
    return bits;
  };
  const Tier tier = open("flip@#2");
  std::vector<std::byte> out(1'000);
  EXPECT_OK(tier.backend->read_object("object", 1'000, out));
  EXPECT_EQ(changed_bits(out), 0);
  EXPECT_OK(tier.backend->read_object("object", 1'000, out));
  EXPECT_EQ(changed_bits(out), 1);
  const Tier queued = open("flip@#1");
  const auto queue = queued.backend->queue(1);
  ASSERT_OK(queue);
  const Operation operation{ReadObject{"object", 1'000, out}, 1};
  ASSERT_EQ((*queue)->submit({&operation, 1}), 1U);
  Completion completion;
  ASSERT_EQ((*queue)->reap({&completion, 1}, 1), 1U);
  EXPECT_OK(completion.bytes);
  EXPECT_EQ(changed_bits(out), 1);
}

TEST_F(Faulty, AFaultWithANameAffectsNoOtherNames) {
  const Tier tier = open("publish/MANIFEST:eio@#2+read/obj:flip@#2+names/folder/deep:ebusy@1");
  Backend& backend = *tier.backend;
  for (const char* name : {"a/MANIFEST", "a/rank-0.bin", "MANIFEST.old"})
    EXPECT_EQ(put(backend, name).ok(), name != std::string_view("MANIFEST.old")) << name;
  EXPECT_OK(put(backend, "a/MANIFEST"));
  EXPECT_ERRC(Errc::busy, backend.names().make_folders("folder/deep/er"));
  EXPECT_OK(backend.names().make_folders("folder/other"));
  std::vector<std::byte> out(1'000);
  for (const auto& [name, wrong] : std::vector<std::pair<std::string, bool>>{
           {"object", false}, {"a/MANIFEST", false}, {"object", true}, {"object", false}}) {
    EXPECT_OK(backend.read_object(name, 1'000, out));
    EXPECT_EQ(out != pattern(1'000), wrong) << name;
  }
}

TEST_F(Faulty, KillsTheProcessBeforeTheOperationIsDone) {
  const ScratchFolder scratch;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto tier =
        open_tier("t=posix:" + scratch.path().string() + ",fail=publish:kill@#2", kNoNamedTiers);
    for (const char* name : {"first", "second", "third"})
      if (!put(*tier->backend, name)) break;
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_TRUE(std::filesystem::exists(scratch.path() / "first"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "second"));
}

TEST_F(Faulty, HangsForTheGivenTimeAndContinues) {
  const Tier tier = open("write:hang=30ms@#1");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_OK(put(*tier.backend, "other"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
  EXPECT_OK(tier.backend->names().stat("other"));
}

TEST_F(Faulty, AHangEndsWhenTheProcessIsAskedToStop) {
  const Tier tier = open("publish:hang=1h@1+names:hang=1h@1");
  simulate_interrupt(SIGTERM);
  EXPECT_ERRC(Errc::interrupted, put(*tier.backend, "other"));
  EXPECT_ERRC(Errc::interrupted, tier.backend->names().make_folders("folder"));
  simulate_interrupt(0);
  EXPECT_OK(get(*tier.backend));
  EXPECT_ERRC(Errc::not_found, tier.backend->open("other"));
}

// Records each publish() and sync_dir() that reaches the back end below the faults.
class RecordingBackend final : public BackendWrapper {
 public:
  RecordingBackend(std::unique_ptr<Backend> inner, std::vector<std::string>& calls)
      : BackendWrapper(std::move(inner)), calls_(calls), names_(this->inner().names(), calls) {}
  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint) override {
    PENSTOCK_ASSIGN(auto writer, inner().create(name, bytes_hint));
    return std::make_unique<RecordingWriter>(std::move(writer), name, calls_);
  }
  Namespace& names() override { return names_; }

 private:
  struct RecordingWriter final : WriterWrapper {
    RecordingWriter(std::unique_ptr<Writer> inner, std::string_view its_name, std::vector<std::string>& list)
        : WriterWrapper(std::move(inner)), name(its_name), calls(list) {}
    Result<void> publish(Durability wanted, IfExists if_exists) override {
      calls.push_back(name + (syncs(wanted) ? " durable" : " visible"));
      return inner().publish(wanted, if_exists);
    }
    const std::string name;
    std::vector<std::string>& calls;
  };
  struct RecordingNamespace final : NamespaceWrapper {
    RecordingNamespace(Namespace& inner, std::vector<std::string>& list)
        : NamespaceWrapper(inner), calls(list) {}
    Result<void> sync_dir(std::string_view folder) override {
      calls.push_back("folder '" + std::string(folder) + "'");
      return inner().sync_dir(folder);
    }
    std::vector<std::string>& calls;
  };
  std::vector<std::string>& calls_;
  RecordingNamespace names_;
};

TEST_F(Faulty, TheFaultLieSyncsNothingAndReportsSuccess) {
  std::vector<std::string> calls;
  const auto calls_with = [&](const char* faults) {
    calls.clear();
    auto tier = open_tier("t=mem:liar", kNoNamedTiers);
    EXPECT_OK(tier);
    const auto backend =
        faulty(std::make_unique<RecordingBackend>(std::move(tier->backend), calls), *parse_faults(faults), 1);
    EXPECT_OK(put(*backend, "a/MANIFEST", Durability::file_and_name));
    EXPECT_OK(put(*backend, "a/data", Durability::file));
    EXPECT_OK(put(*backend, "a/data", Durability::visible));
    EXPECT_OK(backend->names().sync_dir("a"));
    EXPECT_OK(backend->names().sync_dir(""));
    std::string all;
    for (const std::string& one : calls) all += one + "; ";
    return all;
  };
  EXPECT_EQ(calls_with("lie@0"),
            "a/MANIFEST durable; a/data durable; a/data visible; folder 'a'; folder ''; ");
  EXPECT_EQ(calls_with("lie@1"), "a/MANIFEST visible; a/data visible; a/data visible; ");
  EXPECT_EQ(calls_with("sync/MANIFEST:lie@1"),
            "a/MANIFEST visible; a/data durable; a/data visible; folder 'a'; folder ''; ");
  EXPECT_EQ(calls_with("lie@#3"), "a/MANIFEST durable; a/data durable; a/data visible; folder ''; ");
}

TEST_F(Faulty, QueuedOperationsFailAsCompletions) {
  const Tier tier = open("read:eio@#2+read:estale@#5", ",latency=1ms");
  const auto queue = tier.backend->queue(8);
  ASSERT_OK(queue);
  std::vector<std::vector<std::byte>> outs(6, std::vector<std::byte>(1'000));
  std::vector<Operation> operations;
  for (uint64_t i = 0; i < 6; ++i) operations.push_back({ReadObject{"object", 1'000, outs[i]}, i + 1});
  ASSERT_EQ((*queue)->submit(operations), 6U);
  std::vector<Completion> completions(8);
  size_t count = 0;
  while (count < 6) count += (*queue)->reap(std::span(completions).subspan(count), 1);
  for (size_t i = 0; i < 6; ++i) {
    const bool has_fault = completions[i].tag == 2 || completions[i].tag == 5;
    EXPECT_EQ(completions[i].bytes.ok(), !has_fault) << completions[i].tag;
    if (has_fault) continue;
    EXPECT_EQ(outs[completions[i].tag - 1], pattern(1'000));
  }
}

class Capped : public testing::Test {
 protected:
  static Result<void> put(Backend& backend, std::string_view name, size_t bytes, uint64_t hint = 0) {
    PENSTOCK_ASSIGN(const auto writer, backend.create(name, hint));
    PENSTOCK_TRY(writer->append(pattern(bytes)));
    return writer->publish(Durability::visible);
  }
  static uint64_t left(Backend& backend) { return backend.names().free_bytes().value_or(UINT64_MAX); }
};

TEST_F(Capped, IsFullAtItsCapacity) {
  const auto plain = open_tier("t=mem:capped", kNoNamedTiers);
  ASSERT_OK(plain);
  ASSERT_OK(put(*plain->backend, "there/already", 1'000));
  const auto tier = open_tier("t=mem:capped,capacity=10k", kNoNamedTiers);
  ASSERT_OK(tier);
  Backend& backend = *tier->backend;
  EXPECT_EQ(left(backend), 9'240U) << "what is there counts";
  EXPECT_OK(put(backend, "object", 9'000));
  EXPECT_ERRC(Errc::no_space, put(backend, "other", 241));
  EXPECT_ERRC(Errc::no_space, put(backend, "other", 100, 241))
      << "a reservation that does not fit fails at once";
  EXPECT_EQ(left(backend), 240U) << "what failed is given back";
  EXPECT_OK(put(backend, "other", 240));
  EXPECT_ERRC(Errc::no_space, put(backend, "object", 9'000)) << "both are there while one replaces the other";
  EXPECT_OK(backend.names().remove("object"));
  EXPECT_EQ(left(backend), 9'000U);
  EXPECT_OK(put(backend, "other", 1'000));
  EXPECT_EQ(left(backend), 8'240U) << "what was replaced is given back";
}

TEST_F(Capped, CountsOverwrittenBytesOnceAndFreesUnpublishedBytes) {
  const auto tier = open_tier("t=mem:capped2,capacity=10k", kNoNamedTiers);
  ASSERT_OK(tier);
  Backend& backend = *tier->backend;
  {
    auto writer = backend.create("object");
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->append(pattern(1'000)));
    ASSERT_OK((*writer)->write_at(0, pattern(1'000)));
    EXPECT_EQ(left(backend), 9'240U);
    ASSERT_OK((*writer)->write_at(5'000, pattern(1'000)));
    EXPECT_EQ(left(backend), 4'240U);
    EXPECT_ERRC(Errc::no_space, (*writer)->write_at(10'000, pattern(1'000)));
    EXPECT_ERRC(Errc::invalid_argument, (*writer)->publish(Durability::visible));
  }
  EXPECT_EQ(left(backend), 10'240U);
}

TEST_F(Capped, LinksThatLeadRoundInCirclesAreNotFollowed) {
  const ScratchFolder scratch;
  std::filesystem::create_directory_symlink(".", scratch.path() / "circle");
  const auto tier = open_tier("t=posix:" + scratch.path().string() + ",capacity=10k", kNoNamedTiers);
  ASSERT_OK(tier);
  EXPECT_OK(put(*tier->backend, "object", 1'000));
  EXPECT_EQ(left(*tier->backend), 9'240U);
}

TEST_F(Capped, BytesOfOtherWritersAreNotGivenBackTwice) {
  const auto tier = open_tier("t=mem:capped3,capacity=10k", kNoNamedTiers);
  ASSERT_OK(tier);
  ASSERT_OK(put(*tier->backend, "object", 1'000));
  const auto plain = open_tier("t=mem:capped3", kNoNamedTiers);
  ASSERT_OK(plain);
  ASSERT_OK(put(*plain->backend, "object", 5'000));
  ASSERT_OK(tier->backend->names().remove("object"));
  EXPECT_EQ(left(*tier->backend), 10'240U);
  EXPECT_OK(put(*tier->backend, "object", 1'000));
}

}  // namespace
}  // namespace penstock
