"""Style of the page: light or dark as the reader's system is, on a telephone too."""

STYLE = """
:root{color-scheme:light dark;--fg:#1c2024;--dim:#5b6470;--bg:#fff;--line:#d9dde3;--good:#2e7d4f;--bad:#c62f2f;
--unknown:#8a8f98;--away:#c46a00;--home:#4a7fb5;--hold:#7a4fb0;--window:#b3475f;--curve:#2563d0}
@media(prefers-color-scheme:dark){:root{--fg:#e6e8eb;--dim:#a0a8b3;--bg:#15181c;--line:#343a42;--good:#4fae78;
--bad:#f06a6a;--unknown:#8a8f98;--away:#f0a040;--home:#6fa8dc;--hold:#b08ae0;--window:#d98a9b;--curve:#7fb0ff}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:70rem;margin:0 auto;padding:1rem}
h1{font-size:1.4rem}h2{font-size:1.15rem;margin:2rem 0 .3rem;border-top:1px solid var(--line);padding-top:1rem}
h3{font-size:1rem;margin:1.2rem 0 .2rem;overflow-wrap:anywhere}
p,ul{margin:.3rem 0}.dim{color:var(--dim)}.name{font-size:.85rem;margin:.4rem 0 0;overflow-wrap:anywhere}
svg.lane{display:block;width:100%;height:20px;background:color-mix(in srgb,var(--line) 35%,transparent)}
svg.metric{height:60px}.curve{fill:var(--curve);stroke:var(--curve);stroke-width:1.5;vector-effect:non-scaling-stroke}
.threshold{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:6 4;vector-effect:non-scaling-stroke}
.wrong{fill:var(--bad);opacity:.12}.window{fill:var(--window)}
rect.window,rect.away,rect.bad,rect.unknown,line.away,line.home,line.between,line.hold{stroke-width:2;vector-effect:non-scaling-stroke}
rect.window{stroke:var(--window)}rect.away,line.away{stroke:var(--away)}rect.unknown{stroke:var(--unknown)}
line.home{stroke:var(--home)}line.between{stroke:var(--fg)}line.hold{stroke:var(--hold)}
svg.lane{cursor:crosshair;touch-action:pan-y}
rect.bad{stroke:var(--bad)}
.zoom:not([hidden]){position:sticky;top:0;z-index:1;background:var(--bg);padding:.5rem 0;
display:flex;flex-wrap:wrap;gap:.4rem;align-items:center}
.zoom output{font-size:.85rem;color:var(--dim);font-variant-numeric:tabular-nums}
button{font:inherit;font-size:.85rem;color:inherit;background:none;
border:1px solid var(--line);border-radius:6px;padding:.2rem .6rem;cursor:pointer}
pre{overflow-x:auto;font-size:.85rem;margin:.3rem 0}
svg.trade{display:block;width:100%;max-width:30rem;font:13px system-ui,sans-serif;fill:var(--fg)}
.good{fill:var(--good)}.bad{fill:var(--bad)}.unknown{fill:var(--unknown)}.away{fill:var(--away)}.home{fill:var(--home)}
.between{fill:var(--fg)}.hold{fill:var(--hold)}.axis{stroke:var(--dim)}
polyline.trade{fill:none;stroke:var(--home);stroke-width:2}circle.trade{fill:var(--home)}
.scale{display:flex;justify-content:space-between;font-size:.75rem;color:var(--dim);gap:.5rem;
font-variant-numeric:tabular-nums}.scale span{display:block;flex:1;white-space:pre-line}
.scale span:nth-child(2){text-align:center}.scale span:nth-child(3){text-align:right}
.legend span{display:inline-block;margin-right:1rem}.legend i{display:inline-block;width:.8em;height:.8em;
background:var(--c);margin-right:.3em}
.legend i[data-of=good]{--c:var(--good)}
.legend i[data-of=bad]{--c:var(--bad)}
.legend i[data-of=unknown]{--c:var(--unknown)}
.legend i[data-of=window]{--c:var(--window)}
.legend i[data-of=away]{--c:var(--away)}
.legend i[data-of=home]{--c:var(--home)}
.legend i[data-of=hold]{--c:var(--hold)}
.legend i[data-of=curve]{--c:var(--curve)}.legend i[data-of=between]{--c:var(--fg)}
.legend i[data-of=threshold]{height:0;background:none;
border-top:2px dashed var(--bad);width:1.2em;vertical-align:.25em}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{border-bottom:1px solid var(--line);padding:.2rem .8rem .2rem 0;text-align:right;white-space:nowrap}
th[scope=row],th:first-child{text-align:left}th[scope=row]{font-weight:inherit}
@media(max-width:50rem){thead{display:none}table,tbody,th,td{display:block}
tr{display:grid;grid-template-columns:1fr 1fr;gap:0 1rem;border-bottom:1px solid var(--line);padding:.4rem 0}
th,td{border:0;padding:.1rem 0;text-align:left;white-space:normal}
th[scope=row]{grid-column:1/-1;font-weight:bold;overflow-wrap:anywhere}
th[data-of]::before,td[data-of]::before{content:attr(data-of) ": ";color:var(--dim);font-weight:normal}}
a{color:var(--curve)}summary{cursor:pointer;padding:.4rem 0}
ol{list-style:none;padding:0;font-size:.9rem}li{border-bottom:1px solid var(--line);padding:.25rem 0;
overflow-wrap:anywhere}time{color:var(--dim);display:block;font-variant-numeric:tabular-nums}
"""
