// The settings of a gateway: turns flags, environment and gateway.yaml into one Config with the source of
// each value. config/settings.ts has the table of settings; no other setting is read from the environment.
// discovery/ finds engines and clusters by the variables of their own tools.

import { hostname } from 'node:os';
import { isLoopback, joinHostPort } from '../domain/local-address.ts';
import { ConfigError, ConfigErrors } from './config-error.ts';
import { undefinedRoles } from './role-settings.ts';
import { readAll, type Setting, type SettingNames, type ValuesOf } from './setting-types.ts';
import { ALL_SETTINGS, SETTINGS } from './settings.ts';
import { type Found, type Prefix, Sources, type SourcesOptions, unknownVariables } from './sources.ts';

/**
 * The settings of one gateway: complete, checked, times in milliseconds. One property per row of the table of
 * settings; properties that follow from several rows are declared here.
 */
export interface Config extends ValuesOf<Omit<typeof SETTINGS, 'host' | 'port' | 'nodeId'>> {
  /** The addresses to listen on, at least one. */
  readonly listeners: readonly ListenAddress[];
  /** True when no port is set: then one port in use is a warning, and two are an error. */
  readonly portsDefaulted: boolean;
  /** The name of this gateway among those on the same database. */
  readonly nodeId: string;
  /** The host name in `nodeId` when the system chooses the port: `nodeId` ends with 0 until the port is open. */
  readonly nodeHost: string | undefined;
  /** The working folder: base of relative paths, such as that of a SQLite file. */
  readonly folder: string;
  /** The absolute paths of gateway.yaml and of the secret files that were read. */
  readonly files: readonly string[];
  /** The warnings about settings that have no effect, one line each, for the log. */
  readonly warnings: readonly string[];
  /** Every setting in the form of `stagedoor config`: the listeners, then one row per setting. */
  readonly rows: readonly ConfigRow[];
}

/** A setting in effect. Secrets are masked. */
export interface ConfigRow {
  readonly name: string;
  /** The value as text, in the form of gateway.yaml; of a listener, its address. */
  readonly value: string;
  /**
   * The value for JSON: a number, in the unit of gateway.yaml, a boolean, a list, a text, or null for none; of a
   * listener, all of it.
   */
  readonly typed: unknown;
  /**
   * `default`, or the place of the value: `--port`, `GATEWAY_PORT`, `gateway.yaml, port`. A listener may have
   * two: `port: GATEWAY_PORT; host: default`.
   */
  readonly source: string;
  /** The kind of the source; of a listener that of its port, or of its host when only the host is set. */
  readonly sourceKind: Found['kind'] | 'default';
  /** The setting; undefined for a listener, which has two rows of the table. */
  readonly setting?: Setting<unknown>;
}

const MASK = '********';
/** The most characters of a value that an error repeats. */
const MAX_QUOTE_LENGTH = 60;

/**
 * Reads all settings. A flag takes precedence over the environment, the environment over gateway.yaml,
 * gateway.yaml over the default. Throws ConfigError (one line per setting, exit code 2) for invalid values:
 * wrong type, out of bounds, or an unknown key.
 */
