#include "cuda/jpeg/jpeg_decoder.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuda/jpeg/decode_balance.h"
#include "cuda/jpeg/decode_choice.h"
#include "cuda/jpeg/decode_streams.h"
#include "cuda/jpeg/jpeg_engines.h"
#include "cuda/jpeg/jpeg_worker.h"
#include "cuda/jpeg/nvjpeg_backends.h"
#include "cuda/jpeg/nvjpeg_memory.h"
#include "cuda/jpeg/worker_threads.h"
#include "formats/io/status_macros.h"
#include "images/pixels/orientation.h"
#include "images/probe/marker_scan.h"

namespace shardpack {
namespace {

// Whether the three components of a JPEG are red, green and blue themselves, by libjpeg's rules
// (its default_decompress_parms): nvJPEG would take them for YCbCr.
bool IsRgbCoded(std::span<const std::byte> file) {
  const auto at = [&](size_t i) { return static_cast<uint32_t>(file[i]); };
  std::optional<bool> by_adobe;
  bool by_names = false;
  for (size_t i = 2; i + 4 <= file.size() && at(i) == 0xFF;) {
    const uint32_t marker = at(i + 1);
    if (marker == 0xFF) {  // fill
      ++i;
      continue;
    }
    const size_t length = at(i + 2) << 8 | at(i + 3);
    if (marker == 0xDA || length < 2 || length > file.size() - i - 2) break;
    const auto begins = [&](const char* text, size_t size) {
      return length >= 2 + size && std::memcmp(file.data() + i + 4, text, size) == 0;
    };
    if (marker == 0xE0 && begins("JFIF", 5)) return false;
    if (marker == 0xEE && length >= 14 && begins("Adobe", 5)) by_adobe = at(i + 15) == 0;
    const bool frame = marker >= 0xC0 && marker <= 0xCF && marker % 4 != 0;
    if ((frame || marker == 0xC0) && length >= 17 && at(i + 9) == 3) {
      by_names = at(i + 10) == 'R' && at(i + 13) == 'G' && at(i + 16) == 'B';
    }
    i += 2 + length;
  }
  return by_adobe.value_or(by_names);
}

// Arithmetic codes, which nvJPEG does not know: by the kind of the frame (ITU-T T.81, table B.1).
bool IsArithmetic(std::span<const std::byte> file) {
  const auto at = [&](size_t i) { return static_cast<uint32_t>(file[i]); };
  for (size_t i = 2; i + 4 <= file.size() && at(i) == 0xFF;) {
    const uint32_t marker = at(i + 1);
    if (marker == 0xFF) {  // fill
      ++i;
      continue;
    }
    if (marker >= 0xC9 && marker <= 0xCF && marker != 0xCC) return true;
    if (marker == 0xDA) break;
    i += 2 + (at(i + 2) << 8 | at(i + 3));
  }
  return false;
}

// Whether the file ends as a JPEG does, up to a few more bytes: the engines decode a truncated file
// to an image whose rest is gray, and report no error.
bool HasEnd(std::span<const std::byte> file) {
  constexpr size_t kLooseBytes = 32;
  const auto tail = file.last(std::min(file.size(), kLooseBytes));
  constexpr std::array kEnd = {std::byte{0xFF}, std::byte{0xD9}};
  return std::search(tail.begin(), tail.end(), kEnd.begin(), kEnd.end()) != tail.end();
}

// A progressive JPEG may have thousands of scans, each a pass over all its coefficients; the CPU's
// decoder refuses those. Anything that looks like a scan is counted.
bool HasManyScans(const JpegImage& image, uint32_t max_scans) {
  if (!image.info.progressive()) return false;
  const std::span<const std::byte> file = image.file;
  uint32_t scans = 0;
  for (size_t at = FindJpegMarker(file, 2); at + 1 < file.size() && scans <= max_scans;
       at = FindJpegMarker(file, at + 2)) {
    scans += file[at + 1] == std::byte{0xDA};
  }
  return scans > max_scans;
}

using Clock = std::chrono::steady_clock;

double MicrosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

bool IsForNvjpeg(const JpegImage& image, const JpegDecoderOptions& options) {
  const ImageInfo& info = image.info;
  return info.format == ImageFormat::kJpeg && info.bits_per_channel == 8 && !info.truncated() &&
         (info.color_space == ColorSpace::kGray || info.color_space == ColorSpace::kRgb) &&
         !(options.orient && info.orientation != 1) && HasEnd(image.file) &&
         !IsRgbCoded(image.file) && !IsArithmetic(image.file) &&
         !HasManyScans(image, options.max_scans);
}

}  // namespace

absl::StatusOr<ImageInfo> CheckImage(std::span<const std::byte> file, const ImageInfo& info,
                                     uint64_t max_pixels) {
  absl::StatusOr<ImageInfo> known = KnownImageInfo(file, info, max_pixels);
  if (!known.ok()) return known;
  if (known->width == 0 || known->height == 0) {
    return absl::InvalidArgumentError("an image without pixels");
  }
  if (uint64_t{known->width} * known->height > max_pixels) {
    return absl::ResourceExhaustedError(
        absl::StrCat(known->width, "x", known->height, " is more than ", max_pixels, " pixels"));
  }
  return known;
}

PixelRegion RoomFor(const ImageInfo& info, const PixelRegion& region) {
  // A chroma sample is of up to four pixels, and its neighbours are used.
  constexpr uint32_t kAround = 4, kBlock = 16;
  const auto begin = [](uint32_t first) {
    return first < kAround ? 0 : (first - kAround) / kBlock * kBlock;
  };
  const auto end = [](uint32_t last, uint32_t size) {
    const uint64_t blocks = (uint64_t{last} + kAround + kBlock - 1) / kBlock;
    return static_cast<uint32_t>(std::min<uint64_t>(blocks * kBlock, size));
  };
  PixelRegion room = {begin(region.left), begin(region.top), 0, 0};
  room.width = end(region.left + region.width, info.width) - room.left;
  room.height = end(region.top + region.height, info.height) - room.top;
  if (room.width == info.width && room.height == info.height) return {};
  return room;
}

PixelRegion PartOf(const JpegImage& image) {
  if (!image.room.empty()) return image.room;
  return {0, 0, image.info.width, image.info.height};
}

size_t OutBytesOf(const JpegImage& image) { return image.pitch_bytes * PartOf(image).height; }

JpegSize SizeOf(const ImageInfo& info, bool orient) {
  const bool turned = orient && OrientationOf(info.orientation).transpose;
  return turned ? JpegSize{info.height, info.width} : JpegSize{info.width, info.height};
}

class JpegDecoder::Impl {
 public:
  Impl(const NvjpegFunctions* functions, Device& device, const JpegDecoderOptions& options)
      : device_(device),
        options_(options),
        memory_(device, options.nvjpeg_bytes),
        streams_(device, static_cast<size_t>(std::max(options.threads, 1))),
        engines_(functions, device, options, memory_),
        threads_([&device] { return device.EnterThread(); }) {
    HybridSource hybrid = {functions, absl::UnimplementedError("no nvJPEG"), &memory_};
    if (functions != nullptr) {
      hybrid.handle = options.use_hybrid ? NvjpegHybrid::MakeHandle(*functions, memory_)
                                         : absl::UnimplementedError("not asked for");
    }
    for (int i = 0; i < std::max(options.threads, 1); ++i) {
      workers_.push_back(std::make_unique<JpegWorker>(hybrid, device_, options_));
    }
    workers_.front()->MakeHybrid();  // says for all whether there is one
    if (!options.choose) return;
    std::vector<DecodeWay> ways;
    const auto add = [&](JpegWay way) {
      if (options.regions && RegionsOf(way).may_be_usable()) ways.push_back({way, true});
      ways.push_back({way, false});
    };
    if (engines_.usable()) add(JpegWay::kHardware);
    if (has_hybrid()) add(JpegWay::kHybrid);
    ways.push_back({JpegWay::kCpu, options.regions});
    choice_.emplace(ways);
  }

