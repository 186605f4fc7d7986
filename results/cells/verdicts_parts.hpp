// Helpers with which the views make sentences.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/cells/verdicts.hpp"

namespace penstock::verdicts {

// Joins texts to "a", "a and b" or "a, b and c". At most `most` texts are named, and the others are counted
// ("a, b and 5 more"). If only one text would be counted, it is named too.
std::string enumerate(const std::vector<std::string>& texts, size_t most = 4);
std::string threads_text(uint64_t threads);  // "1 thread", "8 threads"
std::optional<uint64_t> threads_of(const Record& record);

// Adds a sentence made from a format string and its arguments.
template <class... Args>
void add_sentence(std::vector<Sentence>& out, Tone tone, std::string kind, fmt::format_string<Args...> text,
                  Args&&... args) {
  out.push_back({tone, std::move(kind), fmt::format(text, std::forward<Args>(args)...)});
}

// Gives `anchor` (a link target) to the sentences from index `first_index` on, unless they already have an
// anchor.
void link_sentences(const std::string& anchor, size_t first_index, std::vector<Sentence>& out);

// Calls `describe` for each group of a section. The sentences that it adds link to that group on the page.
template <typename Group, typename Describe>
void describe_each(std::string_view section, const std::vector<Group>& groups, std::vector<Sentence>& out,
                   Describe describe) {
  for (size_t i = 0; i < groups.size(); ++i) {
    const size_t sentences_before = out.size();
    describe(groups[i]);
    link_sentences(group_anchor(section, i), sentences_before, out);
  }
}

}  // namespace penstock::verdicts
