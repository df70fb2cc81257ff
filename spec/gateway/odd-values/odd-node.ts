// Writes a JSON value with one node that is odd: another value, another key, one that is missing or twice there. The same dice
// write the same text.

import type { Dice } from '../../helpers/dice.ts';

const nested = (open: string, close: string, levels: number): string =>
  `${open.repeat(levels)}1${close.repeat(levels)}`;

/** As text, because JSON.stringify cannot write some of them. */
const ODD_TEXTS = [
  ...['null', 'true', '0', '-0', '-1', '1.5', '1e400', '9007199254740993', '[]', '{}', '[null]'],
  ...['""', '"x"', '"\\ud800"', '"\\u0000"', '"__proto__"', '"constructor"', '"2026-07-28"', '"2025-11-25"'],
  ...['{"toString":1}', '{"length":-1}', '{"__proto__":{"a":1}}', '{"toJSON":1,"then":1}', '{"a":1,"a":2}'],
  ...[nested('[', ']', 300), nested('[', ']', 5_000), nested('{"a":', '}', 300), nested('{"a":', '}', 5_000)],
  `"${'x'.repeat(100_000)}"`,
];

const ODD_KEYS = [
  '""',
  '"__proto__"',
  '"constructor"',
  '"\\ud800"',
  '"toString"',
  '"id"',
  '"result"',
  '"method"',
];

/** The text of a message of which one node is odd. */
export function withOddNode(message: unknown, dice: Dice): string {
  let left = dice.below(nodesIn(message));
  const isHere = (): boolean => {
    left -= 1;
    return left === -1;
  };
  const write = (value: unknown): string => {
    if (isHere()) return dice.pick(ODD_TEXTS);
    if (Array.isArray(value)) return `[${value.map(write).join(',')}]`;
    if (typeof value !== 'object' || value === null) return JSON.stringify(value);
    const members = Object.entries(value).flatMap(([key, child]) => {
      const name = JSON.stringify(key);
      if (!isHere()) return [`${name}:${write(child)}`];
      const text = JSON.stringify(child);
      return dice.pick([
        [],
        [`${name}:${text}`, `${name}:${dice.pick(ODD_TEXTS)}`],
        [`${dice.pick(ODD_KEYS)}:${text}`],
      ]);
    });
    return `{${members.join(',')}}`;
  };
  return write(message);
}

/** Values and keys. */
function nodesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  const children = Object.values(value).reduce((sum: number, child) => sum + nodesIn(child), 1);
  return Array.isArray(value) ? children : children + Object.keys(value).length;
}
