// The sources of settings: flags, then the environment, then gateway.yaml, whose unknown keys are refused.

import { dirname, resolve } from 'node:path';
import { codeOf, fileFault, messageOf } from '../domain/errors/errors.ts';
import type { Variables } from '../domain/instances/command.ts';
import { isJsonObject } from '../domain/json/json.ts';
import { nearest, nearMiss } from '../domain/nearest.ts';
import { utf8Text } from '../domain/text.ts';
import { ConfigError, type ConfigErrors } from './config-error.ts';
import { readFileNow } from './read-file.ts';
import type { PlaceOf, Setting, SettingNames } from './setting-types.ts';
import { readYaml } from './yaml.ts';

/** Values of the command line by flag name without dashes; a flag without value is `true`, `--no-x` is `x: false`. */
export type Flags = Readonly<Record<string, string | boolean | undefined>>;

export interface SourcesOptions {
  readonly flags?: Flags;
  /** The environment. An empty variable counts as not set. */
  readonly env?: Variables;
  /** The folder of gateway.yaml, and the base of relative paths. */
  readonly cwd: string;
  /** Reads the text of a file, undefined when there is none. Default: from the file system. */
  readonly readFile?: (path: string) => string | undefined;
  /** The host name of this machine. Default: the one of the system. */
  readonly hostName?: string;
}

/** A value as written. `source` names its place for messages: `--port`, `GATEWAY_PORT`, `gateway.yaml, port`. */
export interface Found {
  readonly raw: unknown;
  readonly kind: 'flag' | 'environment' | 'file';
  readonly source: string;
  /** The source, with its line if the value is in a file. */
  readonly placeOf: PlaceOf;
  /** The base of a relative path in the value. */
  readonly folder: string;
}

/** The bounds of a file of settings, which is parsed in one turn, before anything runs. */
export const SETTINGS_FILE = {
  characters: 262_144,
  /** The most unknown keys that are named. */
  unknownKeys: 100,
} as const;
/** The most characters of a value that an error repeats. */
const MAX_QUOTE_LENGTH = 60;
const OWN_PREFIX = 'MCP_GATEWAY_';
const SHARED_PREFIX = 'GATEWAY_';
export type Prefix = typeof OWN_PREFIX | typeof SHARED_PREFIX;

/**
 * Finds a setting in the first source that has it. Each value keeps the name of its source. setting-types.ts reads the
 * values; listeners.ts assigns each HOST and PORT to a listener.
 */
export class Sources {
  /** Absolute paths of the files read so far. */
  readonly files: string[] = [];
  readonly #input: SourcesOptions;
  readonly #file: ({ readonly name: string } & FileValues) | undefined;

  /**
   * Reads the configuration file (`flags.config`, else `gateway.yaml` in `cwd` when it exists). `errors` gets the error of a file
   * that cannot be read, and of each unknown key in it.
   */
  constructor(input: SourcesOptions, keys: readonly string[], errors: ConfigErrors) {
    this.#input = input;
    this.#file = errors.attempt(() => this.#openFile(keys, errors), undefined);
  }

  /** The setting in the first of flag, environment and file. */
  find(names: SettingNames): Found | undefined {
    return this.flag(names) ?? this.environment(names) ?? this.file(names);
  }

