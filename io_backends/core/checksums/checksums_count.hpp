// Whether parsers hold checksums against what they cover.
#pragma once

namespace penstock {

// False where libFuzzer looks for what lies behind checksums, which it would never get right by chance.
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
inline constexpr bool kChecksumsCount = false;
#else
inline constexpr bool kChecksumsCount = true;
#endif

}  // namespace penstock