export function loadConfig(input: SourcesOptions): Config {
  const errors = new ConfigErrors();
  const keys = ALL_SETTINGS.map(({ key }) => key);
  const sources = new Sources(input, keys, errors);
  const { listeners, rows, portsDefaulted, warnings } = resolveListeners(sources, errors);
  const earlier: string[] = [];
  const { host: _host, port: _port, ...table } = SETTINGS;
  const { nodeId, ...values } = readAll(table, read);
  const config: Config = {
    ...withPublicUrl(values),
    ...nodeOf(values.databaseUrl, nodeId),
    listeners,
    portsDefaulted,
    folder: input.cwd,
    files: sources.files,
    warnings: [...warnings, ...earlier, ...unknownVariables(input.env ?? {}, ALL_SETTINGS)],
    rows,
  };
  for (const line of undefinedRoles(config.roles, settingsOfRoles(config, sources))) errors.add(line);
  errors.check();
  return config;

  /**
   * The name of the node. A database file has one gateway, whatever its port; gateways on a server database are named
   * by their address.
   */
  function nodeOf(url: string, named: string | undefined): Pick<Config, 'nodeId' | 'nodeHost'> {
    if (named !== undefined || /^sqlite/i.test(url)) return { nodeId: named ?? 'local', nodeHost: undefined };
    const host = input.hostName ?? hostname();
    const port = listeners[0]?.port ?? 0;
    return { nodeId: `${host}:${port}`, nodeHost: port === 0 ? host : undefined };
  }

  function read<T>(row: Setting<T>): T {
    return errors.attempt(() => {
      const found = sources.find(row);
      const value = readFound(row, found);
      if (found !== undefined && row.kind.isEarlier?.(found.raw) === true) {
        const shown = row.kind.show(value);
        earlier.push(
          `${found.source}: ${shorten(found.raw)} is read as "${shown}"; write "${shown}" instead`,
        );
      }
      rows.push(rowOf(row, value, found));
      return value;
    }, row.default);
  }
}

function settingsOfRoles({ oauth: { issuers, providers } }: Pick<Config, 'oauth'>, sources: Sources) {
  const named = <T extends { readonly issuer: string }>(row: SettingNames, all: readonly T[]) =>
    all.map((each, index) => ({
      settingName: `${sources.find(row)?.placeOf(index)}, ${each.issuer}`,
      ...each,
    }));
  return [...named(SETTINGS.oauth.issuers, issuers), ...named(SETTINGS.oauth.providers, providers)];
}

/** The settings with the host of `public_url` as an allowed host, and its origin as an allowed origin. */
function withPublicUrl<T extends Pick<Config, 'publicUrl' | 'allowedHosts' | 'allowedOrigins'>>(
  values: T,
): T {
  const { publicUrl, allowedHosts, allowedOrigins } = values;
  if (publicUrl === undefined) return values;
  const { host } = new URL(publicUrl);
  return {
    ...values,
    allowedHosts: [...allowedHosts, host],
    allowedOrigins: [...allowedOrigins, publicUrl],
  };
}

