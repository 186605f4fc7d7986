// Where things are mounted on this machine.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace penstock {

// From the text of a mountinfo (/proc/self/mountinfo), in its order.
std::vector<std::string> mount_points(std::istream& mountinfo);

}  // namespace penstock
