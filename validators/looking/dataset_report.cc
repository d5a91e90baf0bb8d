#include "validators/looking/dataset_report.h"

#include <tbb/task_arena.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/io/resources.h"
#include "formats/io/status_macros.h"
#include "validators/looking/contact_sheet.h"
#include "validators/looking/copies_report.h"
#include "validators/looking/dataset_stats.h"
#include "validators/looking/html_writer.h"
#include "validators/looking/report_parts.h"
#include "validators/looking/report_pictures.h"
#include "validators/looking/report_sections.h"
#include "validators/looking/report_style.h"

namespace shardpack {
namespace {

using namespace report_sections;  // NOLINT: these are its parts

// Nothing may be loaded and no script run, whatever the names in the page.
constexpr char kPolicy[] = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
constexpr char kGenerator[] = "pack report";
// Room for the words above the pictures, and for their mean.
constexpr uint64_t kReserveBytes = 8192;

std::string Written(const auto& write) {
  HtmlWriter page;
  write(page);
  return std::move(page).Take();
}

void WriteTop(HtmlWriter& page, const std::string& name) {
  page.Open("head");
  page.Empty("meta", {{"charset", "utf-8"}});
  page.Empty("meta", {{"name", "generator"}, {"content", kGenerator}});
  page.Empty("meta", {{"http-equiv", "Content-Security-Policy"}, {"content", kPolicy}});
  page.Empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  page.Element("title", absl::StrCat(name.empty() ? "dataset" : Shortened(name), " - shardpack"));
  page.Open("style");
  page.Trusted(kReportStyle);
  page.Close();
  page.Close();
  page.NewLine();
}

// `sections`: what HtmlWriters have written.
std::string Page(const std::string& name, const std::vector<std::string>& sections) {
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\">\n";
  html += Written([&](HtmlWriter& page) { WriteTop(page, name); });
  html += "<body>\n<main>\n";
  for (const std::string& section : sections) html += section;
  html += "</main>\n";
  html += Written([](HtmlWriter& page) {
    page.Open("footer");
    page.Element("p",
                 "Written by pack report. Sizes are pixels as stored, before an EXIF "
                 "orientation is applied; shares are those of all samples.",
                 {{"class", "soft"}});
    page.Close();
  });
  return html + "\n</body>\n</html>\n";
}

absl::Status TooLarge(uint64_t bytes, uint64_t most) {
  return absl::InvalidArgumentError(absl::StrCat("the page takes ", bytes,
                                                 " bytes without any picture, more than the ", most,
                                                 " of --max-bytes"));
}

// What is odd about the pictures; nothing if all images were `decoded`, of which there are notes.
std::vector<StatsNote> NotesOf(const ContactSheet& sheet, bool decoded) {
  StatsNote broken{.kind = NoteKind::kUndecodableImage}, huge{.kind = NoteKind::kHugeImage},
      plain{.kind = NoteKind::kPlainImage};
  for (const SheetRow& row : sheet.rows) {
    for (const SheetPicture& picture : row.pictures) {
      const Thumbnail& thumbnail = picture.thumbnail;
      if (thumbnail.unread || (!thumbnail.uri.empty() && !thumbnail.plain)) continue;
      StatsNote& note = thumbnail.huge ? huge : thumbnail.uri.empty() ? broken : plain;
      if (++note.count <= StatsNote::kMostNames) note.names.push_back(Shortened(picture.key, 60));
    }
  }
  std::vector<StatsNote> notes;
  for (StatsNote* note : {&broken, &huge, &plain}) {
    if (note->count > 0 && !decoded) notes.push_back(std::move(*note));
  }
  return notes;
}

// The page, given what is in it.
class Report {
 public:
  Report(const Dataset& dataset, const ReportOptions& options, const DatasetStats& stats,
         const CopiesReport* copies)
      : dataset_(dataset), options_(options), stats_(stats), copies_(copies) {
    head_ = Written([&](HtmlWriter& page) {
      WriteHead(page, options.name, stats);
      WriteDamage(page, stats, copies);
      if (options.validation) WriteValidation(page, *options.validation, stats.identity);
    });
    numbers_ = Written([&](HtmlWriter& page) {
      WriteClasses(page, stats);
      WriteSizes(page, stats);
    });
    after_ = Written([&](HtmlWriter& page) {
      WriteSkipped(page, stats);
      WriteShards(page, stats);
      WriteFacts(page, stats, dataset.manifest());
    });
  }

