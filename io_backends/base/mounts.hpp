// Where things are mounted on this machine.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

// From the text of a mountinfo (/proc/self/mountinfo), in its order.
std::vector<std::string> mount_points(std::istream& mountinfo);

// Whether files of this type ("proc", "sysfs", "cgroup2", "devtmpfs", ...) are what the kernel says of
// itself, and no storage. "tmpfs" holds files.
bool is_pseudo_file_system(std::string_view fs_type);

}  // namespace penstock
