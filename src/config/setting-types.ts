// A setting, and the types of its values: how each is read from text or YAML, written again, and named in
// documents. settings.ts has the table of settings.

import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { globIssue } from '../domain/accounts/globs.ts';
import { jsonIn } from '../domain/json/json.ts';
import { isLoopback } from '../domain/local-address.ts';

interface SettingRow<T> {
  /** The path in gateway.yaml; also the name in documents and in `stagedoor config`. */
  readonly key: string;
  /**
   * The flag on the command line, without the dashes. Default: the key; none for a secret, because other users can
   * read command lines. A secret with a flag refuses the secret part of its value there.
   */
  readonly flag?: string;
  /** The name after `MCP_GATEWAY_` or `GATEWAY_` in the environment. Default: the flag, else the key, in capitals. */
  readonly variable?: string;
  /** True for a value that is masked wherever it is shown; it may also come from the file named by `<variable>_FILE`. */
  readonly secret?: true;
  /** True when all nodes need the same value, because it decides about requests: differences are named. */
  readonly mustAgree?: true;
  readonly kind: SettingType<T>;
  readonly default: T;
  /** The default in documents, when the value itself is not clear. */
  readonly defaultText?: string;
  /** One sentence for help texts and documents. */
  readonly doc: string;
}

export interface Setting<T> extends SettingRow<T> {
  readonly variable: string;
}

export type SettingNames = Pick<Setting<unknown>, 'key' | 'flag' | 'variable' | 'secret'>;

/** Completes a row; checks the default against its type, which the type of the table would not. */
export function setting<T>(row: SettingRow<T>): Setting<T> {
  const flag = row.flag ?? (row.secret ? undefined : row.key.replaceAll(/[_.]/g, '-'));
  const variable = (flag ?? row.key).replaceAll(/[-.]/g, '_').toUpperCase();
  return { variable, ...(flag === undefined ? {} : { flag }), ...row };
}

export type ValuesOf<T> = {
  readonly [Name in keyof T]: T[Name] extends Setting<infer Value> ? Value : ValuesOf<T[Name]>;
};

interface SettingGroup {
  readonly [name: string]: Setting<unknown> | SettingGroup;
}

/** The rows of a group and of the groups in it, in the order of the table. */
export function rowsOf(group: SettingGroup): readonly Setting<unknown>[] {
  return Object.values(group).flatMap((row) => (isSetting(row) ? [row] : rowsOf(row)));
}

/** The value that `read` gives each row, in the form of the table. */
export function readAll<T extends SettingGroup>(
  group: T,
  read: (row: Setting<unknown>) => unknown,
): ValuesOf<T> {
  const values = Object.entries(group).map(([name, row]) => [
    name,
    isSetting(row) ? read(row) : readAll(row, read),
  ]);
  // `read` returns the value of its row; `fromEntries` loses that type.
  return Object.fromEntries(values) as ValuesOf<T>;
}

function isSetting(row: Setting<unknown> | SettingGroup): row is Setting<unknown> {
  return 'kind' in row;
}

/** The place of a value for messages, with its file and line, or of an entry of it: `gateway.yaml:3, auth.issuers`. */
export type PlaceOf = (entry?: string | number) => string;

export interface SettingType<T> {
  /** The words after "expected" in errors, and in a column of the documentation. */
  readonly type: string;
  /** The unit of the number that `show` writes: `seconds`. */
  readonly unit?: string;
  /**
   * Reads a written value: text from a flag or a variable, any YAML value from the file. Undefined for
   * another type. `folder` is the base of relative paths.
   */
  read(raw: unknown, folder: string, placeOf?: PlaceOf): T | undefined;
  /** Writes a value in the form that `read` reads. */
  show(value: T): string;
  /** Writes a value without its secret parts. Default: a secret is hidden as a whole. */
  mask?(value: T): string;
  /** True for a form of earlier builds: it is read, with a warning. Default: none. */
  isEarlier?(raw: unknown): boolean;
  /** True when the value contains something that must not be on a command line. Default: false. */
  holdsSecret?(value: T): boolean;
}

/** A secret of at least `leastBytes` and at most `mostBytes`: code that uses it would truncate a longer one. */
export function secretText(leastBytes: number, mostBytes = 4096): SettingType<string> {
  return {
    type: `a text of ${leastBytes} to ${mostBytes} bytes`,
    read: (raw) => {
      if (typeof raw !== 'string') return undefined;
      const bytes = Buffer.byteLength(raw);
      return bytes >= leastBytes && bytes <= mostBytes && !raw.includes('\0') ? raw : undefined;
    },
    show: String,
  };
}

