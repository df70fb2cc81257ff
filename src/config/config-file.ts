// Reads gateway.yaml into values by their dotted key, and refuses what no setting is called.
// It does not know kinds of values: config/kinds.ts reads them.

import { createRequire } from 'node:module';
import { ConfigError } from './config-error.ts';
import { nearest } from './nearest.ts';

/**
 * Values of a configuration file by key (`load_balancer.strategy`). `fileName` is how errors call the file.
 * Throws ConfigError for text that is not YAML, a document that is not a mapping, and a key that is not in `keys`;
 * the last names the nearest key. Source: decisions, "Precedence".
 */
export function readConfigFile(
  text: string,
  fileName: string,
  keys: readonly string[],
): ReadonlyMap<string, unknown> {
  const document = parseYaml(text, fileName);
  const values = new Map<string, unknown>();
  if (document === null || document === undefined) return values;
  if (!isMapping(document))
    throw new ConfigError(`${fileName}: expected settings, one "key: value" per line`);
  collect(document, '');
  return values;

  function collect(section: Readonly<Record<string, unknown>>, prefix: string): void {
    for (const [name, value] of Object.entries(section)) {
      const key = prefix + name;
      const isSection = keys.some((known) => known.startsWith(`${key}.`));
      if (values.has(key)) throw new ConfigError(`${fileName}: ${key} is set twice`);
      if (keys.includes(key)) values.set(key, value);
      else if (isSection && isMapping(value)) collect(value, `${key}.`);
      else if (isSection && value !== null)
        throw new ConfigError(`${fileName}: ${key} is a section${hint(key)}`);
      else if (!isSection) throw new ConfigError(`${fileName}: unknown key ${key}${hint(key)}`);
    }
  }

  function hint(key: string): string {
    const members = keys.filter((known) => known.startsWith(`${key}.`));
    return members.length > 0 ? ` of ${members.join(', ')}` : `; the nearest is ${nearest(key, keys)}`;
  }
}

function parseYaml(text: string, fileName: string): unknown {
  // Loaded here and synchronously: most gateways have no file, and `--help` should not wait for a YAML parser.
  const yaml: typeof import('yaml') = createRequire(import.meta.url)('yaml');
  const document = yaml.parseDocument(text, { prettyErrors: true });
  const [problem] = document.errors;
  if (problem !== undefined) {
    const [reason = 'not YAML'] = problem.message.split('\n');
    throw new ConfigError(`${fileName}: ${reason.replace(/:$/, '')}`, problem);
  }
  try {
    return document.toJS();
  } catch (thrown) {
    // Aliases that point nowhere or multiply are found only here.
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new ConfigError(`${fileName}: ${reason}`, thrown);
  }
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
