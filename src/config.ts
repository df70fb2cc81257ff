// The settings of a gateway: turns flags, environment and gateway.yaml into one Config, and tells where each came from.
// The table of settings is config/settings.ts; no other setting is read from the environment. Where engines
// and clusters are is said by the variables of their own tools (discovery/).

import { hostname } from 'node:os';
import { ConfigError, ConfigFaults } from './config/config-error.ts';
import { type Listener, resolveListeners } from './config/listeners.ts';
import type { Setting } from './config/setting.ts';
import type { LogLevel } from './config/settings/service.ts';
import { SETTINGS } from './config/settings.ts';
import { type Found, openSources, type SourcesInput } from './config/sources.ts';
import { unknownVariables } from './config/unknown-variables.ts';
import type { OwnBounds } from './domain/limits.ts';
import type { BalancerPolicy } from './domain/policy.ts';

/** The settings of one gateway: complete, checked, times in milliseconds. */
export interface Config {
  /** At least one. */
  readonly listeners: readonly Listener[];
  /** True when nobody set a port: then one taken port is a warning and only both taken are an error. */
  readonly portsDefaulted: boolean;
  readonly logLevel: LogLevel;
  readonly authEnabled: boolean;
  readonly tokenLifetimeMs: number;
  /** At least 32 bytes; undefined = the gateway makes one. Secret. */
  readonly secretKey: string | undefined;
  /** For the first admin. Secret. */
  readonly adminPassword: string | undefined;
  /** Requests per hour. */
  readonly userHourlyLimit: number;
  readonly apiKeyHourlyLimit: number;
  /** May hold a password. */
  readonly redisUrl: string | undefined;
  /** As it was written, see persistence/open.ts; may hold a password. */
  readonly databaseUrl: string;
  /** The first encrypts, all decrypt. Secret. */
  readonly encryptionKeys: readonly string[];
  /** Absolute; undefined = beside the database. */
  readonly stateFolder: string | undefined;
  /** Name of this gateway among those on the same database. */
  readonly nodeId: string;
  /** Its first part, when the rest is a port that the system chooses: `nodeId` says 0 until the port is open. */
  readonly nodeHost: string | undefined;
  /** Absolute; undefined = the templates of the package. */
  readonly templatesFolder: string | undefined;
  /** Patterns of whole commands that need no admin. */
  readonly allowedCommands: readonly (readonly string[])[];
  /** Names of variables that programs get besides a few; undefined = those of PASS_ENV. */
  readonly passEnv: readonly string[] | undefined;
  /** Absolute path of the registry document. */
  readonly registryFile: string | undefined;
  /** Containers and pods that are registered by themselves. */
  readonly sync: { readonly isEnabled: boolean; readonly namespace: string };
  /** What a template without settings of its own gets. */
  readonly defaultPolicy: BalancerPolicy;
  /** Of MCP clients, all templates together. */
  readonly sessions: { readonly max: number; readonly idleMs: number } & OwnBounds;
  readonly graceMs: number;
  /** Origins, or `*`. */
  readonly corsOrigins: readonly string[];
  /** Values of the Host header in lower case. */
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  /** Networks in CIDR form, as all of `trustedProxies` and `deniedNetworks`. */
  readonly trustedProxies: readonly string[];
  readonly deniedNetworks: readonly string[];
  readonly requestBodyBytes: number;
  /** Absolute paths of gateway.yaml and of the files that secrets came from, as far as they were read. */
  readonly files: readonly string[];
  /** Memory that this process may use; undefined: what the control group or the machine allows. */
  readonly memoryBytes: number | undefined;
  /** One line each, for the log: settings that have no effect. */
  readonly warnings: readonly string[];
  /** Every setting as `stagedoor config` prints it. */
  readonly rows: readonly ConfigRow[];
}

/** A setting in effect. Secrets are masked. */
export interface ConfigRow {
  readonly name: string;
  readonly value: string;
  /** `default`, or the place it was written in: `--port`, `GATEWAY_PORT`, `gateway.yaml, port`. */
  readonly source: string;
}

const MASK = '********';
/** Characters of a value that an error repeats. */
const LONGEST_QUOTE = 60;

/**
 * Reads all settings. A flag wins over the environment, that over gateway.yaml, that over the default.
 * Throws ConfigError (a line for each, exit code 2) for values that cannot be used: wrong kind, out of bounds, or an
 * unknown key. Source: decisions "Precedence" and "Ports"; ADR 4.
 */
