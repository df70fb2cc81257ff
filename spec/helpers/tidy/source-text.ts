// A TypeScript file as the tidy rules see it: its code, its comments, its imports.

import { parseSync, Visitor } from 'oxc-parser';

/** `code` and `comments` have the same length as `text`, so that offsets and lines match. */
export interface Source {
  /** Relative to the repository, with `/`: `src/balancing/pool.ts`. */
  readonly path: string;
  readonly text: string;
  /** The text without comments and without the contents of strings, templates and regular expressions; the quotes remain. */
  readonly code: string;
  /** The comments only. */
  readonly comments: string;
  /** Every specifier of import, export-from and import(), as written, types included. */
  readonly imports: readonly string[];
}

/** All files that the rules see, by path. */
export type Repository = ReadonlyMap<string, Source>;

/** One rule. `check` returns the violations in a file, a clause each. */
export interface Rule {
  /** A sentence that states the rule. */
  readonly name: string;
  readonly check: (source: Source, repository: Repository) => readonly string[];
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Reads one file. */
export function readSource(path: string, text: string): Source {
  const { program, comments } = parseSync(path, text);
  const quoted: Span[] = [];
  const imports: string[] = [];
  const imported = ({ source }: { readonly source: object | null }): void => {
    if (source !== null && 'value' in source) imports.push(String(source.value));
  };
  new Visitor({
    Literal: ({ raw, start, end }) => {
      if (raw !== null && /^["'/]/.test(raw)) quoted.push({ start: start + 1, end: end - 1 });
    },
    TemplateElement: (element) => quoted.push(element),
    ...{ ImportDeclaration: imported, ImportExpression: imported, TSImportType: imported },
    ...{ ExportAllDeclaration: imported, ExportNamedDeclaration: imported },
  }).visit(program);
  const code = blanked(text, [...comments, ...quoted]);
  return { path, text, code, comments: blanked(text, between(comments, text.length)), imports };
}

/** The line of an offset, counted from 1. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

/** The text with the spans replaced by spaces; line breaks remain. */
function blanked(text: string, spans: readonly Span[]): string {
  let [blank, index] = ['', 0];
  for (const { start, end } of spans.toSorted((a, b) => a.start - b.start)) {
    blank += text.slice(index, start) + text.slice(start, end).replace(/[^\n]/g, ' ');
    index = end;
  }
  return blank + text.slice(index);
}

/** The spans between these spans. */
function between(spans: readonly Span[], length: number): Span[] {
  const starts = [0, ...spans.map(({ end }) => end)];
  return starts.map((start, index) => ({ start, end: spans[index]?.start ?? length }));
}
