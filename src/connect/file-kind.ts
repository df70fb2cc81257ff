// Clients that are configured by a file: their snippet is the section of the file with one entry, in the language of the file.

import { stringify as yaml } from 'yaml';
import {
  type ConfigFile,
  type Connection,
  type ConnectKind,
  environmentOf,
  type FileLocations,
  headersOf,
  unlessEmpty,
} from './kind.ts';

/** The row of such a client. Default: it can do both transports. */
export function fileKind({
  file,
  transports = ['stdio', 'http'],
  ...kind
}: Omit<ConnectKind, 'file' | 'language' | 'snippet' | 'transports'> & {
  readonly file: ConfigFile;
  readonly transports?: ConnectKind['transports'];
}): ConnectKind {
  const snippet = (connection: Connection) => configText(file, connection);
  return { ...kind, transports, language: file.format, file, snippet };
}

/** A file in JSON with a map from names of servers to entries of the usual form. */
export function jsonFile(locations: FileLocations, form: EntryForm, section = ['mcpServers']): ConfigFile {
  return { format: 'json', locations, section, entry: (connection) => serverEntry(connection, form) };
}

/** What distinguishes the entries of one client from those of others. */
interface EntryForm {
  /** How a variable is named; without it the key is a placeholder. */
  readonly reference?: (variable: string) => string;
  /** First members of an entry of this transport, such as its type. */
  readonly stdio?: Readonly<Record<string, unknown>>;
  readonly http?: Readonly<Record<string, unknown>>;
  /** Last members of every entry. */
  readonly last?: Readonly<Record<string, unknown>>;
  /** The name of the member with the URL. Default `url`. */
  readonly urlName?: string;
}

/** The entry that most clients have: command, args, env; or url, headers. */
export function serverEntry(
  connection: Connection,
  { reference, stdio, http, last, urlName = 'url' }: EntryForm,
): Readonly<Record<string, unknown>> {
  if (connection.transport === 'http') {
    const headers = headersOf(connection, reference);
    return { ...http, [urlName]: connection.endpoint, ...unlessEmpty('headers', headers), ...last };
  }
  const { command, args } = connection;
  const env = environmentOf(connection, reference);
  return { ...stdio, command, args, ...unlessEmpty('env', env), ...last };
}

/** How clients name a variable in their files. */
export const shellReference = (variable: string) => `\${${variable}}`;
export const envReference = (variable: string) => `\${env:${variable}}`;

/** The whole file as it would be with this one server. Without a line end. */
export function configText(file: ConfigFile, connection: Connection): string {
  const { format, section, entry, isList, preamble } = file;
  const { template } = connection;
  if (format === 'toml') return tomlTable([...section, template], entry(connection));
  const servers = isList ? [entry(connection)] : { [template]: entry(connection) };
  const document = {
    ...preamble,
    ...Object(section.reduceRight<unknown>((inner, name) => ({ [name]: inner }), servers)),
  };
  return format === 'yaml' ? yaml(document, { lineWidth: 0 }).trimEnd() : JSON.stringify(document, null, 2);
}

/** A table of TOML: strings, numbers, booleans, lists of strings, and tables of strings, which are written inline. */
export function tomlTable(path: readonly string[], entry: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(entry).map(([name, value]) => `${tomlKey(name)} = ${tomlValue(value)}`);
  return [`[${path.map(tomlKey).join('.')}]`, ...lines].join('\n');
}

function tomlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    return `{ ${Object.entries(value)
      .map(([name, each]) => `${tomlKey(name)} = ${tomlValue(each)}`)
      .join(', ')} }`;
  }
  return JSON.stringify(value); // the escapes of JSON are among those of TOML
}

function tomlKey(name: string): string {
  return /^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name);
}
