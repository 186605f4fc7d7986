// Tells parsers whether to verify checksums.
#pragma once

namespace penstock {

// False in builds with libFuzzer: the fuzzer would never guess a correct checksum, and would not reach the
// code after the check.
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
inline constexpr bool kVerifyChecksums = false;
#else
inline constexpr bool kVerifyChecksums = true;
#endif

}  // namespace penstock
