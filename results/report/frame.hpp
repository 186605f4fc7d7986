// Makes a complete page: one HTML file that contains its style, script and charts. It makes no network
// request (its content security policy forbids it) and stays readable without script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/report/page_state.hpp"

namespace penstock::report {

// Makes the page around `body`, which is finished HTML with the elements for the charts of `state`.
// `subtitles` are lines below the title. `record_lines` has one raw record per line, as script_json() makes
// it; the page's buttons use them. The same input always gives the same page, except for the nonce of the
// script policy.
std::string frame_page(const std::string& title, const std::vector<std::string>& subtitles,
                       std::string_view body, const PageState& state, std::string_view record_lines = "");

}  // namespace penstock::report
