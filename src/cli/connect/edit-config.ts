// Puts the entry of one server into the text of a client's file, or removes it. Everything else stays, also comments and members
// that the user added to the entry.

import {
  applyEdits,
  findNodeAtLocation,
  getNodeValue,
  modify,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser';
import { type Document, isCollection, isMap, isScalar, isSeq, parseDocument } from 'yaml';
import type { ConfigFile } from '../../connect/connect-kind.ts';
import type { ConnectTarget } from '../../connect/connect-target.ts';
import { configText, tomlTable } from '../../connect/file-clients.ts';
import { messageOf } from '../../domain/errors/errors.ts';
import { isJsonObject } from '../../domain/json/json.ts';
import { asWords } from '../../domain/text.ts';
import { CommandFailure } from '../failures.ts';
import { withEntryLines } from './yaml-lines.ts';

export interface ConfigEdit {
  readonly file: ConfigFile;
  readonly template: string;
  /** The new entry. Undefined removes the entry. */
  readonly target?: ConnectTarget | undefined;
}

/** The members that entries of any client have: an update removes those that an entry no longer needs. */
const OWN_MEMBERS: readonly string[] = [
  ...['type', 'command', 'args', 'env', 'url', 'headers', 'serverUrl', 'httpUrl'],
  ...['requestOptions', 'cmd', 'uri'],
];

/** The new text. Throws CommandFailure when the text cannot be edited safely; the message follows the name of the file. */
export function editedConfig(text: string, edit: ConfigEdit): string {
  const { file, target } = edit;
  if (text.trim() === '' && target === undefined) return text;
  const hasCrlf = text.includes('\r\n') && !/[^\r]\n/.test(text);
  if (hasCrlf) return editedConfig(text.replaceAll('\r\n', '\n'), edit).replaceAll('\n', '\r\n');
  if (text.trim() === '' && target !== undefined && file.format !== 'toml') {
    return `${configText(file, target)}\n`;
  }
  if (file.format === 'json') return editedJson(text, edit);
  return file.format === 'yaml' ? editedYaml(text, edit) : editedToml(text, edit);
}

// --- JSON, with comments and commas at the end as many clients allow them ----------------------------------

function editedJson(text: string, { file, template, target }: ConfigEdit): string {
  const tree = parsed(text);
  for (let depth = 0; depth <= file.section.length; depth += 1) {
    const node = nodeAt(tree, file.section.slice(0, depth));
    if (node !== undefined && node.type !== 'object') {
      throw new CommandFailure(`has no object at ${file.section.slice(0, depth).join('.') || 'its top'}`);
    }
  }
  const path = [...file.section, template];
  const present = nodeAt(tree, path);
  if (target === undefined) return removed(text, path);
  const entry = file.entry(target);
  if (present === undefined) return inserted(text, tree, path, entry);
  if (present.type !== 'object') return set(text, path, entry);
  let edited = text;
  for (const name of OWN_MEMBERS) if (!(name in entry)) edited = removed(edited, [...path, name]);
  return merged(edited, path, entry);

  /** Replaces members one by one, so that the others stay. */
  function merged(before: string, at: string[], value: unknown): string {
    const node = nodeAt(parsed(before), at);
    if (isJsonObject(value) && node?.type === 'object') {
      return Object.entries(value).reduce((sum, [name, each]) => merged(sum, [...at, name], each), before);
    }
    const isSame = node !== undefined && JSON.stringify(getNodeValue(node)) === JSON.stringify(value);
    return isSame ? before : set(before, at, value);
  }
}

function set(text: string, path: string[], value: unknown): string {
  return applyEdits(text, modify(text, path, value, { formattingOptions: formatOf(text) }));
}

function parsed(text: string): Node {
  const errors: ParseError[] = [];
  const tree = treeOf(text, errors);
  const [first] = errors;
  if (tree !== undefined && first === undefined) return tree;
  const line = text.slice(0, first?.offset).split('\n').length;
  const fault = first && asWords(printParseErrorCode(first.error));
  throw new CommandFailure(`is not JSON: ${fault} in line ${line}`);
}

function treeOf(text: string, errors: ParseError[]): Node | undefined {
  try {
    return parseTree(text, errors, { allowTrailingComma: true });
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new CommandFailure('is nested too deeply', { cause });
  }
}

/** The node at the path. Refuses a member that is there twice: clients read the last one, and `modify` changes the first. */
function nodeAt(tree: Node, path: readonly string[]): Node | undefined {
  for (const [depth, name] of path.entries()) {
    const parent = findNodeAtLocation(tree, path.slice(0, depth));
    const found = parent?.children?.filter(({ children: [key] = [] }) => key?.value === name) ?? [];
    if (parent?.type !== 'object' || found.length < 2) continue;
    const where = path.slice(0, depth).join('.') || 'its top';
    throw new CommandFailure(`has "${name}" twice at ${where}: remove one`);
  }
  return findNodeAtLocation(tree, [...path]);
}

/** Removes this member with its lines; the comments of neighbouring members stay. */
function removed(text: string, path: string[]): string {
  const property = nodeAt(parsed(text), path)?.parent;
  if (property === undefined) return text;
  const from = property.offset;
  const gap = gapBeforeComma(text, property);
  const rest = text.slice(from + property.length);
  // A comment before its comma, and a comma at the start of the next line, are not on its lines.
  const isBeside = gap !== undefined && /^[ \t]*$/.test(gap);
  const behind = isBeside
    ? rest.slice(gap.length + 1)
    : gap === undefined
      ? rest
      : gap + rest.slice(gap.length + 1);
  const [indent = ''] = /[^\n]*$/.exec(text.slice(0, from)) ?? [];
  const [lineEnd] = /^[ \t]*\r?\n/.exec(behind) ?? [];
  const hasOwnLines = indent.trim() === '' && lineEnd !== undefined;
  const head = text.slice(0, hasOwnLines ? from - indent.length : from);
  const tail = hasOwnLines ? behind.slice(lineEnd.length) : behind;
  const siblings = property.parent?.children ?? [];
  const before = siblings[siblings.indexOf(property) - 1];
  if (gap !== undefined || before === undefined) return head + tail;
  // It was the last member, so the member before it loses its comma.
  const comma = before.offset + before.length + (gapBeforeComma(text, before) ?? '').length;
  return head.slice(0, comma) + head.slice(comma + 1) + tail;
}

/** White space and whole comments, which may have commas, before a comma. */
const GAP = /^(?:\s|\/\/[^\n]*\n|\/\*[^*]*\*+(?:[^/*][^*]*\*+)*\/)*(?=,)/;

/** The white space and the comments between a member and its comma; undefined without a comma. */
function gapBeforeComma(text: string, { offset, length }: Node): string | undefined {
  return GAP.exec(text.slice(offset + length))?.[0];
}

/** Adds a member at the end of its object, on separate lines; the members before it keep their format. */
function inserted(text: string, tree: Node, path: readonly string[], value: unknown): string {
  let depth = path.length - 1;
  while (nodeAt(tree, path.slice(0, depth)) === undefined) depth -= 1;
  const name = path[depth] ?? '';
  const inner = path.slice(depth + 1).reduceRight<unknown>((sum, each) => ({ [each]: sum }), value);
  const at = [...path.slice(0, depth), name];
  const last = nodeAt(tree, path.slice(0, depth))?.children?.at(-1);
  if (last === undefined) return set(text, at, inner);
  const [indent = ''] = /[^\n]*$/.exec(text.slice(0, last.offset)) ?? [];
  if (indent.trim() !== '') return set(text, at, inner);
  const { insertSpaces, tabSize } = formatOf(text);
  const written = JSON.stringify(inner, null, insertSpaces ? tabSize : '\t').replaceAll('\n', `\n${indent}`);
  const end = last.offset + last.length;
  // A comment at the end of the line belongs to the member before it.
  const [behind = '', comma = '', comment = ''] = /^(,?)([ \t]*\/\/[^\r\n]*)?/.exec(text.slice(end)) ?? [];
  const member = `\n${indent}${JSON.stringify(name)}: ${written}${comma}`;
  return `${text.slice(0, end)},${comment}${member}${text.slice(end + behind.length)}`;
}

function formatOf(text: string): { insertSpaces: boolean; tabSize: number } {
  const [, indent = '  '] = /^([ \t]+)\S/m.exec(text) ?? [];
  return { insertSpaces: !indent.includes('\t'), tabSize: indent.length };
}

// --- YAML --------------------------------------------------------------------------------------------------

function editedYaml(text: string, { file, template, target }: ConfigEdit): string {
  const document = parseDocument(text);
  let before: string;
  try {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    before = JSON.stringify(document.toJS()); // not for an alias of what it is in
  } catch (cause) {
    throw new CommandFailure(`is not YAML: ${messageOf(cause).split('\n')[0]}`, { cause });
  }
  if (document.contents !== null && !isMap(document.contents))
    throw new CommandFailure('has no map at its top');
  const servers = document.getIn(file.section) ?? undefined;
  if (servers !== undefined && !(file.isList ? isSeq(servers) : isMap(servers)))
    throw new CommandFailure(`has no ${file.isList ? 'list' : 'map'} at ${file.section.join('.')}`);
  const items = isSeq(servers) ? servers.items : [];
  const found = items.findIndex((each) => isMap(each) && each.get('name') === template);
  const index = found === -1 ? items.length : found;
  const path = [...file.section, file.isList ? index : template];
  const change = (changed: Document) => changeDocument(changed, file, path, target);
  change(document);
  const after = jsonNow();
  if (after === before) return text;
  const pathNow = target === undefined ? [...file.section, NOWHERE] : path;
  // What an anchor in the entry names is elsewhere, too.
  if (after === undefined || othersIn(after, pathNow) !== othersIn(before, path))
    throw new CommandFailure('shares parts of this entry with others by an anchor: change it by hand');
  const [section = '', ...below] = file.section;
  const inLines =
    below.length === 0
      ? withEntryLines(text, document, { section, path, isRemoved: target === undefined, change })
      : undefined;
  return inLines ?? document.toString({ lineWidth: 0 });

  /** The result is undefined when an alias names what is no longer there. */
  function jsonNow(): string | undefined {
    try {
      return JSON.stringify(document.toJS());
    } catch {
      return undefined;
    }
  }
}

/** Puts the entry at its path, or removes it. */
function changeDocument(
  document: Document,
  file: ConfigFile,
  path: readonly (string | number)[],
  target: ConnectTarget | undefined,
): void {
  if (target === undefined) {
    if (document.hasIn(path)) document.deleteIn(path);
    return;
  }
  const entry = file.entry(target);
  const servers = document.getIn(file.section, true);
  if (isCollection(servers)) servers.flow &&= servers.items.length > 0;
  else {
    const added = document.createNode(file.isList ? [] : {});
    if (isScalar(servers)) added.commentBefore = servers.comment ?? null;
    document.setIn(file.section, added);
  }
  if (isMap(document.getIn(path)))
    for (const name of OWN_MEMBERS) if (!(name in entry)) document.deleteIn([...path, name]);
  merge(path, entry);

  /** Sets members one by one, so that the others stay. */
  function merge(at: readonly (string | number)[], value: unknown): void {
    if (isJsonObject(value) && isMap(document.getIn(at)))
      for (const [name, each] of Object.entries(value)) merge([...at, name], each);
    else {
      const present = document.getIn(at, true);
      // A plain value keeps its comment.
      const isPlain = typeof value !== 'object' && isScalar(present) && present.tag === undefined;
      document.setIn(at, isPlain ? value : document.createNode(value));
    }
  }
}

/** An index that no list has. */
const NOWHERE = -1;

/** The JSON without what is at the path, and without what is empty then. */
function othersIn(json: string, path: readonly (string | number)[]): string | undefined {
  return JSON.stringify(without(JSON.parse(json), path));
}

function without(value: unknown, [name, ...rest]: readonly (string | number)[]): unknown {
  if (name === undefined || value === null) return undefined;
  if (Array.isArray(value)) {
    const others = value.filter((_, index) => index !== name);
    return others.length === 0 ? undefined : others;
  }
  if (!isJsonObject(value)) return value;
  const others = { ...value, [name]: without(value[name], rest) };
  return Object.values(others).every((each) => each === undefined) ? undefined : others;
}

// --- TOML: a marked block at the end of the file. The text before it is neither parsed nor changed. --------

function editedToml(text: string, { file, template, target }: ConfigEdit): string {
  const [begin, end] = [`# stagedoor ${template}: begin`, `# stagedoor ${template}: end`];
  const lines = text.split('\n');
  const [from, to] = [lines.indexOf(begin), lines.indexOf(end)];
  const isMarked = from !== -1 && to > from;
  if (!isMarked && (from !== -1 || to !== -1))
    throw new CommandFailure(`has only one of the lines "${begin}" and "${end}"`);
  const present = blockOf(isMarked ? lines.slice(from + 1, to) : [], [...file.section, template].join('.'));
  const outside = isMarked ? [...lines.slice(0, from), ...present.others, ...lines.slice(to + 1)] : lines;
  if (target === undefined && isMarked) return outside.join('\n').replace(/\n{2,}$/, '\n');
  if (mentions(outside, file.section, template)) {
    throw new CommandFailure(
      'may have an entry of this name that connect did not write, and TOML is not parsed: change it by hand',
    );
  }
  if (target === undefined) return text;
  const entry = tomlTable([...file.section, template], file.entry(target));
  const block = [begin, entry, ...present.members, ...present.tables, end, ...present.others];
  if (isMarked) return [...lines.slice(0, from), ...block, ...lines.slice(to + 1)].join('\n');
  return `${text.trim() === '' ? '' : text.replace(/\n*$/, '\n\n')}${block.join('\n')}\n`;
}

/**
 * What a person or the client has added between the two marks: members of the table, tables below it, and other tables. A
 * client that adds a table at the end of the file puts it before the last comment, which is the second mark.
 */
function blockOf(lines: readonly string[], entry: string) {
  const [members, tables, others]: [string[], string[], string[]] = [[], [], []];
  let table = `[${entry}]`;
  for (const statement of statementsOf(lines)) {
    const plain = withoutQuotes(statement);
    const isHeader = HEADER.test(plain);
    if (isHeader) table = plain;
    if (table.startsWith(`[${entry}.`)) {
      if (!CONNECTS.test(table.slice(`[${entry}.`.length))) tables.push(statement);
    } else if (!table.startsWith(`[${entry}]`)) others.push(statement);
    else if (!isHeader && plain !== '' && !CONNECTS.test(plain)) members.push(statement);
  }
  return { members, tables, others };
}

/** The lines; those of one member, whose list or text goes on in further lines, are one. */
function statementsOf(lines: readonly string[]): readonly string[] {
  const statements: string[] = [];
  let open: string | undefined;
  for (const line of lines) {
    const statement: string = open === undefined ? line : `${open}\n${line}`;
    const bare = statement.replace(TEXT_OR_COMMENT, (text) => (OPEN_TEXT.test(text) ? '[' : ''));
    const isWhole = bare.split(/[[{]/).length <= bare.split(/[\]}]/).length;
    open = isWhole ? undefined : statement;
    if (isWhole) statements.push(statement);
  }
  return open === undefined ? statements : [...statements, open];
}

const TEXT_OR_COMMENT = /"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#.*/g;
/** The beginning of a text of several lines that does not end. */
const OPEN_TEXT = /^("""|''')(?![\s\S]*\1$)/;

/** The header of a table, without white space and quotation marks; not the item of a list on a line of its own. */
const HEADER = /^\[.*\](?:#|$)/;

/**
 * The beginning of a member, or of the name of a table, that says how to connect. The new entry says it; Codex writes tables
 * for members of tables, and reads no file with a table twice, or with members for the other transport.
 */
const CONNECTS =
  /^(?:command|args|env|env_vars|cwd|url|bearer_token|bearer_token_env_var|http_headers|env_http_headers|oauth|oauth_resource)\b/;

/** Whether the table may exist in another form: a header, a dotted key or an inline table. */
function mentions(lines: readonly string[], section: readonly string[], template: string): boolean {
  const name = section.join('.');
  const entry = `${name}.${template}`;
  const words = [`${name}=`, `[${name}]`, `${entry}.`, `${entry}=`, `[${entry}]`, `[${entry}.`];
  return lines.map(withoutQuotes).some((line) => words.some((word) => line.startsWith(word)));
}

/** The line of TOML without white space and quotation marks, which names of tables may have. */
function withoutQuotes(line: string): string {
  return line.replace(/[\s"']/g, '');
}
