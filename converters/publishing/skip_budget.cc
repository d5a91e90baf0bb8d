#include "converters/publishing/skip_budget.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "converters/listing/first_few.h"
#include "converters/listing/labels.h"
#include "converters/listing/offered_flags.h"
#include "converters/listing/skip_answers.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/shard_results.h"
#include "formats/io/escape.h"

namespace shardpack {
namespace {

constexpr size_t kNamedSkips = 5, kNamedFolders = 3;

SkipShare ShareOf(const ManifestCounts& counts) {
  return {counts.skipped + counts.failed, counts.seen};
}

FlagWords OfferedShare(uint64_t percent) { return {"--max-skip", absl::StrCat(percent, "%")}; }

class Refusal {
 public:
  Refusal(const Plan& plan, std::span<const ShardResult> results, const ManifestCounts& counts,
          const CommitOptions& options, const OutputDir& out)
      : plan_(plan),
        results_(results),
        counts_(counts),
        share_(ShareOf(counts)),
        options_(options),
        out_(out) {
    for (const ShardResult& result : results) {
      if (result.records == 0) empty_.push_back(plan.shards()[result.shard].name);
    }
  }

  // The number of images in a folder that could not be listed is unknown.
  bool FolderLost() const { return !plan_.listing().unread_folders.empty(); }
  bool TooMany() const {
    return share_.lost > 0 && (!share_.Within(options_.max_skip) ||
                               (FolderLost() && options_.max_skip < 1) || counts_.packed == 0);
  }
  bool AnyEmpty() const { return !empty_.empty(); }
  bool PlanIsGiven() const { return options_.plan_is_given || out_.options().only_commit; }

  absl::Status Say(std::span<const Skip> skips) const {
    std::string text = TooMany() ? TooManyText(skips) : "";
    if (AnyEmpty() && counts_.packed > 0) {
      absl::StrAppend(&text, text.empty() ? "" : "\n", "every sample of shard ",
                      FirstFew(empty_, kNamedSkips), " was bad",
                      text.empty() ? "; nothing was published. Use larger shards, or fix the inputs"
                                   : ", and no share of skips publishes a shard without one");
    }
    absl::StrAppend(
        &text, counts_.packed == 0 ? "\nNo input is left to pack." : "\nFinished shards are kept.");
    return PlanIsGiven() ? OfGivenPlan(std::move(text)) : OfSource(std::move(text));
  }

 private:
  std::string TooManyText(std::span<const Skip> skips) const {
    std::string text = absl::StrCat(ShareText(), "; nothing was published.");
    for (const Skip& skip : skips.first(std::min(skips.size(), kNamedSkips)))
      absl::StrAppend(&text, "\n  ", SkipText(plan_.listing().Path(skip.row), skip));
    const std::string all = AllText(skips);
    if (skips.size() > kNamedSkips)
      absl::StrAppend(&text, "\n  ... and ", skips.size() - kNamedSkips, " more", all);
    const std::string answers = SkipAnswers(skips, PlanIsGiven());
    return answers.empty() ? text : absl::StrCat(text, "\n  ", answers);
  }

  // Without a list, all else that is to be said still is.
  std::string AllText(std::span<const Skip> skips) const {
    if (!out_.ReplaceInPack(kRefusedName, SkippedLines(plan_, skips)).ok()) return "";
    return absl::StrCat("; all: ", EscapeForTerminal(out_.PathOf(kRefusedName)));
  }

  std::string ShareText() const {
    const std::string lost = absl::StrFormat("%d of %d inputs cannot be packed (%.3g %%)",
                                             share_.lost, share_.seen, share_.share() * 100);
    const std::string allowed = absl::StrFormat("%.4g %% are allowed", options_.max_skip * 100);
    if (!FolderLost()) return absl::StrCat(lost, ", ", allowed);
    const std::vector<UnreadFolder>& folders = plan_.listing().unread_folders;
    const bool one = folders.size() == 1;
    std::vector<std::string> names;
    for (const UnreadFolder& folder : folders) names.push_back(folder.path);
    const bool links = std::all_of(folders.begin(), folders.end(),
                                   [](const UnreadFolder& folder) { return folder.is_link(); });
    return absl::StrCat(
        lost, ", among them ",
        links ? (one ? "a link in a folder's place that is not followed"
                     : "links in folders' places that are not followed")
              : (one ? "a folder that could not be listed" : "folders that could not be listed"),
        " (", FirstFew(names, kNamedFolders), "): nobody knows how many images ",
        one ? "it holds" : "they hold", ", so that no share but 100 % (", allowed,
        ") goes on without ", one ? "it" : "them");
  }

  bool LostBy(SkipReason reason) const {
    const std::vector<UnreadFolder>& folders = plan_.listing().unread_folders;
    return std::any_of(folders.begin(), folders.end(),
                       [&](const UnreadFolder& folder) { return folder.reason == reason; });
  }

  // What 100 % does.
  std::string WithoutFolders() const {
    const Listing& listing = plan_.listing();
    const UnreadClasses classes(listing);
    const bool known = listing.classes.empty() ||
                       std::all_of(listing.unread_folders.begin(), listing.unread_folders.end(),
                                   [&](const UnreadFolder& folder) {
                                     return classes.Of(folder) != UnreadClasses::Have::kNothing;
                                   });
    return absl::StrCat("go on without these inputs and folders",
                        known ? ""
                              : ": a class that has no other folder is then missing, and the "
                                "labels after it have other numbers");
  }

