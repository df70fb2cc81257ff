// Reads gateway.yaml into values by their dotted key, and refuses unknown keys. setting-types.ts reads the values.

import { createRequire } from 'node:module';
import { ConfigError, type Noting } from './config-error.ts';
import { nearest } from './nearest.ts';

/** A value of the file. */
export interface FileValue {
  readonly value: unknown;
  /** File and line, as compilers write them. */
  readonly place: string;
}

/**
 * Values of a configuration file by key (`load_balancer.strategy`). `fileName` is how errors call the file.
 * Throws ConfigError for text that is not YAML and a document that is not a mapping; `note` records each key that is not
 * in `keys`, with its line and the nearest key.
 */
export function readConfigFile(
  text: string,
  fileName: string,
  { keys, note }: { readonly keys: readonly string[]; readonly note: Noting },
): ReadonlyMap<string, FileValue> {
  const { document, lines } = parseYaml(text, fileName);
  const values = new Map<string, FileValue>();
  if (document === null || document === undefined) return values;
  if (!isMapping(document))
    throw new ConfigError(`${fileName}: expected settings, one "key: value" per line`);
  collect(document, '');
  return values;

  function collect(section: Readonly<Record<string, unknown>>, prefix: string): void {
    for (const [name, value] of Object.entries(section)) note(() => take(prefix + name, value), undefined);
  }

  function take(key: string, value: unknown): void {
    const isSection = keys.some((known) => known.startsWith(`${key}.`));
    const line = lines.get(key);
    const place = line === undefined ? fileName : `${fileName}:${line}`;
    if (values.has(key)) throw new ConfigError(`${place}: ${key} is set twice`);
    if (keys.includes(key)) values.set(key, { value, place });
    else if (isSection && isMapping(value)) collect(value, `${key}.`);
    else if (isSection && value !== null) throw new ConfigError(`${place}: ${key} is a section${hint(key)}`);
    else if (!isSection) throw new ConfigError(`${place}: unknown key ${key}${hint(key)}`);
  }

  function hint(key: string): string {
    const members = keys.filter((known) => known.startsWith(`${key}.`));
    return members.length > 0 ? ` of ${members.join(', ')}` : `; the nearest is ${nearest(key, keys)}`;
  }
}

interface Parsed {
  readonly document: unknown;
  /** Line of each key, by its dotted name; keys merged in by an alias have none. */
  readonly lines: ReadonlyMap<string, number>;
}

function parseYaml(text: string, fileName: string): Parsed {
  // Loaded here and synchronously: most gateways have no file, and `--help` should not wait for a YAML parser.
  const yaml: typeof import('yaml') = createRequire(import.meta.url)('yaml');
  const lineCounter = new yaml.LineCounter();
  const document = yaml.parseDocument(text, { prettyErrors: true, lineCounter });
  const [problem] = document.errors;
  if (problem !== undefined) {
    const [reason = 'not YAML'] = problem.message.split('\n');
    throw new ConfigError(`${fileName}: ${reason.replace(/:$/, '')}`, problem);
  }
  const lines = new Map<string, number>();
  const find = (node: unknown, prefix: string): void => {
    if (!yaml.isMap(node)) return;
    for (const { key, value } of node.items) {
      if (!yaml.isScalar(key) || !key.range) continue;
      const name = `${prefix}${key.value}`;
      lines.set(name, lineCounter.linePos(key.range[0]).line);
      find(value, `${name}.`);
    }
  };
  find(document.contents, '');
  try {
    return { document: document.toJS(), lines };
  } catch (thrown) {
    // Unresolved and excessive aliases are reported only here.
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new ConfigError(`${fileName}: ${reason}`, thrown);
  }
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
