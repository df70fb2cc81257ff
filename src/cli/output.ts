// The output of commands: tables and `name  value` lines for people, JSON for programs.

import { hasInvisible, withoutInvisible } from '../domain/text.ts';
import type { CommandInput } from './command.ts';
import { rowLines, widthOf, wrapLines } from './help.ts';
import type { Terminal } from './terminal.ts';

/**
 * Prints the result of a command: `record` as JSON with `--json`, else the text, a sentence on one line; a function may make
 * several lines. The exit code of a success.
 */
export function printResult(
  input: CommandInput,
  terminal: Pick<Terminal, 'print'>,
  record: unknown,
  text: string | (() => string),
): number {
  if (input.has('json')) terminal.print(indentedJson(record));
  else terminal.print(typeof text === 'string' ? printable(text) : text());
  return 0;
}

/** JSON for programs, indented by two spaces. Characters that change how a terminal shows text are escaped. */
export function indentedJson(value: unknown): string {
  return withEscapes(JSON.stringify(value, null, 2));
}

/** The same text of JSON on one line, with such characters escaped. */
export function jsonLine(text: string): string {
  return withEscapes(text.replaceAll('\n', ' '));
}

function withEscapes(json: string): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return json.replace(/[^\n -~]/gu, (letter) =>
    hasInvisible(letter) ? letter.split('').map(escaped).join('') : letter,
  );
}

export type TableColumns<Row> = Readonly<Record<string, (keyof Row & string) | ((row: Row) => unknown)>>;

/**
 * A table without borders: headings, then one line per row. On a terminal it fits: the widest columns are wrapped, between words
 * where that is possible; with an `input` without `--wide`, columns that are empty or zero in every row are omitted. A pipe gets
 * everything.
 */
export function table<Row>(
  terminal: Terminal,
  columns: TableColumns<Row>,
  rows: readonly Row[],
  input?: CommandInput,
): string {
  const isWide = input === undefined || input.has('wide') || terminal.columns === undefined;
  const shown = Object.entries(columns)
    .map(([heading, column]) => ({
      heading,
      texts: rows.map((row) => cellText(typeof column === 'function' ? column(row) : row[column])),
    }))
    .filter(({ texts }) => isWide || !texts.every((text) => BLANK.test(text)));
  const headings = shown.map(({ heading }) => heading);
  const cells = [headings, ...rows.map((_, index) => shown.map(({ texts }) => texts[index] ?? ''))];
  const widths = fittingWidths(terminal.columns ?? Number.POSITIVE_INFINITY, cells);
  const [head = '', ...lines] = cells.map((row) => drawn(row, widths));
  return [terminal.paint('bold', head), ...lines].join('\n');
}

function drawn(row: readonly string[], widths: readonly number[]): string {
  const cells = widths.map((width, at) => cellLines(row[at] ?? '', width));
  const height = Math.max(...cells.map(({ length }) => length));
  return Array.from({ length: height }, (_, line) =>
    widths
      .map((width, at) => {
        const text = cells[at]?.[line] ?? '';
        return text + ' '.repeat(width + GAP - widthOf(text));
      })
      .join('')
      .trimEnd(),
  ).join('\n');
}

function cellLines(text: string, width: number): readonly string[] {
  if (widthOf(text) <= width) return [text];
  return wrapLines(
    text.replace(/[^ ]+/g, (word) => cut(word, width)),
    width,
  );
}

/** The word with a space in each place where it has to be broken. */
function cut(word: string, width: number): string {
  let [before, piece] = ['', ''];
  for (const letter of word) {
    if (widthOf(piece + letter) > width) [before, piece] = [`${before}${piece} `, ''];
    piece += letter;
  }
  return before + piece;
}

/** The text of a cell: the items of a list, an object as JSON; empty for a field that a gateway of another version lacks. */
function cellText(value: unknown): string {
  if (Array.isArray(value)) return printable(value.join(', '));
  return printable(typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? ''));
}

/** A text that is empty, unknown or zero, also as a share: `0.0 %`. */
const BLANK = /^(-|0(\.0+)?( %)?)?$/;

/** The number of characters between two columns, and the least width of a column on a narrow terminal. */
const GAP = 2;
const MIN_WIDTH = 5;

function fittingWidths(columns: number, cells: readonly (readonly string[])[]): readonly number[] {
  const [headings = []] = cells;
  // Words in colour are not split.
  const mayShrink = headings.map((_, at) => !cells.some((row) => row[at]?.includes('\u001b')));
  const widths = headings.map((_, at) => {
    const natural = cells.reduce((most, row) => Math.max(most, widthOf(row[at] ?? '')), 0);
    return mayShrink[at] ? Math.min(natural, Math.max(columns, MIN_WIDTH)) : natural;
  });
  while (widths.reduce((sum, width) => sum + width + GAP, -GAP) > columns) {
    const widest = Math.max(...widths.filter((_, index) => mayShrink[index]));
    if (widest <= MIN_WIDTH) break;
    widths[widths.findIndex((width, index) => width === widest && mayShrink[index])] = widest - 1;
  }
  return widths;
}

/** `name  value` lines without those of empty values; a terminal wraps the column of values. */
export function detailLines(
  { columns }: Pick<Terminal, 'columns'>,
  pairs: readonly (readonly [name: string, value: unknown])[],
): string {
  const rows = pairs
    .map(([name, value]) => [name, cellText(value)] as const)
    .filter(([, text]) => text !== '');
  return rowLines(rows, columns).join('\n');
}

export function fieldText(value: unknown): string {
  return typeof value === 'string' && !/[\s"]/.test(value) ? value : JSON.stringify(value);
}

export function stateWord(terminal: Terminal, state: string): string {
  if (state === 'healthy') return terminal.paint('green', state);
  return terminal.paint(state === 'unhealthy' ? 'red' : 'yellow', state);
}

/** A number of seconds in words: `42 s`, `3 min`, `5 h 2 min`, `2 d 1 h`; `-` for NaN. */
export function duration(seconds: number): string {
  if (Number.isNaN(seconds)) return '-';
  const wholeSeconds = Math.max(0, Math.floor(seconds));
  if (wholeSeconds < 60) return `${wholeSeconds} s`;
  const minutes = Math.floor(wholeSeconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A time to the minute, in UTC like all times: `2027-01-31 12:00Z`; any other text unchanged. */
export function minute(value: unknown): string {
  return String(value ?? '').replace(/^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2})[\d:.]*Z$/, '$1 $2Z');
}

/**
 * The text of a backend on one line, unable to move the cursor, change the order of letters or recolour the terminal;
 * our own colours stay.
 */
export function printable(text: string): string {
  return withoutInvisible(text).replace(/[\n\t]/g, ' ');
}