  FlagWords MaxSkip() const { return OfferedShare(FolderLost() ? 100 : share_.Percent()); }

  // A fixed input has another size, so the plan changes and every shard is packed again; or another
  // time, so only its shard is.
  absl::Status OfSource(std::string text) const {
    if (counts_.packed == 0) return absl::DataLossError(text);
    std::vector<FlagWords> ways = {out_.options().overwrite ? FlagWords()
                                                            : FlagWords{"--overwrite"}};
    if (!AnyEmpty()) ways.push_back(MaxSkip());
    if (!FolderLost()) std::reverse(ways.begin(), ways.end());
    const bool leaves = LostBy(SkipReason::kOutsideRoot);
    if (leaves) {
      FlagWords follow = {"--follow"};
      if (!out_.options().overwrite) follow.push_back("--overwrite");
      ways.insert(ways.begin(), std::move(follow));
    }
    const std::string fix =
        absl::StrCat(leaves ? " Pack what the links lead to, or fix the inputs" : " Fix the inputs",
                     leaves || LostBy(SkipReason::kDangling) ? " (or remove the links)" : "",
                     " and pack all again");
    absl::StrAppend(&text, AnyEmpty() ? fix
                           : FolderLost()
                               ? absl::StrCat(fix, ", or ", WithoutFolders())
                               : " Go on without these inputs, or fix them and pack all again");
    return OfferFlags(absl::DataLossError(text), ways);
  }

  absl::Status OfGivenPlan(std::string text) const {
    std::set<uint32_t> again;
    for (const ShardResult& result : results_) {
      if (LacksWhatMayBeBack(result)) again.insert(result.shard);
    }
    if (!again.empty()) {
      absl::StrAppend(
          &text,
          "\nOnce the inputs that are gone or have changed are as planned again, their shards ",
          out_.replaces()
              ? "are built again by the same command."
              : absl::StrCat("are built again.", HowToBuild(out_.path(), plan_, again)));
    }
    absl::StrAppend(&text,
                    "\nA plan does not change with its source: to pack that as it is now, make a "
                    "new plan with pack plan, and build it in another folder.");
    if (counts_.packed == 0 || AnyEmpty()) return absl::DataLossError(text);
    absl::StrAppend(&text, "\nOr ", FolderLost() ? WithoutFolders() : "go on without these inputs");
    return OfferFlags(absl::DataLossError(text), {MaxSkip()});
  }

  const Plan& plan_;
  const std::span<const ShardResult> results_;
  const ManifestCounts& counts_;
  const SkipShare share_;
  const CommitOptions& options_;
  const OutputDir& out_;
  std::vector<std::string> empty_;  // shards without a sample
};

}  // namespace

double SkipShare::share() const {
  return static_cast<double>(lost) / static_cast<double>(std::max<uint64_t>(1, seen));
}

uint64_t SkipShare::Percent() const {
  return (100 * lost + seen - 1) / std::max<uint64_t>(1, seen);
}

absl::Status CheckBudget(const Manifest& manifest, double max_skip) {
  const SkipShare share = ShareOf(manifest.counts);
  if (share.Within(max_skip)) return absl::OkStatus();
  return OfferFlags(
      absl::DataLossError(absl::StrFormat(
          "%d of %d inputs are not in this dataset, %.4g %% may be missing; %s names them",
          share.lost, share.seen, max_skip * 100, std::string(kSkippedName))),
      {OfferedShare(share.Percent())});
}

std::vector<Skip> SkipsOfToday(const Plan& plan, const std::string& root,
                               std::span<const Skip> skips) {
  std::vector<Skip> today(skips.begin(), skips.end());
  for (Skip& skip : today) {
    struct stat facts;
    const bool has_bytes =
        skip.reason == SkipReason::kEmpty && plan.listing().bytes[skip.row] == 0 &&
        ::stat(absl::StrCat(root, "/", plan.listing().Path(skip.row)).c_str(), &facts) == 0 &&
        S_ISREG(facts.st_mode) && facts.st_size > 0;
    if (!has_bytes) continue;
    skip.reason = SkipReason::kChanged;
    skip.detail = absl::StrCat("listed with 0 bytes, now ", facts.st_size);
  }
  return today;
}

// Law 4, and the budgets: nothing is published unless all of these hold.
absl::Status CheckSkips(const Plan& plan, std::span<const ShardResult> results,
                        const ManifestCounts& counts, std::span<const Skip> skips,
                        const CommitOptions& options, const OutputDir& out) {
  if (counts.seen != counts.packed + counts.filtered + counts.skipped + counts.failed) {
    return absl::InternalError(absl::StrCat(
        "the counts do not add up: ", counts.seen, " seen, ", counts.packed, " packed, ",
        counts.filtered, " filtered, ", counts.skipped, " skipped, ", counts.failed, " failed"));
  }
  const Refusal refusal(plan, results, counts, options, out);
  if (!refusal.TooMany() && !refusal.AnyEmpty()) return absl::OkStatus();
  const std::string& given = out.options().planned_source;
  return refusal.Say(SkipsOfToday(plan, given.empty() ? plan.listing().root : given, skips));
}

}  // namespace shardpack