  absl::StatusOr<DatasetReport> Make() const;

 private:
  // `budget_bytes`: of pictures.
  std::string Copies(uint64_t budget_bytes) const {
    return Written([&](HtmlWriter& page) {
      copies_ != nullptr ? WriteCopies(page, *copies_, budget_bytes)
                         : WriteNoCopies(page, options_.near);
    });
  }
  std::string Pictures(const ContactSheet& sheet) const;
  std::string All(const ContactSheet& sheet, const std::string& copies) const {
    const bool decoded = copies_ != nullptr && options_.near;
    const std::string notes =
        Written([&](HtmlWriter& page) { WriteNotes(page, stats_, NotesOf(sheet, decoded)); });
    return Page(options_.name, {head_, notes, numbers_, Pictures(sheet), copies, after_});
  }

  const Dataset& dataset_;
  const ReportOptions& options_;
  const DatasetStats& stats_;
  const CopiesReport* const copies_;  // none if they were not looked for
  std::string head_, numbers_, after_;
};

std::string Report::Pictures(const ContactSheet& sheet) const {
  const absl::StatusOr<Thumbnail> mean = ThumbnailMaker().OfMean(sheet.mean);
  const std::vector<std::string> classes(dataset_.classes().begin(), dataset_.classes().end());
  return Written([&](HtmlWriter& page) {
    if (sheet.rows.empty() && options_.thumbs > 0 && stats_.samples > 0) {
      WriteNoSheet(page);
    } else {
      WriteSheet(page, sheet, mean.ok() ? *mean : Thumbnail(), classes);
    }
  });
}

absl::StatusOr<DatasetReport> Report::Make() const {
  std::string bare = All({}, Copies(0));
  if (bare.size() > options_.max_bytes) return TooLarge(bare.size(), options_.max_bytes);
  uint64_t left = options_.max_bytes - bare.size();
  left -= std::min(left, kReserveBytes);
  const std::string copies = Copies(options_.thumbs == 0 ? 0 : left / 4);
  left -= std::min<uint64_t>(left, copies.size());
  const ContactSheet sheet =
      MakeContactSheet(SampleRows({&dataset_, 1}), {.each = options_.thumbs, .budget_bytes = left});
  const bool damaged =
      stats_.damaged() || sheet.unread > 0 ||
      (copies_ != nullptr && (copies_->unread.count > 0 || copies_->near.damaged > 0));
  std::string html = All(sheet, copies);
  if (damaged) RETURN_IF_ERROR(dataset_.CheckNotReplaced());
  // The sizes of pictures are estimates.
  return DatasetReport{html.size() > options_.max_bytes ? std::move(bare) : std::move(html),
                       damaged};
}

absl::StatusOr<DatasetReport> Make(const Dataset& dataset, const ReportOptions& options,
                                   NearProgress& progress, const std::atomic<int>& stop) {
  ASSIGN_OR_RETURN(DatasetStats stats,
                   GatherStats(dataset, {.folder = options.folder,
                                         .in_spite_of_damage = true,
                                         .damaged_files = options.damaged_files}));
  std::optional<CopiesReport> copies;
  // Copies cannot be found where indexes are missing.
  if (stats.unread_shards == 0) {
    ASSIGN_OR_RETURN(
        copies,
        FindCopies({&dataset, 1},
                   {.near = options.near, .distance = options.distance, .jobs = options.jobs},
                   progress, stop));
  }
  if (stop.load() != 0) return absl::CancelledError("stopped");
  if (copies && options.near) AddDecodedNotes(copies->rows, copies->near, stats);
  return Report(dataset, options, stats, copies ? &*copies : nullptr).Make();
}

}  // namespace

absl::StatusOr<DatasetReport> MakeReport(const Dataset& dataset, const ReportOptions& options,
                                         NearProgress& progress, const std::atomic<int>& stop) {
  tbb::task_arena arena(options.jobs > 0 ? options.jobs : AvailableCores());
  return arena.execute([&] { return Make(dataset, options, progress, stop); });
}

bool IsReport(std::string_view beginning) {
  const std::string mark = Written([](HtmlWriter& page) {
    page.Empty("meta", {{"name", "generator"}, {"content", kGenerator}});
  });
  return beginning.substr(0, 1024).find(mark) != beginning.npos;
}

}  // namespace shardpack
