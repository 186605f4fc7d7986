// The page of `penstock profile serve`: one HTML file that loads nothing from elsewhere. It gets its figures
// from its own server only.
#pragma once

#include <string>
#include <string_view>

#include "profiling/serve/http_response.hpp"

namespace penstock {

// `name`: of the session; it may contain any bytes. `si_units`: rates in MB/s.
HttpResponse serve_page(std::string_view name, bool si_units);

}  // namespace penstock