/** The most keys at a time. */
const MAX_KEYS = 8;

/**
 * One key, or several, separated by commas. A single key may contain commas, unless one of its parts could be a key:
 * then all parts have to be keys. In a YAML list any key may contain commas.
 */
export function secretKeys(leastBytes: number): SettingType<readonly string[]> {
  const one = secretText(leastBytes);
  const list = (parts: readonly unknown[], folder: string): readonly string[] | undefined => {
    const keys = parts.map((part) => one.read(part, folder)).filter((key) => key !== undefined);
    return keys.length === parts.length && keys.length > 0 && keys.length <= MAX_KEYS ? keys : undefined;
  };
  return {
    type: `${one.type}, or up to ${MAX_KEYS} of them, separated by commas`,
    read: (raw, folder) => {
      if (Array.isArray(raw)) return list(raw, folder);
      const parts = typeof raw === 'string' ? raw.split(',').map((part) => part.trim()) : [];
      const areKeys = parts.length > 1 && parts.some((part) => one.read(part, folder) !== undefined);
      return list(areKeys ? parts : [raw], folder);
    },
    show: (keys) => keys.join(', '),
  };
}

/** A URL, kept as written; a password in it is masked for display. `schemes`: the accepted ones. */
export function url(type: string, schemes?: readonly string[]): SettingType<string> {
  // Up to the last @: a user name and an unencoded password may contain one, too.
  const PASSWORD = /^([^/]*\/\/[^/:]*):.*@/;
  return {
    type,
    read: (raw) => {
      const scheme = typeof raw === 'string' ? /^([a-z][a-z0-9+.-]*):\/\/\S*$/i.exec(raw)?.[1] : undefined;
      if (scheme === undefined) return undefined;
      return schemes === undefined || schemes.includes(scheme.toLowerCase()) ? String(raw) : undefined;
    },
    show: String,
    // Parameters may hold a password, too.
    mask: (value) => value.replace(PASSWORD, '$1:********@').replace(/\?.*$/s, '?********'),
    holdsSecret: (value) => PASSWORD.test(value) || /[?&]\w*(pass|secret|key)/i.test(value),
  };
}

/** A text of this form. */
export function matching(type: string, pattern: RegExp): SettingType<string> {
  return text(type, (raw) => (pattern.test(raw) ? raw : undefined));
}

/** A text of at most this many UTF-16 units. */
export function shortText(most: number): SettingType<string> {
  return text(`a text of at most ${most} characters`, (raw) => (raw.length <= most ? raw : undefined));
}

/** A glob; see domain/accounts/globs.ts. */
export const glob = text('globs such as github__*', (raw) =>
  globIssue(raw) === undefined ? raw : undefined,
);

/** A text that is shown in the form that `read` gives it. `read` gives undefined for text of another type. */
function text(type: string, read: (raw: string) => string | undefined): SettingType<string> {
  return { type, read: (raw) => (typeof raw === 'string' ? read(raw) : undefined), show: String };
}

/** Lists of words: a YAML list of lists, or its JSON text. The word `none` is the empty list. */
export const commandPatterns: SettingType<readonly (readonly string[])[]> = {
  type: 'lists of words such as [["npx", "-y", "@scope/server@1.2.3", "--read-only"]]',
  read: (raw) => {
    if (raw === 'none') return [];
    const value = typeof raw === 'string' ? jsonIn(raw) : raw;
    return Array.isArray(value) && value.every(isCommand) ? value : undefined;
  },
  show: (value) => (value.length === 0 ? 'none' : JSON.stringify(value)),
};

function isCommand(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === 'string' && word !== '')
  );
}

/** A file path, made absolute. */
export const path: SettingType<string | undefined> = {
  type: 'a file path',
  read: (raw, folder) => (typeof raw === 'string' && raw !== '' ? resolve(folder, raw) : undefined),
  show: (value) => value ?? 'none',
};

export const boolean: SettingType<boolean> = {
  type: 'true or false',
  read: (raw) => {
    if (typeof raw === 'boolean') return raw;
    const word = asWord(raw);
    if (['true', 'yes', 'on', '1'].includes(word)) return true;
    return ['false', 'no', 'off', '0'].includes(word) ? false : undefined;
  },
  show: String,
};

/** A whole number from `least` to `most`, both included. `what` is a unit, or a noun with an article: `bytes`, `a port`. */
export function integerWithin(least: number, most: number, what = 'a whole number'): SettingType<number> {
  return numbers(what, least, most, { isWhole: true });
}