function readFound<T>(row: Setting<T>, found: Found | undefined): T {
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

function rowOf<T>(setting: Setting<T>, value: T, found: Found | undefined): ConfigRow {
  const { key: name, kind, secret, defaultText } = setting;
  const typed = typeof value === 'number' ? Number(kind.show(value)) : (value ?? null);
  if (found === undefined) {
    const shown = defaultText ?? kind.show(value);
    return { name, value: shown, typed, source: 'default', sourceKind: 'default', setting };
  }
  const { source, kind: sourceKind } = found;
  const masked = secret && (kind.mask?.(value) ?? MASK);
  return { name, value: masked ?? kind.show(value), typed: masked ?? typed, source, sourceKind, setting };
}

/** The written value, shortened to one line. A list or a section may be long, or even contain itself. */
function shorten(raw: unknown): string {
  if (raw === null) return 'nothing';
  if (Array.isArray(raw))
    return raw.every((item) => typeof item === 'string') ? cut(raw.join(', ')) : 'a list';
  return typeof raw === 'object' ? 'a section' : cut(String(raw));
}

function cut(text: string): string {
  return JSON.stringify(text.length > MAX_QUOTE_LENGTH ? `${text.slice(0, MAX_QUOTE_LENGTH)}...` : text);
}

// --- the addresses of the gateway: each listener serves all routes; the two defaults, for calls by template and for
// servers, differ only in their port and in the variables that change it. No socket is opened here: the server
// reports a port that is in use.

/** One address to listen on. `label` is its name in messages. */
export interface ListenAddress {
  readonly host: string;
  /** The port; 0 means a free one. */
  readonly port: number;
  readonly label: 'templates' | 'servers' | 'gateway' | 'metrics';
  /** The source of the port; undefined for a default and for `--port`. */
  readonly portSource?: string;
}

/**
 * The listeners without settings: templates on 8080, servers on 8000, as clients of the two parts of the API expect.
 * Source: ADR 1.
 */
const DEFAULTS = [
  { label: 'templates', prefix: 'MCP_GATEWAY_', defaultPort: 8080 },
  { label: 'servers', prefix: 'GATEWAY_', defaultPort: 8000 },
] as const;

/**
 * The listeners of a gateway, and their rows. `--port` takes precedence; else each PORT variable makes a listener; else the
 * port of the file; else both defaults.
 */
function resolveListeners(sources: Sources, errors: ConfigErrors) {
  const warnings: string[] = [];
  const read = <T>(row: Setting<T>, found: Found | undefined): T =>
    errors.attempt(() => readFound(row, found), row.default);
  const ports = DEFAULTS.map((each) => ({ ...each, found: portVariable(each.prefix) }));
  const single =
    sources.flag(SETTINGS.port) ??
    (ports.some(({ found }) => found) ? undefined : sources.file(SETTINGS.port));
  const portsDefaulted = single === undefined && ports.every(({ found }) => found === undefined);

  const listeners: ListenAddress[] = [];
  const rows: ConfigRow[] = [];
  if (single !== undefined) {
    const host = () => sources.flag(SETTINGS.host) ?? sources.environment(SETTINGS.host);
    add('gateway', single, errors.attempt(host, undefined));
  } else {
    for (const { label, prefix, defaultPort, found } of ports) {
      const own = sources.variable(prefix, SETTINGS.host);
      const isOpen = portsDefaulted || found !== undefined;
      if (isOpen) add(label, found, sources.flag(SETTINGS.host) ?? own, defaultPort);
      else if (own)
        warnings.push(`${own.source} has no effect: ${prefix}PORT is not set, but another port is`);
    }
  }
  const closed = DEFAULTS.find(({ label }) => listenerOf(label, isLoopback));
  const open = DEFAULTS.find(({ label }) => listenerOf(label, (host) => !isLoopback(host)));
  if (closed && open && sources.variable(open.prefix, SETTINGS.host) === undefined)
    warnings.push(
      `port ${listenerOf(open.label)?.port} accepts connections of other machines: ${closed.prefix}HOST is for port ` +
        `${listenerOf(closed.label)?.port} only; set ${open.prefix}HOST as well, or --host for both`,
    );
  return { listeners, rows, portsDefaulted, warnings };

  function listenerOf(
    label: string,
    isSuch: (host: string) => boolean = () => true,
  ): ListenAddress | undefined {
    return listeners.find((each) => each.label === label && isSuch(each.host));
  }

  function add(label: ListenAddress['label'], port?: Found, host?: Found, otherwise = 0): void {
    const hostFound = host ?? sources.file(SETTINGS.host);
    const listener = {
      label,
      host: read(SETTINGS.host, hostFound),
      port: read(SETTINGS.port, port) ?? otherwise,
      ...(port === undefined || sources.flag(SETTINGS.port) ? {} : { portSource: port.placeOf() }),
    };
    const isTwin = listeners.some(
      ({ host, port }) => port !== 0 && port === listener.port && host === listener.host,
    );
    const [ofPort, ofHost] = [port?.source ?? 'default', hostFound?.source ?? 'default'];
    const source = ofPort === ofHost ? ofPort : `port: ${ofPort}; host: ${ofHost}`;
    if (isTwin) return;
    listeners.push(listener);
    const value = joinHostPort(listener.host, listener.port);
    const sourceKind = (port ?? hostFound)?.kind ?? 'default';
    rows.push({ name: 'listen', value, typed: listener, source, sourceKind });
  }

  function portVariable(prefix: Prefix): Found | undefined {
    const found = sources.variable(prefix, SETTINGS.port);
    // Kubernetes sets <NAME>_PORT=tcp://... in every pod beside a Service called "gateway" or "mcp-gateway".
    if (!/^(tcp|udp):\/\//.test(String(found?.raw))) return found;
    warnings.push(`${found?.source} is ignored: it looks like a Kubernetes service link, not like a port`);
    return undefined;
  }
}
