#include "io_backends/core/cli/foreign_flags.hpp"

#include <fmt/format.h>

#include "io_backends/core/cli/command_line.hpp"

namespace penstock {
namespace {

struct ForeignFlag {
  std::string_view flag;
  std::string_view tool;
  std::string_view option;  // the option that does the same; the advice counts for commands that have it
  std::string_view value;   // what to write after the option
};

// Some short flags are here more than once: the tools disagree on what they mean.
constexpr ForeignFlag kForeignFlags[] = {
    {"--bs", "fio", "blocks", "SIZE,..."},
    {"--iodepth", "fio", "depths", "LIST"},
    {"--runtime", "fio", "min-time", "TIME"},
    {"--rw", "fio", "order", "sequential|shuffled"},
    {"--readwrite", "fio", "order", "sequential|shuffled"},
    {"--ioengine", "fio", "tier", "uring:PATH"},
    {"--direct", "fio", "tier", "posix:PATH,direct=1"},
    {"--ramp_time", "fio", "ramp", "TIME"},
    {"--rate_iops", "fio", "rate", "N/s"},
    {"--loops", "fio", "repeat", "N"},
    {"--randseed", "fio", "seed", "N"},
    {"--cpus_allowed", "fio", "cpus", "LIST"},
    {"--numa_cpu_nodes", "fio", "numa", "N"},
    {"--output-format", "fio", "json", ""},
    {"--filesize", "fio", "bytes", "SIZE"},
    {"--size", "fio", "bytes", "SIZE"},
    {"--timelimit", "elbencho", "duration", "TIME"},
    {"--rand", "elbencho", "order", "shuffled"},
    {"--dropcache", "elbencho", "cache", "cold"},
    {"--iterations", "elbencho", "repeat", "N"},
    {"--cores", "elbencho", "cpus", "LIST"},
    {"--zones", "elbencho", "numa", "N"},
    {"--livecsv", "elbencho", "live-csv", "FILE"},
    {"--jsonfile", "elbencho", "json", ""},
    {"--resfile", "elbencho", "results", "DIR"},
    {"--limitread", "elbencho", "tier", "posix:PATH,read_limit=SIZE/s"},
    {"--limitwrite", "elbencho", "tier", "posix:PATH,write_limit=SIZE/s"},
    {"-t", "elbencho", "threads", "N"},
    {"-t", "IOR", "block", "SIZE"},
    {"-b", "elbencho", "block", "SIZE"},
    {"-i", "IOR and mdtest", "repeat", "N"},
    {"-z", "IOR", "order", "shuffled"},
    {"-C", "IOR", "rank-shift", "N"},
    {"-Q", "IOR", "rank-shift", "N"},
    {"-D", "IOR", "stonewall", "TIME"},
    {"-W", "mdtest", "stonewall", "TIME"},
    {"-N", "mdtest", "rank-shift", "N"},
    {"-a", "IOR", "tier", "mpiio:PATH"},
};

// A short flag may have its value attached: IOR's -t4k.
bool is_flag(std::string_view word, std::string_view flag) {
  if (flag.starts_with("--")) return word.substr(0, word.find('=')) == flag;
  return word.starts_with(flag) && (word.size() == 2 || (word[2] >= '0' && word[2] <= '9'));
}

}  // namespace

std::string foreign_flag_advice(const CommandInfo& command, std::string_view word) {
  std::string advice;
  for (const ForeignFlag& foreign : kForeignFlags) {
    if (!is_flag(word, foreign.flag) || find_option(command, foreign.option) == nullptr) continue;
    advice += fmt::format("{}{}'s {} is --{}{}{}", advice.empty() ? "" : ", ", foreign.tool, foreign.flag,
                          foreign.option, foreign.value.empty() ? "" : " ", foreign.value);
  }
  return advice;
}

}  // namespace penstock
