#include "profiling/session/session_filter.hpp"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(FilePatterns, MatchTheWholePathOrItsEnd) {
  EXPECT_TRUE(matches("*.jpg", "/data/train/a.jpg"));
  EXPECT_FALSE(matches("*.jpg", "/data/a.jpg.tmp"));
  EXPECT_TRUE(matches("a.jpg", "/data/a.jpg"));
  EXPECT_FALSE(matches("a.jpg", "/data/aa.jpg"));
  EXPECT_TRUE(matches("/data/*", "/data/x/y"));
  EXPECT_FALSE(matches("/data/*", "/mnt/data/x"));
  EXPECT_TRUE(matches("train/*.jpg", "/data/train/a.jpg"));
  EXPECT_FALSE(matches("train/*.jpg", "/data/retrain/a.jpg"));
  EXPECT_TRUE(matches("train/", "/data/train/deep/a.jpg"));
  EXPECT_TRUE(matches("/data/", "/data/a"));
  EXPECT_TRUE(matches("[ab].jpg", "/b.jpg"));
}

TEST(PythonStartUp, HasFilesOfTheInterpreterButNotOfTheProgram) {
  for (const char* noise :
       {"/usr/lib/python3.11/os.py", "/opt/pythons/3.11.4/lib/python3.11/__pycache__/os.cpython-311.pyc",
        "/venv/lib/python3.12/site-packages/numpy/core/_multiarray_umath.cpython-312-x86_64-linux-gnu.so",
        "/venv/lib/python3.12/site-packages/numpy.libs/libopenblas64_p-r0.so.3", "/proc/self/maps",
        "/sys/devices/x", "/dev/urandom", "/etc/ld.so.cache", "/usr/lib/locale/locale-archive",
        "/venv/pyvenv.cfg", "/usr/lib/python311.zip"})
    EXPECT_TRUE(is_start_up_noise(noise, PENSTOCK_REGULAR, true)) << noise;
  for (const char* own :
       {"/project/train.py", "/project/__pycache__/model.pyc", "/data/a.jpg", "/dev/shm/p/a.jpg",
        "/processed/a", "/venv/lib/python3.12/site-packages/sklearn/datasets/data/iris.csv"})
    EXPECT_FALSE(is_start_up_noise(own, PENSTOCK_REGULAR, true)) << own;
  EXPECT_TRUE(is_start_up_noise("/venv/lib/python3.12/site-packages/x.csv", PENSTOCK_REGULAR, false));
  EXPECT_TRUE(is_start_up_noise("/venv/lib/python3.12/site-packages", PENSTOCK_DIRECTORY, true));
}

}  // namespace
}  // namespace penstock
