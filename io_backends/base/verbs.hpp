// Commands that have verbs (`penstock checkpoint save`), whose options are for some of the verbs alone.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/base/result.hpp"

namespace penstock {

struct VerbOptions {
  std::string_view verb;
  std::span<const std::string_view> takes;  // long names; what no verb takes is the command's own
};

// invalid_argument, with the verbs that take it, for an option of another verb that stands on the line: that
// is a mistake. One from a configuration file is meant for that verb, and is not looked at. `-o` is "output".
Result<void> check_verb_options(std::string_view verb, const std::vector<VerbOptions>& verbs,
                                std::span<const std::string> argv);

}  // namespace penstock