  ~Impl() {
    if (!device_.lost()) (void)WaitUntilIdle(std::chrono::seconds(1));
  }
  bool WaitUntilIdle(std::chrono::milliseconds patience) const {
    return streams_.WaitUntilIdle(patience);
  }

  absl::Status Decode(std::span<const JpegImage> images, Stream stream,
                      std::span<JpegResult> results) {
    if (images.size() != results.size()) {
      return absl::InvalidArgumentError("as many results as images");
    }
    const bool measures = choice_ && choice_->measures();
    const double begin_us = measures ? NowUs() : 0;
    const DecodeWay first_way = Way();
    engines_.BeginBatch();
    known_.assign(images.begin(), images.end());
    // The results if the device fails before they are decoded.
    for (JpegResult& result : results) result = {absl::UnknownError("not decoded"), JpegWay::kNone};
    absl::Status decoded = Try(known_, stream);
    if (decoded.ok()) decoded = Sort(first_way.way, results);
    const size_t count = engine_batch_.size() + worker_batch_.size();
    if (decoded.ok()) decoded = DecodeSorted(stream, results);
    engines_.EndBatch();
    // After a failure too: part of it may be under way.
    const absl::Status joined = streams_.Join(stream);
    if (decoded.ok()) decoded = joined;
    if (decoded.ok() && measures && WaitUntilDecoded(stream)) {
      if (first_way.regions && !RegionsOf(first_way.way).may_be_usable()) {
        choice_->Refuse();  // in this batch
      } else {
        choice_->Note(count, NowUs() - begin_us);
      }
    }
    return decoded;
  }