  flag({ flag }: SettingNames): Found | undefined {
    const raw = flag === undefined ? undefined : this.#input.flags?.[flag];
    if (raw === undefined) return undefined;
    const source = `--${flag}`;
    return { raw, kind: 'flag', source, placeOf: () => source, folder: this.#input.cwd };
  }

  /** The variable with either prefix. Throws ConfigError when both are set and differ. */
  environment(names: SettingNames): Found | undefined {
    const a = this.variable(OWN_PREFIX, names);
    const b = this.variable(SHARED_PREFIX, names);
    if (a !== undefined && b !== undefined && a.raw !== b.raw)
      throw new ConfigError(
        `${a.source} and ${b.source} differ but name the same setting: unset one of them`,
      );
    return a ?? b;
  }

  /** One variable; for a secret also the file that `<variable>_FILE` names. */
  variable(prefix: Prefix, { variable, secret }: SettingNames): Found | undefined {
    const { env = {}, cwd: folder } = this.#input;
    const kind = 'environment';
    const source = prefix + variable;
    const raw = env[source] || undefined;
    const secretFile = secret ? env[`${source}_FILE`] || undefined : undefined;
    const placeOf = () => source;
    if (secretFile === undefined)
      return raw === undefined ? undefined : { raw, kind, source, placeOf, folder };
    if (raw !== undefined)
      throw new ConfigError(`${source} and ${source}_FILE are both set: unset one of them`);
    const text = this.#readRequired(secretFile, `${source}_FILE`);
    // Editors and `echo` end a file with a line break that is not part of the secret.
    const ofFile = `${source}_FILE`;
    return { raw: text.replace(/[\r\n]+$/, ''), kind, source: ofFile, placeOf: () => ofFile, folder };
  }

  file({ key }: SettingNames): Found | undefined {
    if (this.#file?.values.has(key) !== true) return undefined;
    const { name, values, lineOf } = this.#file;
    return {
      raw: values.get(key),
      kind: 'file',
      source: `${name}, ${key}`,
      placeOf: (entry) => `${lineOf(`${key}.${entry}`, key)}, ${key}`,
      folder: dirname(resolve(this.#input.cwd, name)),
    };
  }

  #openFile(keys: readonly string[], errors: ConfigErrors) {
    const named = this.#input.flags?.config;
    const name = typeof named === 'string' ? named : 'gateway.yaml';
    const text = named === undefined ? this.#read(name, name) : this.#readRequired(name, '--config');
    return text === undefined ? undefined : { name, ...readConfigFile(text, name, keys, errors) };
  }

  #readRequired(path: string, source: string): string {
    const text = this.#read(path, source);
    if (text === undefined) throw new ConfigError(`${source}: there is no file ${JSON.stringify(path)}`);
    return text;
  }

  #read(path: string, source: string): string | undefined {
    const { cwd, readFile = readTextFile } = this.#input;
    const absolute = resolve(cwd, path);
    try {
      const text = readFile(absolute);
      if (text !== undefined) this.files.push(absolute);
      return text;
    } catch (thrown) {
      throw new ConfigError(
        `${source}: the file ${JSON.stringify(path)} cannot be read (${fileFault(thrown)})`,
        thrown,
      );
    }
  }
}

function readTextFile(path: string): string | undefined {
  try {
    return utf8Text(readFileNow(path));
  } catch (thrown) {
    if (codeOf(thrown) === 'ENOENT') return undefined;
    throw thrown;
  }
}

/** The value of a setting where it was found, or its default. Throws ConfigError when it is none of its type. */
export function readFound<T>(row: Setting<T>, found: Found | undefined): T {
  if (found === undefined) return row.default;
  const value = row.kind.read(found.raw, found.folder, found.placeOf);
  if (value !== undefined && found.kind === 'flag' && row.kind.holdsSecret?.(value)) {
    throw new ConfigError(
      `${found.source}: all users of this machine can read a password on a command line; put it into GATEWAY_${row.variable}`,
    );
  }
  if (value !== undefined) return value;
  const shown = row.secret ? '' : `; found ${shorten(found.raw)}`;
  throw new ConfigError(`${found.placeOf()}: expected ${row.kind.type}${shown}`);
}

/** The written value, shortened to one line. A list or a section may be long, or even contain itself. */
export function shorten(raw: unknown): string {
  if (raw === null) return 'nothing';
  if (Array.isArray(raw))
    return raw.every((item) => typeof item === 'string') ? cut(raw.join(', ')) : 'a list';
  return typeof raw === 'object' ? 'a section' : cut(String(raw));
}

function cut(text: string): string {
  return JSON.stringify(text.length > MAX_QUOTE_LENGTH ? `${text.slice(0, MAX_QUOTE_LENGTH)}...` : text);
}

/** The names of variables that Kubernetes sets in every pod beside a Service called "mcp-gateway" or "gateway". */
const SERVICE_LINK = /^(SERVICE_(HOST|PORT(_.+)?)|PORT_\d+_.+)$/;

/**
 * One line for each variable that looks like a setting but is none, with the nearest name and without the
 * value. Other programs also have variables that begin with GATEWAY_: only near misses of those count.
 */
export function unknownVariables(environment: Variables, settings: readonly SettingNames[]): string[] {
  const known = settings.flatMap(({ variable, secret }) =>
    secret ? [variable, `${variable}_FILE`] : [variable],
  );
  const unknown = (prefix: string): readonly string[] =>
    Object.entries(environment)
      .filter(([name, value]) => name.startsWith(prefix) && value)
      .map(([name]) => name.slice(prefix.length))
      .filter((name) => !known.includes(name) && !SERVICE_LINK.test(name));
  const warning = (name: string, advice: string) => `${name} has no effect: unknown setting; ${advice}`;
  return [
    ...unknown(OWN_PREFIX).map((name) =>
      warning(OWN_PREFIX + name, `the nearest is ${OWN_PREFIX}${nearest(name, known)}`),
    ),
    ...unknown(SHARED_PREFIX).flatMap((name) => {
      const meant = nearMiss(name, known);
      return meant === undefined
        ? []
        : warning(SHARED_PREFIX + name, `did you mean ${SHARED_PREFIX}${meant}?`);
    }),
  ];
}

interface FileValues {
  readonly values: ReadonlyMap<string, unknown>;
  /** The file and the line of the first of these keys that has one, in the form that compilers use. */
  lineOf(...keys: readonly string[]): string;
}

/**
 * Values of a configuration file by key (`load_balancer.strategy`). `fileName` names the file in errors.
 * Throws ConfigError for text that is not YAML and for a document that is not a mapping; `errors` gets the error of each key that
 * is not in `keys`, with its line and the nearest key.
 */
function readConfigFile(
  text: string,
  fileName: string,
  keys: readonly string[],
  errors: ConfigErrors,
): FileValues {
  const { value: document, keyLines } = parseSettings(text, fileName);
  const lines = keyLines();
  const values = new Map<string, unknown>();
  const lineOf = (...keys: readonly string[]) => {
    const line = keys.map((key) => lines.get(key)).find((each) => each !== undefined);
    return line === undefined ? fileName : `${fileName}:${line}`;
  };
  const sections = keys.flatMap((key) => (key.includes('.') ? [key.slice(0, key.lastIndexOf('.'))] : []));
  if (document === null || document === undefined) return { values, lineOf };
  if (!isJsonObject(document))
    throw new ConfigError(`${fileName}: expected settings, one "key: value" per line`);
  const known = [...keys, ...sections];
  let unknown = 0;
  collect(document, '');
  if (unknown > SETTINGS_FILE.unknownKeys)
    errors.attempt(() => {
      throw new ConfigError(`${fileName}: ${unknown - SETTINGS_FILE.unknownKeys} more unknown keys`);
    }, undefined);
  return { values, lineOf };

  function collect(section: Readonly<Record<string, unknown>>, prefix: string): void {
    for (const [name, value] of Object.entries(section))
      errors.attempt(() => take(prefix + name, value), undefined);
  }

  function take(key: string, value: unknown): void {
    const isSection = keys.some((known) => known.startsWith(`${key}.`));
    const sourceLine = lineOf(key);
    if (values.has(key)) throw new ConfigError(`${sourceLine}: ${key} is set twice`);
    if (keys.includes(key)) values.set(key, value);
    else if (isSection && isJsonObject(value)) collect(value, `${key}.`);
    else if (isSection && value !== null) throw new ConfigError(`${sourceLine}: ${key} is a section`);
    else if (!isSection) {
      unknown += 1;
      if (unknown <= SETTINGS_FILE.unknownKeys)
        throw new ConfigError(`${sourceLine}: unknown key ${key}; the nearest is ${nearest(key, known)}`);
    }
  }
}

function parseSettings(text: string, fileName: string) {
  if (text.length > SETTINGS_FILE.characters)
    throw new ConfigError(
      `${fileName}: it has more than ${SETTINGS_FILE.characters / 1024} KiB; servers belong in the file that registry_file names`,
    );
  try {
    return readYaml(text);
  } catch (thrown) {
    throw new ConfigError(`${fileName}: ${messageOf(thrown)}`, thrown);
  }
}
