// What every page of ours is: one HTML file with its style, script and charts in it, that asks no network for
// anything (its content security policy forbids it) and stays readable without script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/report/page_state.hpp"

namespace penstock::report {

// `body` is finished HTML that has places for the charts of `state`; `subtitles` are lines below the title;
// `record_lines` are raw records, script_json() a line, for the page's buttons. Deterministic but for the
// nonce of the script policy.
std::string frame_page(const std::string& title, const std::vector<std::string>& subtitles,
                       std::string_view body, const PageState& state, std::string_view record_lines = "");

}  // namespace penstock::report