  absl::Status TryRegions(std::span<const JpegImage> images, Stream stream) {
    const DecodeWay way = Way();
    RETURN_IF_ERROR(Try(images, stream));
    const bool refused = way.regions && !RegionsOf(way.way).may_be_usable();
    if (choice_ && choice_->measures() && refused) choice_->Refuse();
    return absl::OkStatus();
  }

  bool takes_rooms() const {
    if (!options_.regions) return false;
    if (choice_) return choice_->way().regions;
    if (engines_.usable()) return engines_.regions().may_be_usable();
    return !has_hybrid() || hybrid_regions_.may_be_usable();
  }

  absl::Status DecodeSkipped(const JpegImage& image, std::span<const size_t> unpainted,
                             Stream stream, JpegResult* result, bool* skipped) {
    RETURN_IF_ERROR(workers_.front()->DecodeSkipped(image, unpainted, stream, result, skipped));
    if (*skipped) engines_.NoteSkipped(image);
    return absl::OkStatus();
  }

  bool has_hardware() const { return engines_.usable(); }
  bool may_use_hardware() const {
    const bool others = choice_ && !choice_->measures() && choice_->way().way != JpegWay::kHardware;
    return engines_.usable() && !others;
  }
  bool has_hybrid() const { return workers_.front()->has_hybrid(); }
  std::string backends() const {
    return absl::StrCat("hardware: ", engines_.Describe(),
                        "; hybrid: ", has_hybrid() ? "yes" : workers_.front()->why_no_hybrid());
  }
  JpegDecoderStats stats() const {
    JpegDecoderStats sum = engines_.stats();
    sum.hardware -= sum.skipped;  // the CPU did those
    sum.engine_us = rates_.engine_us;
    sum.lane_us = rates_.lane_us;
    if (choice_) sum.choice = choice_->Describe();
    if (options_.regions) sum.why_whole = WhyWhole();
    sum.failed += failed_;
    sum.nvjpeg_bytes = memory_.device_bytes();
    sum.nvjpeg_pinned_bytes = memory_.pinned_bytes();
    sum.nvjpeg_refusals = memory_.refusals();
    for (const auto& worker : workers_) {
      const JpegDecoderStats& one = worker->stats();
      sum.hybrid += one.hybrid;
      sum.cpu += one.cpu;
      sum.regions += one.regions;
      sum.failed += one.failed;
      sum.refused += one.refused;
      sum.without_nvjpeg += one.without_nvjpeg;
      sum.pageable += one.pageable;
      if (sum.first_refusal.empty()) sum.first_refusal = one.first_refusal;
    }
    return sum;
  }

