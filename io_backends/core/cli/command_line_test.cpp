#include "io_backends/core/cli/command_line.hpp"

#include <gtest/gtest.h>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

constexpr OptionSpec kKeep{
    .name = "keep", .type = OptionType::integer, .fallback = "2", .help = "how many stay"};
constexpr OptionSpec kSaveOptions[] = {{.name = "step", .type = OptionType::integer, .help = "which step"},
                                       {.name = "output", .help = "where to", .alias = "o"},
                                       kKeep};
constexpr OptionSpec kGcOptions[] = {
    {.name = "keep", .type = OptionType::integer, .fallback = "5", .help = "of each run"}};
constexpr OptionSpec kLsOptions[] = {{.name = "long", .type = OptionType::flag, .help = "more"}};

constexpr CommandInfo kStoreSave{.name = "store save",
                                 .summary = "saves it",
                                 .options = kSaveOptions,
                                 .synopsis = "penstock store save DIR",
                                 .examples = {"one"},
                                 .arguments = "DIR"};
constexpr CommandInfo kGc{.name = "store gc",
                          .summary = "clears it",
                          .options = kGcOptions,
                          .synopsis = "penstock store gc",
                          .examples = {"one"}};
constexpr CommandInfo kStoreLs{.name = "store ls",
                               .summary = "lists it",
                               .options = kLsOptions,
                               .synopsis = "penstock store ls [WORD]...",
                               .examples = {"one"},
                               .arguments = "[WORD]...",
                               .has_placement = true};
constexpr const CommandInfo* kAll[] = {&kStoreSave, &kGc, &kStoreLs};
constexpr CommandInfo kStore{.name = "store",
                             .summary = "a store",
                             .synopsis = "penstock store save|gc|ls",
                             .examples = {"one", "two"},
                             .arguments = "SUBCOMMAND ...",
                             .subcommands = [] { return std::span<const CommandInfo* const>(kAll); }};

Result<CommandLine> parsed(const std::vector<std::string>& words,
                           const std::vector<OptionWord>& config = {}) {
  return parse_command_line(kStore, words, config);
}

TEST(Subcommand, HasItsOwnOptionsAndDefaults) {
  const auto save = parsed({"save", "--step=3", "-o", "x", "dir", "--json"});
  ASSERT_OK(save);
  EXPECT_EQ(save->command, &kStoreSave);
  EXPECT_EQ(save->arguments, std::vector<std::string>{"dir"});
  EXPECT_EQ(save->options.text("output"), "x");
  EXPECT_EQ(save->options.integer("keep"), 2);
  EXPECT_EQ(parsed({"gc"})->options.integer("keep"), 5);
  parsed({"gc"})->options.visit(
      [](const OptionSpec& option, const std::string*) { EXPECT_NE(option.name, "step"); });
}

TEST(Subcommand, MayFollowItsOptions) {
  const auto save = parsed({"--step", "3", "save", "dir"});
  ASSERT_OK(save);
  EXPECT_EQ(save->options.integer("step"), 3);
}

TEST(Subcommand, RefusesOptionsOfOthersAndNamesThem) {
  EXPECT_ERRC(Errc::invalid_argument, parsed({"ls", "--step", "3"}), "'penstock store ls' has no option --step");
  EXPECT_ERRC(Errc::invalid_argument, parsed({"ls", "-o", "x"}), "--output: it is an option of save");
  EXPECT_ERRC(Errc::invalid_argument, parsed({"ls", "--keep", "1"}), "save, gc");
  EXPECT_ERRC(Errc::invalid_argument, parsed({"gc", "--cpus", "0"}), "ls");
  EXPECT_OK(parsed({"ls", "--cpus", "0"}));
}

TEST(Subcommand, UnknownOptionsAreComparedWithItsOwn) {
  const auto refused = parsed({"gc", "--kep", "1"});
  EXPECT_ERRC(Errc::invalid_argument, refused, "--keep");
  EXPECT_EQ(refused.error().what.find("--step"), std::string::npos);
}

TEST(Subcommand, IsRequiredAndMustExist) {
  EXPECT_ERRC(Errc::invalid_argument, parsed({}), "SUBCOMMAND");
  EXPECT_ERRC(Errc::invalid_argument, parsed({"lss"}), "'ls'");
  EXPECT_ERRC(Errc::invalid_argument, parsed({"save"}), "needs DIR");
  EXPECT_ERRC(Errc::invalid_argument, parsed({"save", "a", "b"}), "'b'");
}

TEST(Subcommand, TakesTheNumberOfArgumentsInItsTable) {
  const auto takes = [](std::string_view arguments, size_t count) {
    CommandInfo command = kStoreSave;
    command.arguments = arguments;
    return parse_command_line(command, std::vector<std::string>(count, "x"), {}).ok();
  };
  const auto taken = [&](std::string_view arguments) {
    std::string counts;
    for (size_t count = 0; count < 4; ++count) counts += takes(arguments, count) ? '+' : '-';
    return counts;
  };
  EXPECT_EQ(taken(""), "+---");
  EXPECT_EQ(taken("DIR"), "-+--");
  EXPECT_EQ(taken("[DIR]"), "++--");
  EXPECT_EQ(taken("DIR..."), "-+++");
  EXPECT_EQ(taken("[DIR]..."), "++++");
  EXPECT_EQ(taken("on|off PID..."), "--++");
  EXPECT_EQ(taken("NAME [DIR]"), "-++-");
}