/** A whole number, or the word `auto`. */
export function integerOrAuto(least: number, most: number): SettingType<number | 'auto'> {
  const number = integerWithin(least, most);
  return {
    type: `auto, or ${number.type}`,
    read: (raw, folder) => (asWord(raw) === 'auto' ? 'auto' : number.read(raw, folder)),
    show: String,
  };
}

/** A number of seconds, decimals allowed; the value is in whole milliseconds. */
export function seconds(least: number, most: number): SettingType<number> {
  return numbers('seconds', least, most, { scale: 1_000 });
}

/** A number of whole minutes; the value is in milliseconds. */
export function minutes(least: number, most: number): SettingType<number> {
  return numbers('minutes', least, most, { scale: 60_000, isWhole: true });
}

/** A number whose value is `scale` times the written one, rounded. */
function numbers(
  what: string,
  least: number,
  most: number,
  { scale = 1, isWhole = false }: { readonly scale?: number; readonly isWhole?: boolean },
): SettingType<number> {
  return {
    type: `${what} from ${least} to ${most}`,
    ...(what.startsWith('a ') ? {} : { unit: what }),
    read: (raw) => {
      const written = readNumber(raw) ?? Number.NaN;
      const isValid = written >= least && written <= most && (!isWhole || Number.isInteger(written));
      return isValid ? Math.round(written * scale) : undefined;
    },
    show: (value) => String(value / scale),
  };
}

/** A whole percentage; the value is a fraction. */
export function percent(least: number, most: number): SettingType<number> {
  const written = integerWithin(least, most, 'percent');
  return {
    ...written,
    read: (raw, folder) => {
      const number = written.read(raw, folder);
      return number === undefined ? undefined : number / 100;
    },
    show: (fraction) => String(Math.round(fraction * 100)),
  };
}

/** One of a few words, in any case; `aliases` are further spellings. */
export function choice<W extends string>(
  words: readonly W[],
  aliases: Readonly<Record<string, W>> = {},
): SettingType<W> {
  return {
    type: `one of ${words.join(', ')}`,
    read: (raw) => {
      const word = asWord(raw);
      return words.find((known) => known === word) ?? new Map(Object.entries(aliases)).get(word);
    },
    show: String,
  };
}

/** One of a few words, for a setting that was true or false before. */
export function choiceForSwitch<W extends string>(
  words: readonly W[],
  earlier: { readonly on: W; readonly off: W },
): SettingType<W> {
  const word = choice(words);
  return {
    ...word,
    read: (raw, folder) => {
      const isOn = boolean.read(raw, folder);
      if (isOn === undefined) return word.read(raw, folder);
      return isOn ? earlier.on : earlier.off;
    },
    isEarlier: (raw) => boolean.read(raw, '') !== undefined,
  };
}

/** An address to listen on: a name or an IP address, without port. */
export const hostName = text('a host name or an IP address, without port', (raw) => {
  const bare = /^\[(.*)\]$/.exec(raw)?.[1] ?? raw;
  // Only a link-local address needs its zone; URLs cannot have one.
  if (isIP(bare) === 6 && !/^fe[89ab]/i.test(bare)) return bare.replace(/%.*/, '');
  return isIP(bare) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/.test(bare) ? bare : undefined;
});

const HOST_AND_PORT = /^(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9._-]*[a-z0-9])?)(:\d{1,5})?$/;

function hostAndPortIn(raw: string): string | undefined {
  const written = raw.toLowerCase();
  const host = isIP(written) === 6 ? `[${written}]` : written;
  const port = Number(/:(\d{1,5})$/.exec(host)?.[1] ?? 0);
  return HOST_AND_PORT.test(host) && port <= MAX_PORT ? host : undefined;
}

const MAX_PORT = 65_535;

/** A name or an address, with a port or without; IPv6 in brackets. */
export const hostAndPort: SettingType<string | undefined> = {
  type: 'a host name or an IP address, with or without a port',
  read: (raw) => (typeof raw === 'string' ? hostAndPortIn(raw) : undefined),
  show: (value) => value ?? 'none',
};

/** A port, or an address and a port. */
export const listenAddress: SettingType<string | undefined> = {
  type: 'a port, or an address and a port such as 0.0.0.0:8090',
  read: (raw) => {
    const port = readNumber(raw);
    if (port !== undefined)
      return Number.isInteger(port) && port >= 0 && port <= MAX_PORT ? String(port) : undefined;
    return typeof raw === 'string' && /:\d{1,5}$/.test(raw) && isIP(raw) !== 6
      ? hostAndPortIn(raw)
      : undefined;
  },
  show: (value) => value ?? 'none',
};