 private:
  struct WorkerItem {
    size_t image;
    bool for_nvjpeg;
  };
  // Of an image before it is decoded: why it cannot be, or who may.
  struct Verdict {
    absl::Status status;
    bool for_nvjpeg = false, for_engines = false;
  };

  // The CPU's are always usable.
  const RegionVerdict& RegionsOf(JpegWay way) const {
    static const RegionVerdict usable = {true, ""};
    if (way == JpegWay::kHardware) return engines_.regions();
    return way == JpegWay::kHybrid ? hybrid_regions_ : usable;
  }
  std::string WhyWhole() const {
    std::string text;
    const auto add = [&](const char* name, const std::string& why) {
      if (!why.empty()) absl::StrAppend(&text, text.empty() ? "" : "; ", name, ": ", why);
    };
    add("hardware", engines_.regions().why_not);
    add("hybrid", hybrid_regions_.why_not);
    return text;
  }

  DecodeWay Way() const { return choice_ ? choice_->way() : DecodeWay{}; }

  // What is to be known before images with a room are dealt: whether nvJPEG gets them.
  absl::Status Try(std::span<const JpegImage> images, Stream stream) {
    if (!options_.regions) return absl::OkStatus();
    const JpegWay way = Way().way;
    const bool engines = way == JpegWay::kHardware && engines_.usable();
    const bool try_engines = engines && !engines_.regions().known;
    const bool try_hybrid = way != JpegWay::kCpu && has_hybrid() && !hybrid_regions_.known;
    if (!try_engines && !try_hybrid) return absl::OkStatus();
    std::vector<JpegImage> candidates;
    for (const JpegImage& one : images) {
      if (one.room.empty()) continue;
      JpegImage image = one;
      if (Identify(&image).ok() && IsForNvjpeg(image, options_)) candidates.push_back(image);
    }
    if (candidates.empty()) return absl::OkStatus();
    absl::Status tried;
    if (try_engines) tried = engines_.TryRegions(candidates, streams_.engines(stream));
    if (try_hybrid && tried.ok()) {
      tried = workers_.front()->TryRegions(candidates, streams_.lane(0, stream), hybrid_regions_);
    }
    // After a failure too: part of it may be under way.
    const absl::Status joined = streams_.Join(stream);
    return tried.ok() ? joined : tried;
  }

  double NowUs() const {
    if (options_.now_us != nullptr) return options_.now_us();
    return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
  }
  // Waits until it is; false if that takes for ever. Without a sleep, whose length would be
  // measured too: there are few such batches.
  bool WaitUntilDecoded(Stream stream) const {
    const Clock::time_point deadline = Clock::now() + std::chrono::seconds(10);
    while (Clock::now() < deadline) {
      if (options_.stop != nullptr && options_.stop->load()) return false;
      const absl::StatusOr<bool> idle =
          streams_.empty() ? device_.IsIdle(stream) : streams_.AreIdle();
      if (!idle.ok() || *idle) return idle.ok();
      std::this_thread::yield();
    }
    return false;
  }

