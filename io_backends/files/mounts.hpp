// Finds the mount points of this machine, and what kind of file system a tier is on.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

struct TierFacts;

// Returns the mount points in the text of /proc/self/mountinfo, in the order of the text.
std::vector<std::string> mount_points(std::istream& mountinfo);

// Undoes the escapes of mountinfo, which writes space, tab, newline and backslash as \ and three octal
// digits.
std::string unescape_octal(std::string_view text);

// Whether this type of file system ("proc", "sysfs", "cgroup2", "devtmpfs", ...) shows data of the kernel and
// stores no files. "tmpfs" stores files.
bool is_pseudo_file_system(std::string_view fs_type);

// Whether the tier certainly uses no server: it is in memory, or its file system is on a device of this
// machine. False for a network file system, for most FUSE file systems, for an overlay (its layers may be
// anywhere), and for an unknown type.
bool is_on_this_machine(const TierFacts& facts);

}  // namespace penstock
