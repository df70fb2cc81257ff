// Reads the JSON of answers, which have values of servers.

/** The most levels of arrays and objects: a page follows them by recursion. */
const MAX_LEVELS = 256;
/** In the place of what is nested deeper. */
const LEFT_OUT = '…';

/** The value of a JSON text; what is nested deeper than MAX_LEVELS is left out. Throws a SyntaxError. */
export function readJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  let level = [value].filter(isContainer);
  for (let depth = 1; level.length > 0; depth += 1) {
    const next: Container[] = [];
    for (const container of level)
      for (const [key, inner] of Object.entries(container)) {
        if (!isContainer(inner)) continue;
        if (depth < MAX_LEVELS) next.push(inner);
        else container[key] = LEFT_OUT;
      }
    level = next;
  }
  return value;
}

/** An array or an object. */
type Container = Record<string, unknown>;

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null;
}
