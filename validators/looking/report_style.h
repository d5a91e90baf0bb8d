// The style sheet of a dataset's report: light and dark, on paper, and on screens of 360 pixels.
//
//   page.Trusted(kReportStyle);
//
// Contrasts of text are 4.5 or more in both schemes (WCAG 2.2, 1.4.3); a test computes them.
#ifndef SHARDPACK_VALIDATORS_LOOKING_REPORT_STYLE_H_
#define SHARDPACK_VALIDATORS_LOOKING_REPORT_STYLE_H_

#include "validators/looking/html_writer.h"

namespace shardpack {

inline constexpr TrustedText kReportStyle(R"(
:root{color-scheme:light dark;--back:#ffffff;--text:#1b1b1b;--soft:#565656;--line:#d0d0d0;--bar:#33679b;--alert:#8f1d12}
@media (prefers-color-scheme:dark){:root{--back:#161616;--text:#e8e8e8;--soft:#ababab;--line:#454545;--bar:#7fb0e0;--alert:#ff9d8f}}
@media print{:root{--back:#ffffff;--text:#000000;--soft:#444444;--line:#bbbbbb;--bar:#33679b;--alert:#8f1d12}nav{display:none}figure,tr,.group{break-inside:avoid}h2,h3{break-after:avoid}.scroll{overflow:visible}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:70rem;padding:1rem;background:var(--back);color:var(--text);font:1rem/1.45 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}
p,ul{margin:.4rem 0}nav ul{padding:0;list-style:none}nav li{display:inline-block;margin-right:1rem}a{color:var(--text)}
small,.soft,figcaption{color:var(--soft)}.alert{color:var(--alert);font-weight:600}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.1rem .8rem .1rem 0;text-align:right;font-weight:400;white-space:nowrap}
th{color:var(--soft)}th:first-child,td:first-child,.words td,.words th{text-align:left;white-space:normal;min-width:6rem}
.scroll{overflow-x:auto;max-width:100%}.line{width:10rem;height:.7rem;display:block}.bar{fill:var(--bar)}.line .bar:nth-child(even){fill-opacity:.7}
@media (max-width:34rem){th,td{padding-right:.4rem}.line{width:2.5rem}}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1rem 2rem}
.charts table{width:100%}.charts th,.charts td{padding:0 .2rem;font-size:.75rem;min-width:0;text-align:center;white-space:nowrap}
.charts tr>:first-child{padding-left:0;text-align:left}.charts tr>:last-child{padding-right:0;text-align:right}h3{font-size:1rem;margin:.8rem 0 .3rem}
figure{margin:0;min-width:0}figure svg{width:100%;height:6rem;border-bottom:1px solid var(--line)}
.pictures{display:flex;flex-wrap:wrap;gap:.3rem;align-items:center}.pictures img{display:block}
.none{display:inline-block;border:1px dashed var(--line);padding:.2rem;max-width:12rem;font-size:.75rem;color:var(--soft)}
.group{border-left:.2rem solid var(--line);padding-left:.6rem;margin:.6rem 0}.group .pictures{align-items:flex-start;gap:.8rem}.group figure{max-width:11rem}.group figcaption{font-size:.8rem}
)");

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_REPORT_STYLE_H_
