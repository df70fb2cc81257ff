// Reads a document in YAML in a time that grows with its length only: a part of the parser compares all keys of a
// mapping with all, and quotes a line for each fault. The first fault counts. Its message has no text of the
// document, which may be a secret: a password without quotes that begins with `*`, `!` or `|` is such a fault.

import { createRequire } from 'node:module';
import { codeOf, messageOf } from '../domain/errors/errors.ts';

/** The most anchors: the parser looks for each alias among all of them. */
export const MAX_ANCHORS = 10_000;

/** Codes of the parser whose messages have text of the document in their midst, or name no fault of it. */
const YAML_FAULTS: Readonly<Record<string, string>> = {
  TAG_RESOLVE_FAILED: 'Unresolved tag',
  BAD_DIRECTIVE: 'Invalid directive',
  BAD_DQ_ESCAPE: 'Invalid escape sequence',
  RESOURCE_EXHAUSTION: 'Nested too deeply',
};

interface YamlText {
  readonly value: unknown;
  /** The line of each key by its dotted name, and of each entry of a list (`servers.0`); what an alias merges in has none. */
  keyLines(): ReadonlyMap<string, number>;
}

/** Reads a document. Throws an Error whose message is one clause, with the place if the parser names it. */
export function readYaml(text: string): YamlText {
  // Loaded here and synchronously: most gateways have no file, and `--help` should not wait for a YAML parser.
  const yaml: typeof import('yaml') = createRequire(import.meta.url)('yaml');
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(text, { uniqueKeys: false, prettyErrors: false, lineCounter: lines });
  const [problem] = document.errors;
  if (problem !== undefined)
    throw new Error(`${faultOf(problem)}${place(problem.pos[0])}`, { cause: problem });
  let anchors = 0;
  yaml.visit(document, (_, node) => {
    if (yaml.isAlias(node) || (yaml.isNode(node) && node.anchor !== undefined)) anchors += 1;
    if (anchors > MAX_ANCHORS) throw new Error(`More than ${MAX_ANCHORS} anchors and aliases`);
    if (!yaml.isMap(node)) return;
    const seen = new Set<unknown>();
    for (const { key } of node.items) {
      if (!yaml.isScalar(key)) continue;
      if (seen.has(key.value)) throw new Error(`Map keys must be unique${place(key.range?.[0] ?? 0)}`);
      seen.add(key.value);
    }
  });
  try {
    return { value: document.toJS() as unknown, keyLines };
  } catch (thrown) {
    // Unresolved and excessive aliases are reported only here.
    throw new Error(faultOf(thrown), { cause: thrown });
  }

  function keyLines(): ReadonlyMap<string, number> {
    const found = new Map<string, number>();
    const find = (node: unknown, prefix: string): void => {
      if (yaml.isSeq(node))
        for (const [index, each] of node.items.entries()) take(each, each, `${prefix}${index}`);
      if (!yaml.isMap(node)) return;
      for (const { key, value } of node.items)
        if (yaml.isScalar(key)) take(key, value, `${prefix}${key.value}`);
    };
    const take = (at: unknown, value: unknown, name: string): void => {
      if (!yaml.isNode(at) || !at.range) return;
      found.set(name, lines.linePos(at.range[0]).line);
      find(value, `${name}.`);
    };
    find(document.contents, '');
    return found;
  }

  function place(offset: number): string {
    if (offset < 0) return '';
    const { line, col } = lines.linePos(offset);
    return ` at line ${line}, column ${col}`;
  }
}

function faultOf(thrown: unknown): string {
  // Messages of the parser have such text only at the end, behind a colon that follows a word: `The : indicator` has none.
  const [said = ''] = messageOf(thrown).split(/(?<=\S): |:?\n/);
  return YAML_FAULTS[codeOf(thrown) ?? ''] ?? said;
}
