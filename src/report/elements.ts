/** DOM and SVG elements from a name, attributes and children. Text is never read as HTML. */
type Child = Node | string | undefined;
export type Attributes = Readonly<Record<string, string | number>>;

export function html<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: readonly Child[]): HTMLElementTagNameMap[K] {
  return filled(document.createElement(tag), attributes, children);
}
export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: readonly Child[]): SVGElementTagNameMap[K] {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}
function filled<E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children.filter((c): c is Node | string => c !== undefined));
  return element;
}

/** A step's colour: by its number, so that neighbours differ. */
export const colourOf = (step: number | undefined): string => (step === undefined ? "#eceff3" : `hsl(${(step * 137.5) % 360} 62% ${78 - (step % 3) * 5}%)`);

/** Bytes for people. */
export function bytesText(bytes: number): string {
  for (const [unit, size] of [["GB", 1024 ** 3], ["MB", 1024 ** 2], ["KB", 1024]] as const) if (bytes >= size) return `${(bytes / size).toFixed(1)} ${unit}`;
  return `${bytes} B`;
}
