"""The looks of the HTML report. Colours are told apart by eyes that see no red or green: words say them, too."""

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #59636e; --paper: #fff; --card: #f6f8fa; --line: #d1d9e0;
  --pass: #1a7f37; --fail: #c21c2c; --skip: #59636e; --unknown: #8a5a00; --one: #0b62c4; --two: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9aa4af; --paper: #0d1117; --card: #161b22;
  --line: #3d444d; --pass: #3fb950; --fail: #ff7b72; --skip: #9aa4af; --unknown: #e3b341; --one: #58a6ff;
  --two: #e3b341; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; line-height: 1.35; margin: 0 0 .5rem; }
h1 .mark { min-width: 0; font-size: 1rem; padding: .1rem .6rem; border-radius: 1rem; margin-right: .35rem;
  vertical-align: .1em; }
h1 .mark.pass { background: var(--pass); color: var(--paper); }
h1 .mark.fail { background: var(--fail); color: var(--paper); }
h1 .mark.unknown { background: var(--unknown); color: var(--paper); }
.counts { display: inline-flex; flex-wrap: wrap; gap: .25rem .4rem; list-style: none; margin: .15rem 0; padding: 0;
  font-size: .8rem; font-weight: 400; }
.counts li { border: 1px solid currentColor; border-radius: 1rem; padding: 0 .55rem; }
.counts li.dim { border: 0; padding: 0; font-size: inherit; }
.counts .pass { color: var(--pass); } .counts .fail { color: var(--fail); font-weight: 600; }
.counts .skip { color: var(--skip); } .counts .unknown { color: var(--unknown); font-weight: 600; }
.family { display: flex; flex-wrap: wrap; align-items: baseline; gap: .1rem .75rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
p { margin: .25rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem .75rem; margin: .5rem 0; }
dt { color: var(--dim); } dd { margin: 0; min-width: 0; white-space: pre-wrap; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: .4rem;
  padding: .5rem .75rem; overflow-x: auto; margin: .25rem 0; font-size: .875rem; }
code { font-size: .9em; }
.card { background: var(--card); border: 1px solid var(--line); border-left: .3rem solid var(--line);
  border-radius: .4rem; padding: .5rem .9rem; margin: .75rem 0; }
.card h3:first-child { margin-top: .25rem; }
.card pre { background: var(--paper); }
.card.fail { border-left-color: var(--fail); } .card.pass { border-left-color: var(--pass); }
.card.unknown { border-left-color: var(--unknown); }
.mark { display: inline-block; min-width: 5.5em; font-weight: 600; font-size: .8rem; }
.mark.pass { color: var(--pass); } .mark.fail { color: var(--fail); } .mark.skip { color: var(--skip); }
.mark.unknown { color: var(--unknown); }
.dim { color: var(--dim); font-size: .9rem; }
details { border-bottom: 1px solid var(--line); padding: .3rem 0; }
summary { cursor: pointer; display: grid; grid-template-columns: 6.5rem 1fr; align-items: baseline; }
summary .mark { white-space: nowrap; }
summary::-webkit-details-marker { display: none; }
summary .mark::before { content: "\\25b8"; display: inline-block; width: 1rem; color: var(--dim); }
details[open] > summary .mark::before { content: "\\25be"; }
details > div, details > ul { margin: .25rem 0 .25rem 6.5rem; } details > ul { padding-left: 0; list-style: none; }
details li { margin: .2rem 0; } details li code { color: var(--dim); }
.wide { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { overflow-wrap: normal; border: 1px solid var(--line); padding: .2rem .5rem;
  text-align: left; }
th { color: var(--dim); font-weight: 600; }
.legend { display: grid; grid-template-columns: 3rem 1fr; gap: .75rem; align-items: center; font-size: .9rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr)); gap: .75rem; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: .4rem; padding: .5rem; }
figcaption { font-size: .85rem; }
svg { display: block; width: 100%; height: auto; } svg text { fill: currentColor; font: 11px system-ui, sans-serif; }
.axis { stroke: var(--line); } .one { stroke: var(--one); fill: none; stroke-width: 2; }
.two { stroke: var(--two); fill: none; stroke-width: 1.5; stroke-dasharray: 4 3; }
.dot { fill: var(--one); } .bar { fill: var(--one); } .bad { stroke: var(--fail); stroke-width: 2; }
.node { fill: var(--card); stroke: var(--ink); } .node.lost { stroke: var(--fail); stroke-dasharray: 3 2; }
.nvlink { stroke: var(--pass); stroke-width: 3; } .near { stroke: var(--one); stroke-width: 2; }
.far { stroke: var(--two); stroke-width: 1.5; stroke-dasharray: 5 3; }
.blocked { stroke: var(--fail); stroke-width: 1.5; stroke-dasharray: 2 3; }
.untold { stroke: var(--line); stroke-width: 1; }
@media (max-width: 34rem) { .stacks, .stacks tbody, .stacks tr, .stacks td { display: block; }
  .stacks thead { display: none; } .stacks tr { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0;
  padding: .35rem .6rem; } .stacks td { border: 0; padding: .1rem 0; display: grid;
  grid-template-columns: 6rem 1fr; overflow-wrap: anywhere; }
  .stacks td::before { content: attr(data-head); color: var(--dim); }
  details > div, details > ul { margin-left: 1rem; } }
@media print { pre { white-space: pre-wrap; } details > div { display: block; } .card, figure { break-inside: avoid; } }
""".strip()
