// Turns the refusals of an object store into errors with a remedy.
#include <cerrno>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/text.hpp"
#include "io_backends/s3/store.hpp"

namespace penstock::s3 {
namespace {

// Returns the error text for an answer that has a success status but not the result of the request (the ETag
// of an upload, for example). The text says what is missing, and what the user can do.
std::string why_no_proof(const Answer& answer, const Settings& settings) {
  constexpr size_t kExcerptBytes = 40;
  std::string why = "the server answered " + std::to_string(answer.status) + " without the result";
  if (answer.tries > 1) why += ", " + std::to_string(answer.tries) + " times";
  if (!trim(answer.text).empty())
    why += " (its answer starts with '" + printable(answer.text.substr(0, kExcerptBytes)) + "')";
  return why + ". Check that " + settings.endpoint.server +
         " is an object store, and that no proxy answers in its place (no_proxy)";
}

}  // namespace

Error refusal_error(const Answer& answer, const Settings& settings, std::string_view operation,
                    std::string_view object) {
  const Refusal& refusal = answer.refusal;
  const auto error = [&](Errc code, std::string_view why) {
    Error result = errno_error(0, operation, object);
    result.code = code;
    result.what.append(": ").append(why);
    if (!refusal.code.empty()) result.what.append(" (").append(refusal.code).append(")");
    return result;
  };
  const std::string bucket = "'" + settings.endpoint.bucket + "' at " + settings.endpoint.server;
  if (refusal.code == "SignatureDoesNotMatch")
    return error(
        Errc::permission_denied,
        "the server refuses the signature: correct the secret key, which does not match this access key");
  if (refusal.code == "InvalidAccessKeyId")
    return error(Errc::permission_denied, "the server does not know the access key: correct it");
  if (refusal.code == "ExpiredToken" || refusal.code == "InvalidToken")
    return error(Errc::permission_denied, "the session token has expired: get a new one");
  if (refusal.code == "RequestTimeTooSkewed")
    return error(Errc::permission_denied,
                 "the clocks of this machine and the server differ: correct this machine's clock");
  if (refusal.code == "NoSuchBucket")
    return error(Errc::not_found, "there is no bucket " + bucket + ": create it, or use another bucket");
  if (answer.status == 301 || refusal.code == "AuthorizationHeaderMalformed")
    return error(
        Errc::invalid_argument,
        "bucket " + bucket + " is in another region than '" + settings.region.name + "': set region=" +
            (refusal.region.empty() ? "..." : refusal.region) + " (" + refusal.message + ")" +
            (settings.region.why_default.empty()
                 ? ""
                 : "; '" + settings.region.name + "' is the default: " + settings.region.why_default));
  if (answer.lacks_result) return error(Errc::io, why_no_proof(answer, settings));
  switch (answer.status) {
    case 401:
    case 403:
      return error(Errc::permission_denied,
                   settings.credentials.key_id.empty()
                       ? "the server refuses this without credentials: " +
                             (settings.credentials.why_none.empty()
                                  ? "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run 'aws configure'"
                                  : settings.credentials.why_none)
                       : "this user lacks the permission for this in bucket " + bucket);
    case 404:
      return errno_error(ENOENT, operation, object);
    case 412:
      return errno_error(EEXIST, operation, object);
    case 409:
      return error(Errc::busy, "another client is changing it: try again");
    case 501:
      return error(Errc::unsupported, "the server does not support this: " + refusal.message);
    case 507:
      return errno_error(ENOSPC, operation, object);
    default:
      break;
  }
  if (refusal.code == "KeyTooLongError") return errno_error(ENAMETOOLONG, operation, object);
  if (refusal.code == "QuotaExceeded") return errno_error(ENOSPC, operation, object);
  std::string why = "the server answered " + std::to_string(answer.status);
  if (!refusal.message.empty()) why += ", " + refusal.message;
  if (answer.tries > 1) why += ", " + std::to_string(answer.tries) + " times";
  return error(answer.status == 400 ? Errc::invalid_argument : Errc::io, why);
}

}  // namespace penstock::s3