  // Parses the headers of all images, on all threads, and then deals them in their order.
  absl::Status Sort(JpegWay first_way, std::span<JpegResult> results) {
    verdicts_.assign(known_.size(), {});
    std::atomic<size_t> next{0};
    const size_t useful = (known_.size() + kFewestToParse - 1) / kFewestToParse;
    RETURN_IF_ERROR(threads_.Run(std::min(workers_.size(), useful), [&](size_t lane) {
      for (size_t i; (i = next.fetch_add(1)) < known_.size();)
        verdicts_[i] = Judge(&known_[i], first_way, lane);
      return absl::OkStatus();
    }));
    engine_batch_.clear();
    worker_batch_.clear();
    left_.clear();
    for (size_t i = 0; i < known_.size(); ++i) {
      Verdict& verdict = verdicts_[i];
      if (!verdict.status.ok()) {
        ++failed_;
        results[i] = {std::move(verdict.status), JpegWay::kNone};
      } else if (verdict.for_engines) {
        engine_batch_.push_back(i);
      } else {
        worker_batch_.push_back({i, verdict.for_nvjpeg});
      }
    }
    return absl::OkStatus();
  }

  // Changes nothing but the image.
  Verdict Judge(JpegImage* image, JpegWay first_way, size_t lane) const {
    Verdict verdict;
    verdict.status = Know(image);
    if (!verdict.status.ok()) return verdict;
    if (first_way != JpegWay::kCpu) image->min_width = image->min_height = 0;
    verdict.for_nvjpeg = first_way != JpegWay::kCpu && IsForNvjpeg(*image, options_);
    verdict.for_engines =
        verdict.for_nvjpeg && first_way == JpegWay::kHardware && engines_.Takes(*image, lane);
    return verdict;
  }

  // Fills in what is not known of the image and checks its output.
  absl::Status Know(JpegImage* image) const {
    RETURN_IF_ERROR(Identify(image));
    const uint32_t row =
        image->room.empty() ? SizeOf(image->info, options_.orient).width : image->room.width;
    if (image->out == nullptr || image->pitch_bytes < size_t{row} * options_.channels) {
      return absl::InvalidArgumentError("no room for the image");
    }
    return absl::OkStatus();
  }

  absl::Status Identify(JpegImage* image) const {
    const uint32_t width = image->info.width, height = image->info.height;
    ASSIGN_OR_RETURN(const ImageInfo known,
                     CheckImage(image->file, image->info, options_.max_pixels));
    image->info = known;
    if (known.width != width || known.height != height) {
      return absl::DataLossError(absl::StrCat("the image is ", known.width, "x", known.height,
                                              ", expected ", width, "x", height));
    }
    const PixelRegion &room = image->room, &region = image->region;
    if (room.empty()) return absl::OkStatus();
    const auto within = [](uint32_t first, uint32_t size, uint32_t from, uint32_t of) {
      return first >= from && size <= of && first - from <= of - size;
    };
    if (options_.orient || region.empty() || !within(room.left, room.width, 0, known.width) ||
        !within(room.top, room.height, 0, known.height) ||
        !within(region.left, region.width, room.left, room.width) ||
        !within(region.top, region.height, room.top, room.height)) {
      return absl::InvalidArgumentError("a room that is not for the region of the image");
    }
    return absl::OkStatus();
  }

  absl::Status ByWorker(size_t worker, size_t image, bool for_nvjpeg, Stream stream,
                        std::span<JpegResult> results) {
    const bool can = known_[image].room.empty() || !has_hybrid() || hybrid_regions_.usable();
    return workers_[worker]->Decode(known_[image], for_nvjpeg && can, streams_.lane(worker, stream),
                                    &results[image]);
  }

  absl::Status DecodeSorted(Stream stream, std::span<JpegResult> results) {
    if (workers_.size() > 1 && options_.share && !engine_batch_.empty())
      return BySharing(stream, results);
    // The engines first: the CPU works while they do.
    RETURN_IF_ERROR(ByEngines({0, engine_batch_.size()}, stream, results));
    return ByWorkers(stream, results);
  }