export function loadConfig(input: SourcesInput): Config {
  const faults = new ConfigFaults();
  const keys = Object.values(SETTINGS).map(({ key }) => key);
  const sources = openSources(input, keys, faults.note);
  const rows: ConfigRow[] = [];
  const { listeners, portsDefaulted, warnings } = faults.note(
    () =>
      resolveListeners(sources, SETTINGS, (row, found) =>
        faults.note(() => readFound(row, found), row.default),
      ),
    { listeners: [], portsDefaulted: true, warnings: [] },
  );
  for (const { host, port, label, source } of listeners) {
    rows.push({
      name: 'listen',
      value: `${host.includes(':') ? `[${host}]` : host}:${port} (${label})`,
      source,
    });
  }
  const databaseUrl = read(SETTINGS.databaseUrl);
  const config: Config = {
    listeners: listeners.map(({ source: _source, ...listener }) => listener),
    portsDefaulted,
    logLevel: read(SETTINGS.logLevel),
    authEnabled: read(SETTINGS.authEnabled),
    tokenLifetimeMs: read(SETTINGS.tokenLifetime) * 60_000,
    secretKey: read(SETTINGS.secretKey),
    adminPassword: read(SETTINGS.adminPassword),
    userHourlyLimit: read(SETTINGS.userHourlyLimit),
    apiKeyHourlyLimit: read(SETTINGS.apiKeyHourlyLimit),
    redisUrl: read(SETTINGS.redisUrl),
    databaseUrl,
    encryptionKeys: read(SETTINGS.encryptionKeys),
    stateFolder: read(SETTINGS.stateFolder),
    ...nodeOf(databaseUrl, read(SETTINGS.nodeId)),
    templatesFolder: read(SETTINGS.templatesFolder),
    allowedCommands: read(SETTINGS.allowedCommands),
    passEnv: read(SETTINGS.passEnv),
    registryFile: read(SETTINGS.registryFile),
    sync: { isEnabled: read(SETTINGS.sync), namespace: read(SETTINGS.syncNamespace) },
    defaultPolicy: {
      strategy: read(SETTINGS.strategy),
      healthIntervalMs: read(SETTINGS.healthInterval),
      probeTimeoutMs: read(SETTINGS.healthTimeout),
      maxRetries: read(SETTINGS.maxRetries),
      callTimeoutMs: read(SETTINGS.callTimeout),
      session: read(SETTINGS.session),
      sessionFailover: read(SETTINGS.sessionFailover),
    },
    sessions: {
      max: read(SETTINGS.maxSessions),
      idleMs: read(SETTINGS.sessionIdle),
      processes: read(SETTINGS.maxProcesses),
      share: read(SETTINGS.sessionShare) / 100,
    },
    graceMs: read(SETTINGS.grace),
    corsOrigins: read(SETTINGS.corsOrigins),
    allowedHosts: read(SETTINGS.allowedHosts),
    allowedOrigins: read(SETTINGS.allowedOrigins),
    trustedProxies: read(SETTINGS.trustedProxies),
    deniedNetworks: read(SETTINGS.deniedNetworks),
    requestBodyBytes: read(SETTINGS.requestBody),
    files: sources.files,
    memoryBytes: read(SETTINGS.memoryLimit),
    warnings: [...warnings, ...unknownVariables(input.env ?? {})],
    rows,
  };
  faults.check();
  return config;

  /** A database file is used by one gateway, whatever its port: that of others is told apart by where they listen. */
  function nodeOf(url: string, named: string | undefined): Pick<Config, 'nodeId' | 'nodeHost'> {
    if (named !== undefined || /^sqlite/i.test(url)) return { nodeId: named ?? 'local', nodeHost: undefined };
    const host = input.hostName ?? hostname();
    const port = listeners[0]?.port ?? 0;
    return { nodeId: `${host}:${port}`, nodeHost: port === 0 ? host : undefined };
  }

  function read<T>(row: Setting<T>): T {
    return faults.note(() => {
      const found = sources.find(row);
      const value = readFound(row, found);
      const shown = found === undefined ? (row.defaultText ?? row.kind.show(value)) : shownOf(row, value);
      rows.push({ name: row.key, value: shown, source: found?.source ?? 'default' });
      return value;
    }, row.default);
  }
}

/** The settings in effect, for `stagedoor config`: the listeners, then one row per setting; secrets are masked. */
export function describeConfig(config: Config): readonly ConfigRow[] {
  return config.rows;
}

function readFound<T>(row: Setting<T>, found: Found | undefined): T {
  if (found === undefined) return row.default;
  const value = row.kind.read(found.raw, found.folder);
  if (value !== undefined && found.source.startsWith('--') && row.kind.holdsSecret?.(value)) {
    throw new ConfigError(
      `${found.source}: everybody on this machine can read a password on a command line; put it into GATEWAY_${row.variable}`,
    );
  }
  if (value !== undefined) return value;
  const shown = row.secret ? (row.kind.describe?.(found.raw) ?? 'something else') : shorten(found.raw);
  throw new ConfigError(`${found.place ?? found.source}: expected ${row.kind.type}; found ${shown}`);
}

function shownOf<T>({ secret, kind }: Setting<T>, value: T): string {
  if (secret === undefined) return kind.show(value);
  return kind.mask?.(value) ?? MASK;
}

/** What was written, on one line that fits one. A list or a section may be long, or even contain itself. */
function shorten(raw: unknown): string {
  if (raw === null) return 'nothing';
  if (Array.isArray(raw))
    return raw.every((item) => typeof item === 'string') ? cut(raw.join(', ')) : 'a list';
  return typeof raw === 'object' ? 'a section' : cut(String(raw));
}

function cut(text: string): string {
  return JSON.stringify(text.length > LONGEST_QUOTE ? `${text.slice(0, LONGEST_QUOTE)}...` : text);
}