/** A value of the `Host` header: a name or an address, with a port or without; IPv6 in brackets. */
export const hostHeader = text('host names', hostAndPortIn);

/** A value of the `Origin` header. Schemes of editors and browser extensions are also accepted. */
export const origin = text('origins such as https://app.example.com', (raw) => {
  const written = raw.toLowerCase().replace(/\/$/, '');
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@]+$/.test(written) || !URL.canParse(written)) return undefined;
  const { origin } = new URL(written);
  return origin === 'null' ? written : origin;
});

/** An origin without a path, in lower case and without the default port. https, except on this machine. */
export const publicUrl: SettingType<string | undefined> = {
  type: 'an https URL without a path such as https://gateway.example.com, or http on loopback',
  read: (raw) => {
    if (typeof raw !== 'string' || !/^https?:\/\/[^\s/?#@\\]+\/?$/i.test(raw) || !URL.canParse(raw))
      return undefined;
    const { protocol, hostname, origin } = new URL(raw);
    return protocol === 'https:' || isLoopback(hostname) ? origin : undefined;
  },
  show: (value) => value ?? 'none',
};

/** An http or https URL with or without a path, without a slash at its end. */
export const webAddress = text('an http or https URL', (raw) => {
  if (!/^https?:\/\/[^\s?#@\\]+$/i.test(raw) || !URL.canParse(raw)) return undefined;
  return new URL(raw).href.replace(/\/+$/, '');
});

/**
 * The clients that may sign users in: any, those that an admin added (`known`), or those of these hosts as well,
 * which are in lower case.
 */
export type ClientRule = 'any' | 'known' | readonly string[];

export const clientRule: SettingType<ClientRule> = {
  type: 'any, known, or host names, separated by commas',
  read: (raw, folder) => {
    const word = asWord(raw);
    if (word === 'any' || word === 'known') return word;
    const hosts = commaSeparated(hostHeader).read(raw, folder);
    return hosts !== undefined && hosts.length > 0 ? hosts : undefined;
  },
  show: (value) => (typeof value === 'string' ? value : value.join(', ')),
};

/** An origin, or `*` for all. See `origin`. */
export const originOrAll: SettingType<string> = {
  ...origin,
  type: `* or ${origin.type}`,
  read: (raw, folder) => (raw === '*' ? raw : origin.read(raw, folder)),
};

/** The CIDR form of an address or a network, `10.0.0.1/32` for a single one; undefined when `text` is neither. */
function readNetwork(text: string): string | undefined {
  const [address = '', prefix, ...rest] = text.toLowerCase().split('/');
  const version = isIP(address);
  if (version === 0 || address.includes('%') || rest.length > 0) return undefined;
  const longest = version === 4 ? 32 : 128;
  if (prefix === undefined) return `${address}/${longest}`;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= longest ? `${address}/${Number(prefix)}` : undefined;
}

/** An address or a network, converted to CIDR form. */
export const network = text('addresses or networks such as 10.0.0.0/8', readNetwork);

/** Several values of a type: a YAML list, or text with commas. The word `none` is the empty list. */
export function commaSeparated<T>(item: SettingType<T>): SettingType<readonly T[]> {
  return {
    type: `${item.type}, separated by commas`,
    read: (raw, folder) => {
      const values: T[] = [];
      for (const part of splitList(raw) ?? [undefined]) {
        const value = part === undefined ? undefined : item.read(part, folder);
        if (value === undefined) return undefined;
        values.push(value);
      }
      return values;
    },
    show: (values) => (values.length === 0 ? 'none' : values.map((value) => item.show(value)).join(', ')),
  };
}

function splitList(raw: unknown): readonly unknown[] | undefined {
  if (Array.isArray(raw)) return raw;
  if (typeof raw !== 'string') return undefined;
  if (raw.trim() === 'none') return [];
  return raw.split(',').map((part) => part.trim());
}

/** The value in lower case, for comparison; `''`, which matches no value, for other types. */
function asWord(raw: unknown): string {
  return typeof raw === 'string' ? raw.toLowerCase() : '';
}

function readNumber(raw: unknown): number | undefined {
  if (typeof raw === 'number') return raw;
  return typeof raw === 'string' && /^\d{1,15}(\.\d+)?$/.test(raw) ? Number(raw) : undefined;
}
