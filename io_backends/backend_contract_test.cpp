// Tests the contract of a back end (io_backends/backend/backend.hpp) on any back end:
//
//   backend_contract_test NAME
//
// Exits with 77 if this build or machine does not have the back end.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "io_backends/backend_contract_fixture.hpp"
#include "io_backends/decorators/capped.hpp"
#include "io_backends/decorators/faulty.hpp"
#include "io_backends/decorators/throttled.hpp"
#include "io_backends/decorators/traced.hpp"
#include "io_backends/s3/test_server.hpp"
#include "io_backends/testing/forgetful_testing.hpp"

namespace penstock {

ContractSubject& contract_subject() {
  static ContractSubject subject;
  return subject;
}

void Contract::SetUp() {
  static std::atomic<unsigned> count{0};
  const ContractSubject& subject = contract_subject();
  folder_ = subject.scratch / std::to_string(count.fetch_add(1));
  const auto options = Options::parse(subject.info->options, {}, "option");
  ASSERT_OK(options);
  auto made = subject.info->make(subject.info->test_path(folder_), *options);
  ASSERT_OK(made);
  backend_ = *std::move(made);
  constexpr uint64_t kTebi = 1ULL << 40U;
  if (GetParam() == "throttled") {
    backend_ = throttled(std::move(backend_), {kTebi, kTebi, std::chrono::microseconds(20)});
  } else if (GetParam() == "faulty") {
    backend_ = faulty(std::move(backend_), *parse_faults("eio@0+flip@0"), 1);
  } else if (GetParam() == "capped") {
    backend_ = capped(std::move(backend_), kTebi);
  } else if (GetParam() == "traced") {
    backend_ = *traced(std::move(backend_), "");
  } else if (GetParam() == "all") {
    backend_ = capped(std::move(backend_), kTebi);
    backend_ = throttled(std::move(backend_), {kTebi, kTebi, std::chrono::microseconds(20)});
    backend_ = faulty(std::move(backend_), *parse_faults("eio@0+flip@0"), 1);
    backend_ = *traced(std::move(backend_), subject.scratch / "trace.json");
  }
}

void Contract::TearDown() {
  backend_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Contract::put(std::string_view name, std::span<const std::byte> bytes, IfExists if_exists) {
  auto writer = backend().create(name, bytes.size());
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(bytes));
  ASSERT_OK((*writer)->publish(Durability::visible, if_exists));
}

Result<std::string> Contract::get(std::string_view name) {
  PENSTOCK_ASSIGN(const auto reader, backend().open(name));
  PENSTOCK_ASSIGN(const uint64_t size, reader->size());
  Bytes bytes(size);
  PENSTOCK_TRY(reader->read_at(0, bytes));
  return text_of(bytes);
}

std::vector<std::string> Contract::listed(std::string_view folder) {
  std::vector<std::string> found;
  EXPECT_OK(names().list(folder, [&](const Entry& entry) {
    found.push_back(entry.name + (entry.folder ? "/" : ""));
    return true;
  }));
  std::sort(found.begin(), found.end());
  return found;
}

namespace {

TEST_P(Contract, DescribesItself) {
  const BackendInfo& info = *contract_subject().info;
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.summary.empty());
  EXPECT_EQ(caps().emulated, GetParam() != "plain" && GetParam() != "traced");
}

TEST_P(Contract, RefusesImproperNamesEverywhere) {
  const std::string long_part(256, 'x');
  const std::string too_long = [] {
    std::string name = "a";
    while (name.size() <= 1024) name += "/bcdefghijk";
    return name;
  }();
  const std::string_view zero("a\0b", 3);
  for (const std::string_view name :
       {std::string_view(""), std::string_view("/a"), std::string_view("a/"), std::string_view("a//b"),
        std::string_view("."), std::string_view("a/./b"), std::string_view(".."), std::string_view("../a"),
        std::string_view("a/.."), zero, std::string_view(long_part), std::string_view(too_long)}) {
    Bytes out(1);
    EXPECT_ERRC(Errc::invalid_argument, backend().open(name));
    EXPECT_ERRC(Errc::invalid_argument, backend().create(name));
    EXPECT_ERRC(Errc::invalid_argument, backend().read_object(name, 1, out));
    EXPECT_ERRC(Errc::invalid_argument, names().remove(name));
    EXPECT_ERRC(Errc::invalid_argument, names().rename_noreplace(name, "b"));
    EXPECT_ERRC(Errc::invalid_argument, names().rename_noreplace("b", name));
    EXPECT_ERRC(Errc::invalid_argument, names().lock(name));
    if (name.empty()) continue;  // "" is skipped: it is the root, a valid folder
    EXPECT_ERRC(Errc::invalid_argument, names().stat(name));
    EXPECT_ERRC(Errc::invalid_argument, names().make_folders(name));
    EXPECT_ERRC(Errc::invalid_argument, names().list(name, [](const Entry&) { return true; }));
    EXPECT_ERRC(Errc::invalid_argument, names().sync_dir(name));
  }
}

TEST_P(Contract, TakesEveryProperName) {
  const std::string longest(255, 'x');
  for (const std::string_view name :
       {std::string_view("a b"), std::string_view("a..b"), std::string_view(".hidden"),
        std::string_view("%2C,=:"), std::string_view("\xc3\xa9t\xc3\xa9/\xe6\xb0\xb4"),
        std::string_view(longest)}) {
    put(name, name);
    const auto read_back = get(name);
    ASSERT_OK(read_back);
    EXPECT_EQ(*read_back, name);
  }
}

TEST_P(Contract, ReadsBackWhatWasWritten) {
  const Bytes bytes = pattern(300'000);
  put("folder/deep/object", bytes);
  const auto reader = backend().open("folder/deep/object");
  ASSERT_OK(reader);
  const auto size = (*reader)->size();
  ASSERT_OK(size);
  EXPECT_EQ(*size, bytes.size());
  for (const auto& [offset, length] : std::vector<std::pair<size_t, size_t>>{{0, 300'000},
                                                                             {0, 1},
                                                                             {4096, 4096},
                                                                             {1, 4095},
                                                                             {299'999, 1},
                                                                             {123'457, 100'001},
                                                                             {300'000, 0},
                                                                             {0, 0}}) {
    Bytes out(length, std::byte{0xee});
    EXPECT_OK((*reader)->read_at(offset, out));
    EXPECT_TRUE(std::equal(out.begin(), out.end(), bytes.begin() + ptrdiff_t(offset)));
  }
}

TEST_P(Contract, AReadPastTheEndIsTruncated) {
  put("object", pattern(10'000));
  const auto reader = backend().open("object");
  ASSERT_OK(reader);
  Bytes out(10'001);
  EXPECT_ERRC(Errc::truncated, (*reader)->read_at(0, out));
  EXPECT_ERRC(Errc::truncated, (*reader)->read_at(9'999, std::span(out).first(2)));
  EXPECT_ERRC(Errc::truncated, (*reader)->read_at(1'000'000, std::span(out).first(1)));
  for (const uint64_t offset : {uint64_t{INT64_MAX} + 1, UINT64_MAX})
    EXPECT_ERRC(Errc::truncated, (*reader)->read_at(offset, std::span(out).first(1)));
}

TEST_P(Contract, ReadsWholeObjects) {
  const Bytes bytes = pattern(70'001);
  put("object", bytes);
  Bytes out(100'000);
  for (const uint64_t hint : {uint64_t{70'001}, uint64_t{0}, uint64_t{1}, uint64_t{4096}}) {
    const uint64_t wanted = hint == 0 ? bytes.size() : hint;
    std::fill(out.begin(), out.end(), std::byte{0xee});
    const auto got = backend().read_object("object", hint, out);
    ASSERT_OK(got);
    EXPECT_EQ(*got, wanted);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + ptrdiff_t(wanted), out.begin()));
    EXPECT_EQ(out[wanted], std::byte{0xee}) << "wrote behind what it read";
  }
  EXPECT_ERRC(Errc::truncated, backend().read_object("object", 70'002, out));
  EXPECT_ERRC(Errc::invalid_argument, backend().read_object("object", 200'000, out));
  EXPECT_ERRC(Errc::invalid_argument, backend().read_object("object", 0, std::span(out).first(70'000)));
  EXPECT_ERRC(Errc::not_found, backend().read_object("nothing", 1, out));
  EXPECT_ERRC(Errc::not_found, backend().read_object("nothing", 0, out));
}

TEST_P(Contract, AnObjectMayBeEmpty) {
  put("empty", "");
  const auto entry = names().stat("empty");
  ASSERT_OK(entry);
  EXPECT_EQ(entry->bytes, 0U);
  Bytes out(1);
  const auto got = backend().read_object("empty", 0, out);
  ASSERT_OK(got);
  EXPECT_EQ(*got, 0U);
  EXPECT_ERRC(Errc::truncated, backend().read_object("empty", 1, out));
}

TEST_P(Contract, AppendsInPiecesWhateverTheHintSaid) {
  const Bytes bytes = pattern(3'000'013, 7);
  for (const uint64_t hint : {uint64_t{0}, uint64_t{1}, uint64_t{bytes.size()}, uint64_t{9'000'000}}) {
    auto writer = backend().create("pieces", hint);
    ASSERT_OK(writer);
    const std::span<const std::byte> all(bytes);
    ASSERT_OK((*writer)->append(all.first(5)));
    std::vector<std::span<const std::byte>> pieces{all.subspan(5, 0)};
    for (size_t at = 5; at < 2'000'005; at += 20'000) pieces.push_back(all.subspan(at, 20'000));
    ASSERT_OK((*writer)->append(pieces));
    ASSERT_OK((*writer)->append(all.subspan(2'000'005)));
    ASSERT_OK((*writer)->publish(Durability::visible));
    const auto read_back = get("pieces");
    ASSERT_OK(read_back);
    EXPECT_EQ(read_back->size(), bytes.size());
    EXPECT_EQ(*read_back, text_of(bytes));
  }
}

TEST_P(Contract, WritesAtOffsetsIfItsCapsSaySo) {
  auto writer = backend().create("patched");
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(bytes_of("head body")));
  if (!caps().write_at) {
    EXPECT_ERRC(Errc::unsupported, (*writer)->write_at(0, bytes_of("x")));
    return;
  }
  ASSERT_OK((*writer)->write_at(5, bytes_of("BODY")));
  ASSERT_OK((*writer)->write_at(12, bytes_of("tail")));
  ASSERT_OK((*writer)->append(bytes_of("!")));
  ASSERT_OK((*writer)->publish(Durability::visible));
  const auto read_back = get("patched");
  ASSERT_OK(read_back);
  EXPECT_EQ(*read_back, std::string_view("head BODY!\0\0tail", 16));
}

TEST_P(Contract, AnObjectIsInvisibleBeforeItIsPublished) {
  {
    auto writer = backend().create("folder/object", 5);
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->append(bytes_of("water")));
    EXPECT_ERRC(Errc::not_found, get("folder/object"));
    EXPECT_ERRC(Errc::not_found, names().stat("folder/object"));
  }
  EXPECT_ERRC(Errc::not_found, get("folder/object"));
  put("folder/other", "x");
  EXPECT_EQ(listed("folder"), std::vector<std::string>{"folder/other"});
}

TEST_P(Contract, PublishReplacesOrFailsAsAsked) {
  put("object", "old");
  put("object", "newer");
  EXPECT_EQ(*get("object"), "newer");
  auto writer = backend().create("object");
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(bytes_of("newest")));
  EXPECT_ERRC(Errc::already_exists, (*writer)->publish(Durability::visible, IfExists::fail));
  EXPECT_EQ(*get("object"), "newer");
  put("fresh", bytes_of("x"), IfExists::fail);
  writer->reset();
  EXPECT_EQ(listed(""), (std::vector<std::string>{"fresh", "object"}));
}

TEST_P(Contract, AWriterCannotBeUsedAfterPublish) {
  auto writer = backend().create("object");
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(bytes_of("x")));
  ASSERT_OK((*writer)->publish(Durability::visible));
  EXPECT_FALSE((*writer)->append(bytes_of("y")).ok());
  EXPECT_FALSE((*writer)->publish(Durability::visible).ok());
  EXPECT_EQ(*get("object"), "x");
}

TEST_P(Contract, AcceptsEveryDurability) {
  for (const Durability wanted :
       {Durability::visible, Durability::leaving, Durability::file, Durability::file_and_name}) {
    auto writer = backend().create("a/b/durable");
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->append(bytes_of("x")));
    EXPECT_OK((*writer)->publish(wanted));
  }
}

TEST_P(Contract, ReadersSeeTheOldObjectOrTheNewOneNeverAMixture) {
  constexpr size_t kBytes = 200'000;
  put("object", Bytes(kBytes, std::byte{0}));
  std::atomic<bool> done{false};
  std::jthread writer([&] {
    for (unsigned round = 1; round <= 50; ++round)
      put("object", Bytes(kBytes, static_cast<std::byte>(round)));
    done = true;
  });
  Bytes out(kBytes);
  while (!done) {
    ASSERT_OK(backend().read_object("object", kBytes, out));
    ASSERT_TRUE(std::all_of(out.begin(), out.end(), [&](std::byte byte) { return byte == out[0]; }));
  }
}

TEST_P(Contract, OffersWhatItsCapsSay) {
  const Bytes bytes = pattern(5'000);
  put("object", bytes);
  const auto reader = backend().open("object");
  ASSERT_OK(reader);
  const auto view = (*reader)->view(10, 4'000);
  if (caps().zero_copy) {
    ASSERT_OK(view);
    EXPECT_TRUE(std::equal(view->begin(), view->end(), bytes.begin() + 10));
    EXPECT_ERRC(Errc::truncated, (*reader)->view(4'999, 2));
  } else {
    EXPECT_ERRC(Errc::unsupported, view);
  }
  Bytes out(4'000);
  if (caps().collective_reads) {  // this job has only one rank, so the collective read needs no other
    ASSERT_OK((*reader)->read_at_all(10, out));
    EXPECT_TRUE(std::equal(out.begin(), out.end(), bytes.begin() + 10));
    EXPECT_OK((*reader)->read_at_all(0, {}));
    EXPECT_ERRC(Errc::truncated, (*reader)->read_at_all(4'999, std::span(out).first(2)));
    EXPECT_ERRC(Errc::truncated, (*reader)->read_at_all(UINT64_MAX, std::span(out).first(2)));
    EXPECT_OK((*reader)->read_at(1'000, out));
    EXPECT_TRUE(std::equal(out.begin(), out.end(), bytes.begin() + 1'000));
  } else {
    EXPECT_ERRC(Errc::unsupported, (*reader)->read_at_all(0, out));
  }
  const auto path = backend().native_path("object");
  ASSERT_EQ(path.has_value(), caps().native_path);
  if (path) {
    EXPECT_EQ(std::filesystem::file_size(*path), bytes.size());
  }
}

TEST_P(Contract, CountsWhatItMoved) {
  const MovedBytes before = backend().moved_bytes();
  put("object", pattern(10'000));
  EXPECT_EQ(backend().moved_bytes().written - before.written, 10'000U);
  Bytes out(10'000);
  ASSERT_OK(backend().read_object("object", 10'000, out));
  const auto reader = backend().open("object");
  ASSERT_OK(reader);
  ASSERT_OK((*reader)->read_at(5, std::span(out).first(95)));
  EXPECT_EQ(backend().moved_bytes().read - before.read, 10'095U);
}

TEST_P(Contract, FourThreadsAtOnce) {
  constexpr unsigned kThreads = 4;
  constexpr unsigned kRounds = 40;
  const MovedBytes before = backend().moved_bytes();
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        Bytes out(20'000);
        for (unsigned round = 0; round < kRounds; ++round) {
          const std::string name = "shared/t" + std::to_string(t) + "/" + std::to_string(round % 5);
          const Bytes bytes = pattern(20'000, t * kRounds + round);
          put(name, bytes);
          ASSERT_OK(backend().read_object(name, bytes.size(), out));
          ASSERT_EQ(out, bytes);
          ASSERT_OK(names().list("shared", [](const Entry&) { return true; }));
        }
      });
  }
  const MovedBytes after = backend().moved_bytes();
  EXPECT_EQ(after.written - before.written, kThreads * kRounds * 20'000U);
  EXPECT_EQ(after.read - before.read, kThreads * kRounds * 20'000U);
  EXPECT_EQ(listed("shared").size(), kThreads);
}

INSTANTIATE_TEST_SUITE_P(Backend, Contract,
                         testing::Values("plain", "throttled", "faulty", "capped", "traced", "all"),
                         [](const auto& row) { return row.param; });

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s BACKEND\n", argv[0]);
    return 2;
  }
  // The back end for tests is not in the program's registry.
  const auto info = std::string_view(argv[1]) == backend_forgetful.name
                        ? Result<const BackendInfo*>(&backend_forgetful)
                        : backend_registry().find(argv[1]);
  if (!info) {
    std::fprintf(stderr, "%s\n", info.error().message().c_str());
    return info.error().code == Errc::unsupported ? 77 : 2;
  }
  std::string scratch = (std::filesystem::temp_directory_path() / "penstock-contract-XXXXXX").string();
  if (::mkdtemp(scratch.data()) == nullptr) return 2;
  contract_subject() = {*info, scratch};
  // Start a test object store, unless the environment names a real one.
  std::unique_ptr<s3::TestServer> server;
  if (std::string_view(argv[1]) == "s3" && std::getenv("PENSTOCK_TEST_S3") == nullptr) {
    server = std::make_unique<s3::TestServer>();
    server->set_environment();
  }
  const bool is_unavailable = (*info)->test_path(scratch).empty();
  if (is_unavailable) std::fprintf(stderr, "this machine has nothing to test back end '%s' on\n", argv[1]);
  const int result = is_unavailable ? 77 : RUN_ALL_TESTS();
  std::error_code ignored;
  std::filesystem::remove_all(scratch, ignored);
  return result;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  return penstock::run(argc, argv);
}
