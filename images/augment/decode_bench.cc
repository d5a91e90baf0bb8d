// How fast JPEGs become samples: images per second for the full decode, for decoding what a
// RandomResizedCrop(224) needs, and for the whole pipeline with resize and flip.
//
//   ./bazelw run //images/augment:decode_bench -- /data/imagenet-sample-100.tar [THREADS [SECONDS [NAME]]]
//
// The argument is a folder, read recursively, or an archive. The measurements alternate, five runs
// each, so that other load on the machine affects all of them equally. Prints medians of images per
// second and of images per second of CPU time, which other load disturbs less. NAME selects the
// measurements whose names contain it.
#include <archive.h>
#include <archive_entry.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "images/augment/crop.h"
#include "images/augment/pixel_pipeline.h"
#include "images/codecs/decode.h"
#include "images/pixels/pixel_output.h"
#include "images/probe/probe.h"
#include "images/resize/resize.h"

namespace shardpack {
namespace {

struct EncodedImage {
  std::vector<std::byte> bytes;
  ImageInfo info;
};

void AddImage(std::vector<std::byte> bytes, std::vector<EncodedImage>* images) {
  const ProbeResult probe = ProbeImage(bytes, {});
  if (probe.verdict == ProbeVerdict::kOk) images->push_back({std::move(bytes), probe.info});
}

std::vector<EncodedImage> LoadFolder(const std::string& path) {
  std::vector<EncodedImage> images;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    const auto view = std::as_bytes(std::span(bytes));
    AddImage({view.begin(), view.end()}, &images);
  }
  return images;
}

std::vector<EncodedImage> LoadArchive(const std::string& path) {
  std::vector<EncodedImage> images;
  archive* reader = archive_read_new();
  archive_read_support_filter_all(reader);
  archive_read_support_format_all(reader);
  if (archive_read_open_filename(reader, path.c_str(), 1 << 16) == ARCHIVE_OK) {
    for (archive_entry* entry; archive_read_next_header(reader, &entry) == ARCHIVE_OK;) {
      std::vector<std::byte> bytes(static_cast<size_t>(archive_entry_size(entry)));
      const auto got = archive_read_data(reader, bytes.data(), bytes.size());
      if (got == static_cast<la_ssize_t>(bytes.size())) AddImage(std::move(bytes), &images);
    }
  }
  archive_read_free(reader);
  return images;
}

using Work = std::function<absl::Status(const EncodedImage&, uint64_t id)>;

struct Rate {
  double by_clock = 0, by_processor = 0;  // images per second
};

double ThreadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// `make` creates the work function of one thread.
Rate Measure(const std::vector<EncodedImage>& images, int threads, double seconds,
             const std::function<Work()>& make) {
  using Clock = std::chrono::steady_clock;
  std::atomic<uint64_t> next = 0, failed = 0;
  std::atomic<bool> stop = false;
  std::vector<double> processor(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  const auto start = Clock::now();
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      const Work work = make();
      const double from = ThreadSeconds();
      while (!stop.load(std::memory_order_relaxed)) {
        const uint64_t id = next.fetch_add(1, std::memory_order_relaxed);
        if (!work(images[id % images.size()], id).ok()) ++failed;
      }
      processor[static_cast<size_t>(i)] = ThreadSeconds() - from;
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& worker : workers) worker.join();
  if (failed > 0) std::printf("%lu images failed\n", static_cast<unsigned long>(failed));
  const double count = static_cast<double>(next);
  return {count / std::chrono::duration<double>(Clock::now() - start).count(),
          count / std::accumulate(processor.begin(), processor.end(), 0.0)};
}

Work FullDecode() {
  return [decoder = std::make_shared<ImageDecoder>()](const EncodedImage& image, uint64_t) {
    return decoder->Decode(image.bytes, image.info, {.orient = false}).status();
  };
}

// What the pipeline decodes of an image whose orientation is 1.
DecodeOptions RegionOf(const CropOptions& crop, const ImageInfo& info, uint64_t id) {
  const PixelBox box = ChooseCrop(crop, info.width, info.height, {1, 0, id}).box;
  DecodeOptions options;
  options.region = {static_cast<uint32_t>(box.left), static_cast<uint32_t>(box.top),
                    static_cast<uint32_t>(box.right - box.left),
                    static_cast<uint32_t>(box.bottom - box.top)};
  options.min_width = crop.width;
  options.min_height = crop.height;
  options.orient = false;
  return options;
}

Work RegionDecode(bool fast) {
  return [=, decoder = std::make_shared<ImageDecoder>()](const EncodedImage& image, uint64_t id) {
    DecodeOptions options = RegionOf(CropOptions(), image.info, id);
    options.fast = fast;
    return decoder->Decode(image.bytes, image.info, options).status();
  };
}

Work Pipeline(const PixelPipelineOptions& options) {
  auto made = PixelPipeline::Create(options);
  auto pipeline = std::make_shared<PixelPipeline>(*std::move(made));
  auto slot = std::make_shared<std::vector<std::byte>>(pipeline->output_bytes());
  return [=](const EncodedImage& image, uint64_t id) {
    return pipeline->Run(image.bytes, image.info, {1, 0, id}, slot->data());
  };
}

// Prints the difference between the fast and the accurate decode.
void PrintFastDifference(const std::vector<EncodedImage>& images) {
  ImageDecoder exact_decoder, fast_decoder;
  double sum = 0, squares = 0, values = 0;
  int largest = 0;
  for (const EncodedImage& image : images) {
    const auto exact = exact_decoder.Decode(image.bytes, image.info, {.orient = false});
    const auto fast = fast_decoder.Decode(image.bytes, image.info, {.orient = false, .fast = true});
    if (!exact.ok() || !fast.ok()) continue;
    for (uint32_t y = 0; y < exact->view.height; ++y) {
      for (uint32_t i = 0; i < exact->view.width * 3; ++i) {
        const int difference = std::abs(exact->view.Row(y)[i] - fast->view.Row(y)[i]);
        sum += difference;
        squares += difference * difference;
        largest = std::max(largest, difference);
      }
    }
    values += 3.0 * exact->view.width * exact->view.height;
  }
  std::printf("fast decode: differs by %.2f levels on average, %.2f root mean square, %d at most\n",
              sum / values, std::sqrt(squares / values), largest);
}

// Prints the difference between the pipeline and the same crop decoded at full scale, for crops
// that the pipeline decodes at 1/2 or less.
void PrintScaleDifference(const std::vector<EncodedImage>& images) {
  PixelPipelineOptions options;
  options.crop.width = options.crop.height = 112;
  auto pipeline = PixelPipeline::Create(options);
  std::vector<uint8_t> ours(pipeline->output_bytes()), exact(ours.size());
  const PixelOutput output({}, 3);
  ImageDecoder decoder;
  Resizer resizer;
  double sum = 0, values = 0;
  for (uint64_t id = 0; id < images.size(); ++id) {
    const EncodedImage& image = images[id];
    // The crop refers to the image as stored.
    if (image.info.orientation != 1) continue;
    DecodeOptions decode = RegionOf(options.crop, image.info, id);
    if (std::min(decode.region.width, decode.region.height) < 224) continue;
    decode.min_width = decode.min_height = 0;
    const auto full = decoder.Decode(image.bytes, image.info, decode);
    if (!full.ok() ||
        !resizer.Resize(full->view, full->box, {.width = 112, .height = 112}, output, exact.data())
             .ok()) {
      continue;
    }
    if (!pipeline->Run(image.bytes, image.info, {1, 0, id}, ours.data()).ok()) continue;
    for (size_t i = 0; i < ours.size(); ++i) sum += std::abs(ours[i] - exact[i]);
    values += static_cast<double>(ours.size());
  }
  std::printf("scaled decode, crops of 112: differs by %.2f levels on average\n", sum / values);
}

struct Row {
  const char* name;
  std::function<Work()> make;
  std::vector<double> rates = {}, processor_rates = {};
};

std::vector<Row> AllRows() {
  PixelPipelineOptions u8;
  u8.crop.flip_probability = 0.5;
  PixelPipelineOptions f32 = u8, fast = u8, lanczos = u8, center = u8;
  f32.output = {.type = PixelType::kF32, .layout = PixelLayout::kNchw};
  fast.fast = true;
  lanczos.filter = ResizeFilter::kLanczos;
  center.crop.kind = CropKind::kCenter;
  return {
      {"full decode", FullDecode},
      {"region and scale only", [] { return RegionDecode(false); }},
      {"whole: crop 224, flip, u8", [=] { return Pipeline(u8); }},
      {"whole, f32 NCHW", [=] { return Pipeline(f32); }},
      {"whole, Lanczos", [=] { return Pipeline(lanczos); }},
      {"whole, center crop", [=] { return Pipeline(center); }},
      {"region only, fast", [] { return RegionDecode(true); }},
      {"whole, fast", [=] { return Pipeline(fast); }},
  };
}

void PrintRows(std::vector<Row> rows) {
  for (Row& row : rows) {
    std::sort(row.rates.begin(), row.rates.end());
    std::sort(row.processor_rates.begin(), row.processor_rates.end());
    std::printf("%-28s %7.0f (%.0f to %.0f) %7.0f\n", row.name, row.rates[2], row.rates[0],
                row.rates[4], row.processor_rates[2]);
  }
  if (rows.size() < 3) return;
  std::printf("whole / region only: %.3f, of processor time %.3f\n",
              rows[2].rates[2] / rows[1].rates[2],
              rows[2].processor_rates[2] / rows[1].processor_rates[2]);
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: decode_bench FOLDER|ARCHIVE [THREADS [SECONDS [NAME]]]\n");
    return 2;
  }
  const std::vector<EncodedImage> images =
      std::filesystem::is_directory(argv[1]) ? LoadFolder(argv[1]) : LoadArchive(argv[1]);
  if (images.empty()) {
    std::fprintf(stderr, "decode_bench: no images in %s\n", argv[1]);
    return 1;
  }
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  const double seconds = argc > 3 ? std::atof(argv[3]) : 1;
  const std::string name = argc > 4 ? argv[4] : "";
  std::vector<Row> rows = AllRows();
  std::erase_if(rows, [&](const Row& row) {
    return std::string_view(row.name).find(name) == std::string_view::npos;
  });
  for (int round = 0; round < 5; ++round) {
    for (Row& row : rows) {
      const Rate rate = Measure(images, threads, seconds, row.make);
      row.rates.push_back(rate.by_clock);
      row.processor_rates.push_back(rate.by_processor);
    }
  }
  std::printf(
      "%zu images, %d threads: images per second, median (least to most); of processor time\n",
      images.size(), threads);
  PrintRows(std::move(rows));
  if (!name.empty()) return 0;
  PrintFastDifference(images);
  PrintScaleDifference(images);
  return 0;
}

}  // namespace
}  // namespace shardpack

int main(int argc, char** argv) { return shardpack::Main(argc, argv); }
