// The page of `penstock profile serve`: one HTML file that loads nothing from elsewhere. It gets its figures
// from its own server only.
#pragma once

#include <string>
#include <string_view>

#include "profiling/serve/http_response.hpp"

namespace penstock {

// `name` is the name of the session and may contain any bytes. With `si_units`, rates are in MB/s instead of
// MiB/s.
HttpResponse serve_page(std::string_view name, bool si_units);

}  // namespace penstock