  // Of engine_batch_; what they do not decode is the workers'.
  absl::Status ByEngines(DecodeBalance::Chunk chunk, Stream stream, std::span<JpegResult> results) {
    std::vector<const JpegImage*> images;
    for (size_t k = chunk.begin; k < chunk.end; ++k) images.push_back(&known_[engine_batch_[k]]);
    std::vector<bool> decoded;
    RETURN_IF_ERROR(engines_.Decode(images, streams_.engines(stream), decoded));
    for (size_t k = 0; k < images.size(); ++k) {
      const size_t i = engine_batch_[chunk.begin + k];
      if (decoded[k]) {
        results[i] = {absl::OkStatus(), JpegWay::kHardware};
      } else {
        left_.push_back({i, true});
      }
    }
    return absl::OkStatus();
  }

  // The rest, after the engines.
  absl::Status ByWorkers(Stream stream, std::span<JpegResult> results) {
    // A batch that the engines refuse they may have begun, and still write to.
    if (!left_.empty()) RETURN_IF_ERROR(streams_.PutLanesBehindEngines());
    worker_batch_.insert(worker_batch_.end(), left_.begin(), left_.end());
    left_.clear();
    std::atomic<size_t> next{0};
    return threads_.Run(std::min(workers_.size(), worker_batch_.size()), [&](size_t worker) {
      absl::Status end = WorkThrough(worker, next, stream, results);
      if (!end.ok()) next.store(worker_batch_.size());
      return end;
    });
  }

  // What only the CPU takes first, then images of the engines from the last one on.
  absl::Status BySharing(Stream stream, std::span<JpegResult> results) {
    const uint64_t batch = shared_batches_++;
    const bool probe = batch % kProbeEvery == kProbeEvery - 1;
    DecodeBalance balance(engine_batch_.size(), workers_.size(), rates_, probe);
    // Small batches end before the engines' first chunks have: a few of them are waited for.
    const bool measure = batch > 0 && (probe || rates_.engine_us == 0);
    std::atomic<size_t> next{0};
    const absl::Status ended = threads_.Run(workers_.size() + 1, [&](size_t thread) {
      absl::Status end = thread == 0 ? FeedEngines(balance, measure, stream, results)
                                     : WorkThrough(thread - 1, next, stream, results);
      if (thread > 0 && end.ok()) end = Share(thread - 1, balance, stream, results);
      if (!end.ok()) next.store(worker_batch_.size());
      return end;
    });
    if (batch > 0) rates_ = balance.rates();  // the first one allocates, and is compared
    RETURN_IF_ERROR(ended);
    // Of lanes for which there was no thread.
    balance.EndEngines();
    while (const std::optional<size_t> k = balance.TakeOne())
      left_.push_back({engine_batch_[*k], true});
    worker_batch_.erase(worker_batch_.begin(),
                        worker_batch_.begin() +
                            static_cast<ptrdiff_t>(std::min(next.load(), worker_batch_.size())));
    return ByWorkers(stream, results);
  }

  absl::Status FeedEngines(DecodeBalance& balance, bool measure, Stream stream,
                           std::span<JpegResult> results) {
    if (measure) RETURN_IF_ERROR(engines_.Wait());  // for earlier batches
    const Clock::time_point begin = Clock::now();
    std::vector<size_t> sizes;
    size_t done = 0;
    for (;;) {
      const DecodeBalance::Chunk chunk = balance.TakeChunk();
      if (chunk.empty()) break;
      absl::Status status = ByEngines(chunk, stream, results);
      if (!status.ok() || engines_.refuse_all()) balance.EndEngines();
      RETURN_IF_ERROR(status);
      // It had to wait for the place of an earlier one, which has been decoded.
      sizes.push_back(chunk.size());
      const size_t under_way = std::max(options_.hardware_batches, 1u);
      if (sizes.size() <= under_way) continue;
      done += sizes[sizes.size() - 1 - under_way];
      balance.NoteEngines(done, MicrosecondsSince(begin));
    }
    if (!measure) return absl::OkStatus();
    RETURN_IF_ERROR(engines_.Wait());
    balance.NoteEngines(std::accumulate(sizes.begin(), sizes.end(), size_t{0}),
                        MicrosecondsSince(begin));
    return absl::OkStatus();
  }

