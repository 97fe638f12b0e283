/** The report page's style. */
export const style = `
:root { color-scheme: light; --line: #d6dae0; --ink: #1c2430; --soft: #66707f; --paper: #f6f7f9; }
* { box-sizing: border-box; }
body { margin: 0; font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
header { display: flex; gap: 16px; align-items: center; flex-wrap: wrap; padding: 10px 16px; background: #fff; border-bottom: 1px solid var(--line); }
h1 { font-size: 17px; margin: 0; } h2 { font-size: 14px; margin: 0 0 8px; }
header input { padding: 5px 9px; border: 1px solid var(--line); border-radius: 6px; width: 240px; font: inherit; }
.soft { color: var(--soft); }
main { display: grid; grid-template-columns: 1fr 1fr 340px; height: 68vh; min-height: 420px; border-bottom: 1px solid var(--line); background: #fff; }
.pane { position: relative; border-right: 1px solid var(--line); overflow: hidden; }
.bar { position: absolute; top: 8px; left: 10px; right: 10px; display: flex; gap: 8px; align-items: center; z-index: 1; pointer-events: none; }
.bar > * { pointer-events: auto; background: #ffffffe0; border-radius: 4px; padding: 1px 6px; }
.bar select { font: inherit; border: 1px solid var(--line); }
.pane svg { width: 100%; height: 100%; cursor: grab; display: block; user-select: none; }
.node rect { stroke: #0003; rx: 5; } .node { cursor: pointer; } .node text { font-size: 11px; text-anchor: middle; pointer-events: none; }
.node.group rect { stroke-dasharray: 4 2; stroke: #0008; } .node.found rect { stroke: #d1006c; stroke-width: 3; stroke-dasharray: none; } .node.chosen rect { stroke: #111; stroke-width: 3; stroke-dasharray: none; }
.edge { fill: none; stroke: #8b95a3; stroke-width: 1; }
#details { overflow: auto; padding: 12px 14px; } #details ul { padding-left: 18px; margin: 4px 0 10px; } #details li { overflow-wrap: anywhere; }
.refused { border-left: 3px solid #d97706; padding-left: 8px; margin: 8px 0; } .fired { border-left: 3px solid #16a34a; padding-left: 8px; margin: 8px 0; }
.charts { display: grid; grid-template-columns: 1fr 1fr; gap: 16px; padding: 16px; } .chart { background: #fff; border: 1px solid var(--line); border-radius: 8px; padding: 12px; overflow: auto; max-height: 640px; }
.row { display: grid; grid-template-columns: 190px 1fr 150px; gap: 8px; align-items: center; font-size: 12px; cursor: pointer; } .row > :first-child { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.row i { display: block; height: 6px; border-radius: 3px; background: #c3c9d2; margin: 1px 0; min-width: 1px; }
.map rect { stroke: #fff; stroke-width: .4; } .map text { font-size: 10px; fill: #66707f; }
`;
