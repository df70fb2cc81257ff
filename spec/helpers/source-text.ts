// Takes a TypeScript file apart far enough for the tidy rules: what is code, what is comment, what does it import.
// A scanner of 60 lines, not a parser: it knows comments, strings, templates and regular expressions, nothing else.

/** One file, seen four ways. `code` and `comments` are as long as `text`, so that offsets and lines are the same. */
export interface Source {
  /** From the root of the repository, with `/`: `src/balancing/pool.ts`. */
  readonly path: string;
  readonly text: string;
  /** The text without comments and without what stands between quotes; the quotes remain. */
  readonly code: string;
  /** Only the comments. */
  readonly comments: string;
  /** Every specifier of import, export-from and import(), as written, types included. */
  readonly imports: readonly string[];
}

/** Every file the rules see, by path. */
export type Repository = ReadonlyMap<string, Source>;

/** One rule. `check` returns what is wrong with the file, a clause each; empty when nothing is. */
export interface Rule {
  /** A sentence that states what holds. */
  readonly name: string;
  readonly check: (source: Source, repository: Repository) => readonly string[];
}

/** Reads one file. */
export function readSource(path: string, text: string): Source {
  const { code, comments } = separate(text);
  return { path, text, code, comments, imports: findImports(text, code) };
}

/** The line of an offset, counted from 1. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

const importForms = [
  /\b(?:import|export)\b[^'";()=]*?\bfrom\s*(['"]) *\1/dg,
  /\bimport\s*(['"]) *\1/dg,
  /\bimport\s*\(\s*(['"]) *\1/dg,
];

function findImports(text: string, code: string): string[] {
  return importForms.flatMap((form) =>
    [...code.matchAll(form)].map((match) => {
      // The quotes are the last thing matched; between them `code` has blanks where `text` has the specifier.
      const [opening = 0] = match.indices?.[1] ?? [];
      return text.slice(opening + 1, match.index + match[0].length - 1);
    }),
  );
}

/** Splits a text into code and comments by blanking the other, and what stands in quotes, with spaces. */
function separate(text: string): { code: string; comments: string } {
  let code = '';
  let comments = '';
  let index = 0;
  // Depth of braces at which a template goes on: `${` opens, its `}` returns to the template.
  const templates: number[] = [];
  let depth = 0;

  const take = (kind: 'code' | 'comment' | 'quoted', end: number): void => {
    const piece = text.slice(index, end);
    const blank = piece.replace(/[^\n]/g, ' ');
    code += kind === 'code' ? piece : kind === 'quoted' && piece.length > 1 ? quotesOf(piece, blank) : blank;
    comments += kind === 'comment' ? piece : blank;
    index = end;
  };
  while (index < text.length) {
    const rest = text.slice(index, index + 2);
    const character = rest[0] ?? '';
    if (rest === '//') take('comment', endOf(text, index, '\n'));
    else if (rest === '/*') take('comment', endOf(text, index + 2, '*/') + 2);
    else if (character === '"' || character === "'") take('quoted', closing(text, index + 1, character) + 1);
    else if (character === '/' && startsPattern(code)) take('quoted', endOfPattern(text, index + 1) + 1);
    else if (character === '`' || (character === '}' && templates.at(-1) === depth)) {
      if (character === '}') templates.pop();
      const end = endOfTemplate(text, index + 1);
      if (text[end] === '{') templates.push(depth);
      take('quoted', end + 1);
    } else {
      if (character === '{') depth += 1;
      if (character === '}') depth -= 1;
      take('code', index + 1);
    }
  }
  return { code, comments };
}

function quotesOf(piece: string, blank: string): string {
  return `${piece[0]}${blank.slice(1, -1)}${piece.at(-1)}`;
}

function endOf(text: string, from: number, mark: string): number {
  const end = text.indexOf(mark, from);
  return end === -1 ? text.length : end;
}

/** The next of the given characters that is not escaped. */
function closing(text: string, from: number, ends: string): number {
  let index = from;
  while (index < text.length && !ends.includes(text[index] ?? '')) index += text[index] === '\\' ? 2 : 1;
  return index;
}

/** The backtick that ends a template, or the brace of its next `${`. */
function endOfTemplate(text: string, from: number): number {
  let index = closing(text, from, '`$');
  while (text[index] === '$' && text[index + 1] !== '{') index = closing(text, index + 1, '`$');
  return text[index] === '$' ? index + 1 : index;
}

function endOfPattern(text: string, from: number): number {
  let index = closing(text, from, '/[');
  while (text[index] === '[') index = closing(text, closing(text, index + 1, ']') + 1, '/[');
  return index;
}

/** Whether a slash after this code starts a regular expression, not a division. */
function startsPattern(code: string): boolean {
  const before = code.trimEnd();
  return /(?:^|[(,=:[!&|?{};+\-*%^~<>]|\b(?:return|typeof|case|in|of|await|yield|void))$/.test(before);
}