  absl::Status Share(size_t worker, DecodeBalance& balance, Stream stream,
                     std::span<JpegResult> results) {
    while (const std::optional<size_t> k = balance.TakeOne()) {
      workers_[worker]->MakeHybrid();
      const JpegDecoderStats& stats = workers_[worker]->stats();
      const bool allocates = stats.hybrid + stats.cpu == 0;
      const Clock::time_point begin = Clock::now();
      RETURN_IF_ERROR(ByWorker(worker, engine_batch_[*k], true, stream, results));
      if (!allocates) balance.NoteLane(MicrosecondsSince(begin));
    }
    return absl::OkStatus();
  }

  // Each worker takes the next image when it is done with one.
  absl::Status WorkThrough(size_t worker, std::atomic<size_t>& next, Stream stream,
                           std::span<JpegResult> results) {
    for (size_t k; (k = next.fetch_add(1)) < worker_batch_.size();) {
      const WorkerItem& item = worker_batch_[k];
      RETURN_IF_ERROR(ByWorker(worker, item.image, item.for_nvjpeg, stream, results));
    }
    return absl::OkStatus();
  }

  Device& device_;
  const JpegDecoderOptions options_;
  NvjpegMemory memory_;
  DecodeStreams streams_;  // outlive what decodes on them
  JpegEngines engines_;
  std::vector<std::unique_ptr<JpegWorker>> workers_;  // at least one
  WorkerThreads threads_;                             // end before what they use
  static constexpr uint64_t kProbeEvery = 32;         // shared batches
  static constexpr size_t kFewestToParse = 8;         // images that are worth waking a thread
  DecodeRates rates_;
  RegionVerdict hybrid_regions_;
  std::optional<DecodeChoice> choice_;
  uint64_t shared_batches_ = 0;
  uint64_t failed_ = 0;  // before anybody decoded them
  // For one call.
  std::vector<JpegImage> known_;
  std::vector<Verdict> verdicts_;  // of known_
  std::vector<size_t> engine_batch_;
  std::vector<WorkerItem> worker_batch_, left_;  // left_: by the engines
};

JpegDecoder::JpegDecoder(const NvjpegFunctions* functions, Device& device,
                         const JpegDecoderOptions& options)
    : impl_(std::make_unique<Impl>(functions, device, options)) {}
JpegDecoder::~JpegDecoder() = default;

absl::Status JpegDecoder::Decode(std::span<const JpegImage> images, Stream stream,
                                 std::span<JpegResult> results) {
  return impl_->Decode(images, stream, results);
}
absl::Status JpegDecoder::DecodeSkipped(const JpegImage& image, std::span<const size_t> unpainted,
                                        Stream stream, JpegResult* result, bool* skipped) {
  return impl_->DecodeSkipped(image, unpainted, stream, result, skipped);
}
bool JpegDecoder::WaitUntilIdle(std::chrono::milliseconds patience) const {
  return impl_->WaitUntilIdle(patience);
}
bool JpegDecoder::has_hardware() const { return impl_->has_hardware(); }
absl::Status JpegDecoder::TryRegions(std::span<const JpegImage> images, Stream stream) {
  return impl_->TryRegions(images, stream);
}
bool JpegDecoder::takes_rooms() const { return impl_->takes_rooms(); }
bool JpegDecoder::may_use_hardware() const { return impl_->may_use_hardware(); }
bool JpegDecoder::has_hybrid() const { return impl_->has_hybrid(); }
std::string JpegDecoder::backends() const { return impl_->backends(); }
JpegDecoderStats JpegDecoder::stats() const { return impl_->stats(); }

}  // namespace shardpack
