// The page of `penstock profile serve`: one HTML file with all that it needs. It gets its numbers from its
// own server only.
#pragma once

#include <string>
#include <string_view>

#include "profiling/serve/http_response.hpp"

namespace penstock {

// `name`: of the session, any bytes. `si_units`: rates in MB/s.
HttpResponse serve_page(std::string_view name, bool si_units);

}  // namespace penstock
