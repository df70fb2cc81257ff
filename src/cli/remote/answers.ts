// Reads the answers of a gateway field by field, since a gateway of another version may answer differently.

import { giveTexts, isDeeper, jsonIn } from '../../domain/json/json.ts';

/** Nested arrays and objects of one answer; commands make texts of its fields. */
const ANSWER_LEVELS = 1_000;
/** Values of one answer: each takes up to 100 bytes of memory, and three in the text. */
const MAX_ANSWER_VALUES = 10_000_000;

/**
 * The value of JSON that another program wrote, of which every part can be made a text; undefined when it is not JSON, and when
 * it has too many levels or values. `parse` throws SyntaxError.
 */
export function answerIn(text: string, parse?: (text: string) => unknown): unknown {
  if (hasTooMany(text)) return undefined;
  const value = jsonIn(text, parse);
  if (isDeeper(value, ANSWER_LEVELS)) return undefined;
  giveTexts(value);
  return value;
}

/** What is wrong with a text of which `answerIn` makes no value, as a clause. */
export function answerFault(text: string): 'is not JSON' | `has more than ${number} ${string}` {
  if (hasTooMany(text)) return `has more than ${MAX_ANSWER_VALUES} values`;
  return jsonIn(text) === undefined ? 'is not JSON' : `has more than ${ANSWER_LEVELS} levels`;
}

const [QUOTE, COMMA, BRACKET, BACKSLASH, BRACE] = [0x22, 0x2c, 0x5b, 0x5c, 0x7b];

/** Counts the commas and the brackets outside of strings. */
function hasTooMany(text: string): boolean {
  if (text.length <= MAX_ANSWER_VALUES) return false;
  let count = 0;
  let isInString = false;
  for (let at = 0; at < text.length && count <= MAX_ANSWER_VALUES; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) isInString = !isInString;
    else if (isInString && unit === BACKSLASH) at += 1;
    else if (!isInString && (unit === COMMA || unit === BRACKET || unit === BRACE)) count += 1;
  }
  return count > MAX_ANSWER_VALUES;
}

export type Fields = Readonly<Record<string, unknown>>;

export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

export function elementsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value as a list of objects; empty for any other value. */
export function objectsOf(value: unknown): readonly Fields[] {
  return elementsOf(value).map(fields);
}

export function instancesOf(registry: unknown): readonly Fields[] {
  return Object.values(fields(fields(registry).templates)).flatMap((each) =>
    objectsOf(fields(each).instances),
  );
}

/** The lines of an answer that name the differences between nodes in the settings which they should have in common. */
export function warningsOf(answer: unknown): readonly string[] {
  return elementsOf(fields(answer).warnings).map(String);
}

/** The state of an instance in one word: `ejected` for a healthy instance that gets no calls. */
export function shownStateOf({ state, ejection }: Fields): string {
  const isEjected = typeof fields(ejection).reason === 'string';
  return state === 'healthy' && isEjected ? 'ejected' : String(state ?? '-');
}

/** The reason why an instance is not healthy or gets no calls, as a clause; empty when the record has none. */
export function shownReasonOf({ reason, ejection }: Fields): string {
  const text = reason ?? fields(ejection).reason;
  return typeof text === 'string' ? text.replace(/\.$/, '') : '';
}

/** The command of an instance, else its address. */
export function backendOf({ command, args, endpoint }: Fields): unknown {
  return typeof command === 'string' ? [command, ...elementsOf(args)].join(' ') : endpoint;
}

/** One issue about invalid input, as a clause: `body.instance.weight: Input should be ...`. */
export function issueText(item: unknown): string {
  const { loc, msg } = fields(item);
  return `${elementsOf(loc).join('.')}: ${String(msg)}`;
}
