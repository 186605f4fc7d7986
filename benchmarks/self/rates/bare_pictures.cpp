// penstock_bare_pictures FOLDER [--threads N] [--seconds S] [--side PIXELS]: the baseline of
// benchmarks/self/rates/train. It is the simplest program that turns JPEG files into the input of a network.
// Each thread takes the next file in or below FOLDER and reads it whole. It decodes every pixel with
// libjpeg-turbo's defaults. It then computes PIXELS x PIXELS (224) normalised pixels of floats, each from
// four decoded pixels, in its own memory that it reuses. There are no batches, no order and no checks. Prints
// the pictures per second, and the number of pictures.
// clang-format off
#include <cstdio>  // jpeglib.h needs FILE and size_t before it
#include <jpeglib.h>
// clang-format on

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "io_backends/core/system/fd.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr unsigned kMostThreads = 4096;
constexpr unsigned kLargestSide = 16384;
constexpr float kMean[3] = {0.485F, 0.456F, 0.406F};
constexpr float kDeviation[3] = {0.229F, 0.224F, 0.225F};

struct Arguments {
  std::string folder;
  unsigned threads = 1;
  unsigned seconds = 2;
  unsigned side = 224;
};

bool parse(std::string_view text, unsigned most, unsigned& out) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failure == std::errc{} && end == text.data() + text.size() && out >= 1 && out <= most;
}

bool parse_line(int argc, char** argv, Arguments& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view next = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--threads" && parse(next, kMostThreads, out.threads)) {
      ++i;
    } else if (word == "--seconds" && parse(next, 3600, out.seconds)) {
      ++i;
    } else if (word == "--side" && parse(next, kLargestSide, out.side)) {
      ++i;
    } else if (out.folder.empty() && !word.starts_with("-")) {
      out.folder = word;
    } else {
      return false;
    }
  }
  return !out.folder.empty();
}

std::vector<std::string> pictures_in(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code failure;
  for (fs::recursive_directory_iterator at(folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    const std::string kind = at->path().extension();
    if (kind == ".JPEG" || kind == ".jpeg" || kind == ".jpg") found.push_back(at->path());
  }
  return found;
}

// Makes the pictures of one thread.
class Maker {
 public:
  explicit Maker(unsigned side) : side_(side), out_(size_t{3} * side * side), columns_(side) {
    codec_.err = jpeg_std_error(&errors_);  // an error of libjpeg exits the program
    jpeg_create_decompress(&codec_);
  }
  ~Maker() { jpeg_destroy_decompress(&codec_); }
  Maker(const Maker&) = delete;
  Maker& operator=(const Maker&) = delete;

  bool make(const std::string& file) {
    if (!read(file)) return false;
    decode();
    resize();
    return true;
  }

 private:
  // Two neighbouring rows or columns of the source, and the weight of the second.
  struct Neighbours {
    size_t first = 0;
    size_t second = 0;
    float second_weight = 0;
  };

  bool read(const std::string& file) {
    const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0) return false;
    const auto size = size_t(status.st_size);
    if (stored_.size() < size) stored_.resize(size);
    bytes_ = static_cast<unsigned long>(size);
    for (size_t done = 0; done < size;) {
      const ssize_t read_bytes = ::read(fd.get(), stored_.data() + done, size - done);
      if (read_bytes <= 0) return false;
      done += size_t(read_bytes);
    }
    return true;
  }

  void decode() {
    jpeg_mem_src(&codec_, stored_.data(), bytes_);
    jpeg_read_header(&codec_, TRUE);
    codec_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&codec_);
    width_ = codec_.output_width;
    height_ = codec_.output_height;
    const size_t stride = size_t{3} * width_;
    if (pixels_.size() < stride * height_) pixels_.resize(stride * height_);
    while (codec_.output_scanline < height_) {
      JSAMPROW row = pixels_.data() + codec_.output_scanline * stride;
      jpeg_read_scanlines(&codec_, &row, 1);
    }
    jpeg_finish_decompress(&codec_);
  }

  Neighbours neighbours_of(unsigned at, unsigned source) const {
    const float ratio = float(source) / float(side_);
    const float centre = std::clamp((float(at) + 0.5F) * ratio - 0.5F, 0.0F, float(source - 1));
    const auto first = size_t(centre);
    return {first, std::min<size_t>(first + 1, source - 1), centre - float(first)};
  }

  void resize() {
    if (columns_width_ != width_) {
      columns_width_ = width_;
      for (unsigned x = 0; x < side_; ++x) columns_[x] = neighbours_of(x, width_);
    }
    constexpr float kScale[3] = {1 / (255 * kDeviation[0]), 1 / (255 * kDeviation[1]),
                                 1 / (255 * kDeviation[2])};
    constexpr float kShift[3] = {-kMean[0] / kDeviation[0], -kMean[1] / kDeviation[1],
                                 -kMean[2] / kDeviation[2]};
    float* out = out_.data();
    for (unsigned y = 0; y < side_; ++y) {
      const Neighbours row = neighbours_of(y, height_);
      const uint8_t* const upper = pixels_.data() + row.first * 3 * width_;
      const uint8_t* const lower = pixels_.data() + row.second * 3 * width_;
      for (unsigned x = 0; x < side_; ++x) {
        const Neighbours& column = columns_[x];
        for (size_t c = 0; c < 3; ++c) {
          const auto a = float(upper[3 * column.first + c]);
          const auto b = float(upper[3 * column.second + c]);
          const auto d = float(lower[3 * column.first + c]);
          const auto e = float(lower[3 * column.second + c]);
          const float above = a + (b - a) * column.second_weight;
          const float below = d + (e - d) * column.second_weight;
          *out++ = (above + (below - above) * row.second_weight) * kScale[c] + kShift[c];
        }
      }
    }
  }

  const unsigned side_;
  std::vector<float> out_;
  std::vector<Neighbours> columns_;  // for pictures that are columns_width_ pixels wide
  unsigned columns_width_ = 0;
  std::vector<uint8_t> stored_;
  std::vector<uint8_t> pixels_;
  unsigned long bytes_ = 0;
  unsigned width_ = 0;
  unsigned height_ = 0;
  jpeg_error_mgr errors_{};
  jpeg_decompress_struct codec_{};
};

int run(int argc, char** argv) {
  Arguments arguments;
  if (!parse_line(argc, argv, arguments)) {
    std::fprintf(stderr,
                 "usage: penstock_bare_pictures FOLDER [--threads N] [--seconds S] [--side PIXELS]\n");
    return 2;
  }
  const std::vector<std::string> files = pictures_in(arguments.folder);
  if (files.empty()) {
    std::fprintf(stderr, "penstock_bare_pictures: no JPEG files in '%s'\n", arguments.folder.c_str());
    return 1;
  }
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::atomic<size_t> made{0};
  const Clock::time_point start = Clock::now();
  const Clock::time_point end = start + std::chrono::seconds(arguments.seconds);
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < arguments.threads; ++i)
      threads.emplace_back([&] {
        Maker maker(arguments.side);
        while (!failed && Clock::now() < end) {
          const std::string& file = files[next.fetch_add(1, std::memory_order_relaxed) % files.size()];
          if (!maker.make(file) && !failed.exchange(true))
            std::fprintf(stderr, "penstock_bare_pictures: cannot read '%s'\n", file.c_str());
          made.fetch_add(1, std::memory_order_relaxed);
        }
      });
  }
  if (failed) return 1;
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  std::printf("%.3f %zu\n", double(made) / elapsed.count(), made.load());
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  return penstock::run(argc, argv);
}
