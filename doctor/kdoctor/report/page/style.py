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
h1 { font-size: 1.4rem; margin: 0 0 .5rem; }
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
summary { cursor: pointer; }
details > div { margin: .25rem 0 .25rem 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { overflow-wrap: normal; border: 1px solid var(--line); padding: .2rem .5rem;
  text-align: left; }
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
@media print { details > div { display: block; } .card, figure { break-inside: avoid; } }
""".strip()
