#include "profiling/serve/serve_page.hpp"

#include <fmt/format.h>

#include "io_backends/core/build_info.hpp"
#include "profiling/serve/access.hpp"
#include "profiling/serve/serve_assets.hpp"
#include "results/report/assets.hpp"
#include "results/report/html.hpp"

namespace penstock {

HttpResponse serve_page(std::string_view name, bool si_units) {
  const Result<std::string> nonce = make_token();
  if (!nonce.ok()) return plain_response(500, nonce.error().message());
  HttpResponse response;
  response.content_type = "text/html; charset=utf-8";
  response.content_policy = fmt::format(
      "default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src 'self'; img-src data:; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      *nonce);
  const std::string title = report::escape(name);
  std::string& page = response.text;
  page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\" data-unit=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{} - penstock</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style nonce=\"{}\">\n",
      si_units ? "si" : "binary", title, *nonce);
  page += report::chart_library_css;
  page += report::page_css;
  page += serve_css;
  page += "</style>\n</head>\n<body>\n";
  page += serve_html;
  page += fmt::format(
      "<footer><div class=\"wide\">\n<p>penstock {}. This page contacts only its own server.</p>\n",
      report::escape(build_info().version));
  if (!report::chart_library_js.empty())
    page +=
        fmt::format("<details><summary>Charts by uPlot {}; its licence</summary><pre>{}</pre></details>\n",
                    report::chart_library_version, report::escape(report::chart_library_licence));
  page += fmt::format("</div></footer>\n<script nonce=\"{}\">\n", *nonce);
  page += report::chart_library_js;
  page += "\n";
  page += serve_js;
  page += "</script>\n</body>\n</html>\n";
  return response;
}

}  // namespace penstock
