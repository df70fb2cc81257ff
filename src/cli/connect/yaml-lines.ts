// Changes the lines of one entry in the text of a YAML file, in the style of the text. The other lines stay as they are: the
// library would write them again in its own style.

import { Document, isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';

type Path = readonly (string | number)[];

/**
 * The text with the entry at `path` of the edited document, or without it. `section`: the key at the top that has the entries.
 * `change`: the edit of the document. Undefined where the entry has no lines of its own, such as in `{ a: 1, b: 2 }`.
 */
export function withEntryLines(
  text: string,
  edited: Document,
  {
    section,
    path,
    isRemoved,
    change,
  }: {
    readonly section: string;
    readonly path: Path;
    readonly isRemoved: boolean;
    readonly change: (document: Document) => void;
  },
): string | undefined {
  const places = new LineCounter();
  const { contents } = parseDocument(text, { lineCounter: places });
  if (contents !== null && (!isMap(contents) || contents.flow)) return undefined;
  const lines = text.replace(/\n+$/, '').split('\n');
  const lineOf = (node: unknown) => places.linePos((node as Node).range?.[0] ?? 0).line - 1;
  const own = contents?.items.find(({ key }) => nameOf(key) === section);
  const servers = own?.value;
  const entries = (isMap(servers) || isSeq(servers)) && servers.flow !== true ? keysOf(servers) : [];
  const indent = entries.length === 0 ? 0 : indentOf(lines[lineOf(entries[0])]);
  const style = {
    lineWidth: 0,
    indent: Math.max(2, indent),
    indentSeq: !/^( *)[^\s#-][^\n]*:[ \t]*\n\1- /m.test(text),
  };
  /** The lines at a path after the change. The text from line `end` is left out, of which the library would add the comments. */
  const changed = (end: number, at: Path, indented: number) => {
    const document = parseDocument(lines.slice(0, end).join('\n'));
    change(document);
    return linesAt(document, at, indented, style);
  };
  let at = lines.length;
  let height = 0;
  let written: readonly string[] | undefined = isRemoved ? [] : undefined;
  if (own === undefined) written = changed(at, [section], 0);
  else if (entries.length === 0 || (isRemoved && entries.length === 1)) {
    at = lineOf(own.key);
    height = heightOf(lines, at, isSeq(servers));
    written = changed(at + height, [section], 0);
  } else {
    const name = path.at(-1);
    const index = isSeq(servers) ? Number(name) : entries.findIndex((key) => nameOf(key) === name);
    const present = entries[index];
    at = lineOf(present ?? entries.at(-1));
    height = heightOf(lines, at);
    written ??= changed(at + height, path, indent);
    if (present === undefined) [at, height] = [at + height, 0];
  }
  if (written === undefined) return undefined;
  lines.splice(at, height, ...written);
  const result = `${lines.join('\n')}${/\n*$/.exec(text)?.[0] || '\n'}`;
  const again = parseDocument(result);
  const isSame = again.errors.length === 0 && JSON.stringify(again.toJS()) === JSON.stringify(edited.toJS());
  return isSame ? result : undefined;
}

function keysOf({ items }: { readonly items: readonly unknown[] }): readonly unknown[] {
  return items.map((item) => (isNode(item) ? item : Object(item).key));
}

/** The name that a key writes; one that was added is a plain text. */
function nameOf(key: unknown): unknown {
  return isScalar(key) ? key.value : key;
}

function indentOf(line = ''): number {
  return line.search(/[^ ]|$/);
}

/**
 * The number of lines of what begins in this line, without empty ones at its end, and without comments there that are not
 * indented as its members are. A list may be indented as its key is.
 */
function heightOf(lines: readonly string[], at: number, isList = false): number {
  const indent = indentOf(lines[at]);
  let inner = Number.POSITIVE_INFINITY;
  let height = 1;
  for (const [index, line] of lines.slice(at + 1).entries()) {
    const own = indentOf(line);
    const isOwnItem = isList && own === indent && /^ *-(?: |$)/.test(line);
    const isComment = /^\s*#/.test(line);
    if (line.trim() === '' || (isComment && own < Math.max(inner, indent + 1))) continue;
    if (own <= indent && !isOwnItem) break;
    inner = Math.min(inner, own);
    height = index + 2;
  }
  return height;
}

/**
 * The lines of what a document has at a path, without the comment before it; none if it has nothing there. Undefined for what
 * stands for a part of the document elsewhere.
 */
function linesAt(
  document: Document,
  path: Path,
  indent: number,
  style: Parameters<Document['toString']>[0],
): readonly string[] | undefined {
  if (!document.hasIn(path)) return [];
  const copy = document.clone();
  const parent = path.length === 1 ? copy.contents : copy.getIn(path.slice(0, -1), true);
  const shown = new Document();
  if (isMap(parent)) parent.items = parent.items.filter(({ key }) => nameOf(key) === path.at(-1));
  else if (isSeq(parent)) parent.items = parent.items.slice(Number(path.at(-1))).slice(0, 1);
  else return undefined;
  parent.commentBefore = parent.comment = null;
  parent.flow = false;
  const [top] = keysOf(parent);
  if (isNode(top)) Object.assign(top, { commentBefore: null, spaceBefore: false });
  shown.contents = parent as never;
  try {
    const lines = shown.toString(style).replace(/\n$/, '').split('\n');
    return lines.map((line) => (line === '' ? line : ' '.repeat(indent) + line));
  } catch {
    return undefined; // an alias
  }
}
