// Reads JSON: of answers, which have values of servers, and of users.

/** The most levels of arrays and objects: a page follows them by recursion. */
const MAX_LEVELS = 256;
/** In the place of what is nested deeper. */
const LEFT_OUT = '…';

declare global {
  interface JSON {
    /** Source: ECMAScript 2026; absent in browsers of 2024. */
    rawJSON(text: string): unknown;
    isRawJSON(value: unknown): boolean;
  }
}

/**
 * The value of a JSON text. An integer that JavaScript would change, beyond 2^53, is an object that JSON.stringify writes as it
 * came, where the browser has them. Throws a SyntaxError.
 */
export function exactValue(text: string): unknown {
  if (!/\d{16}/.test(text) || !('rawJSON' in JSON)) return JSON.parse(text);
  const exact = (_: string, value: unknown, { source = '' }: { readonly source?: string } = {}): unknown =>
    typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER && String(value) !== source
      ? JSON.rawJSON(source)
      : value;
  try {
    return JSON.parse(text, exact);
  } catch {
    return JSON.parse(text); // nested too deep for the recursion of the browser, or no JSON
  }
}

export function isLongNumber(value: unknown): boolean {
  return 'isRawJSON' in JSON && JSON.isRawJSON(value);
}

/** The value of a JSON text; what is nested deeper than MAX_LEVELS is left out. Throws a SyntaxError. */
export function readJson(text: string): unknown {
  const value = exactValue(text);
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