TEST(Subcommand, TakesItsOwnOptionsFromAConfigurationFile) {
  const auto gc = parsed({"gc"}, {{"keep", "7"}, {"step", "no number"}});
  ASSERT_OK(gc);
  EXPECT_EQ(gc->options.integer("keep"), 7);
  EXPECT_ERRC(Errc::invalid_argument, parsed({"gc"}, {{"kep", "7"}}), "keep");
}

TEST(Subcommand, WordsAfterTwoDashesAreArguments) {
  const auto ls = parsed({"ls", "--", "program", "--step"});
  ASSERT_OK(ls);
  EXPECT_EQ(ls->arguments, (std::vector<std::string>{"program", "--step"}));
}

TEST(Subcommand, HelpShowsOnlyItsOwnOptions) {
  const std::vector<std::string> words{"gc", "--help"};
  EXPECT_EQ(&command_named_by(kStore, words), &kGc);
  const std::string gc = command_help(kGc);
  EXPECT_NE(gc.find("--keep"), std::string::npos);
  EXPECT_NE(gc.find("--json"), std::string::npos);
  EXPECT_EQ(gc.find("--step"), std::string::npos);
  const std::string all = command_help(kStore);
  EXPECT_NE(all.find("clears it"), std::string::npos);
  EXPECT_EQ(all.find("--keep"), std::string::npos);
}

constexpr OptionSpec kReadOptions[] = {
    {.name = "threads",
     .type = OptionType::list,
     .value = "LIST",
     .fallback = "1",
     .help = "workers",
     .alias = "numjobs"},
    {.name = "duration",
     .type = OptionType::duration,
     .value = "TIME",
     .help = "how long",
     .alias = "runtime",
     .alias_unit = "s"},
    {.name = "block", .type = OptionType::size, .value = "SIZE", .help = "bytes", .alias = "bs"},
    {.name = "repeat", .type = OptionType::integer, .value = "N", .fallback = "3", .help = "repeats"},
    {.name = "tier", .value = "TIER", .help = "where", .repeated = true},
};
constexpr CommandInfo kReader{.name = "reader",
                              .summary = "reads it",
                              .options = kReadOptions,
                              .synopsis = "penstock reader",
                              .examples = {"one"}};

Result<CommandLine> read_with(const std::vector<std::string>& words,
                              const std::vector<OptionWord>& config = {}) {
  return parse_command_line(kReader, words, config);
}

TEST(Alias, MeansItsOption) {
  const auto line = read_with({"--numjobs=1,4", "--bs", "4k", "--runtime", "30"});
  ASSERT_OK(line);
  EXPECT_EQ(line->options.list("threads"), (std::vector<uint64_t>{1, 4}));
  EXPECT_EQ(line->options.size("block"), 4096U);
  EXPECT_EQ(line->options.duration("duration"), std::chrono::seconds(30));
  EXPECT_EQ(read_with({"--runtime", "1.5"})->options.duration("duration"), std::chrono::milliseconds(1500));
  EXPECT_EQ(read_with({"--runtime", "2m"})->options.duration("duration"), std::chrono::minutes(2));
}

TEST(Alias, OnlyItsNameTakesANumberWithoutAUnit) {
  EXPECT_ERRC(Errc::invalid_argument, read_with({"--duration", "30"}), "--duration");
  EXPECT_ERRC(Errc::invalid_argument, read_with({"--runtime", "soon"}), "soon");
}

TEST(Alias, AndNameTogetherAreRefused) {
  EXPECT_ERRC(Errc::invalid_argument, read_with({"--bs", "4k", "--block", "8k"}),
              "--bs and --block are the same option");
  EXPECT_ERRC(Errc::invalid_argument, read_with({}, {{"bs", "4k"}, {"block", "8k"}}),
              "--bs and --block are the same option");
  EXPECT_ERRC(Errc::invalid_argument, read_with({"--bs", "4k", "--bs", "8k"}), "--block is given twice");
}

TEST(Alias, CountsInAConfigurationFile) {
  const std::vector<OptionWord> config{{"numjobs", "1"}, {"numjobs", "2"}, {"runtime", "7"}};
  const auto line = read_with({}, config);
  ASSERT_OK(line);
  EXPECT_EQ(line->options.list("threads"), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(line->options.duration("duration"), std::chrono::seconds(7));
  EXPECT_EQ(read_with({"--threads", "8"}, config)->options.list("threads"), std::vector<uint64_t>{8})
      << "a flag of the command line wins, whatever its name";
}

TEST(Alias, IsInTheHelpNextToItsOption) {
  const std::string help = command_help(kReader);
  EXPECT_NE(help.find("--block, --bs SIZE"), std::string::npos);
  EXPECT_NE(help.find("--duration, --runtime TIME"), std::string::npos);
}

TEST(ForeignFlag, LeadsToTheOptionThatDoesTheSame) {
  EXPECT_ERRC(Errc::invalid_argument, read_with({"--iterations", "3"}), "--repeat N");
  EXPECT_ERRC(Errc::invalid_argument, read_with({"--direct=1"}), "--tier posix:PATH,direct=1");
  EXPECT_ERRC(Errc::invalid_argument, read_with({"-t", "4k"}), "IOR's -t is --block SIZE");
  EXPECT_ERRC(Errc::invalid_argument, read_with({"-t4k"}), "elbencho's -t is --threads N");
  EXPECT_ERRC(Errc::invalid_argument, read_with({"--rw=read"}), "unknown option") << "it has no --order";
}

}  // namespace
}  // namespace penstock
