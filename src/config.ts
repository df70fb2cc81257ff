// The settings of a gateway: turns flags, environment and gateway.yaml into one Config, and tells where each came from.
// The table of settings is config/settings.ts; nothing else in the program reads an environment variable.

import { ConfigError } from './config/config-error.ts';
import { type Listener, resolveListeners } from './config/listeners.ts';
import { type LogLevel, SETTINGS, type Setting } from './config/settings.ts';
import { type Found, openSources, type SourcesInput } from './config/sources.ts';
import { unknownVariables } from './config/unknown-variables.ts';
import type { BalancerPolicy } from './domain/policy.ts';

/** The settings of one gateway: complete, checked, times in milliseconds. */
export interface Config {
  /** At least one. */
  readonly listeners: readonly Listener[];
  /** True when nobody set a port: then one taken port is a warning and only both taken are an error. */
  readonly portsDefaulted: boolean;
  readonly logLevel: LogLevel;
  /** False until authentication is built. */
  readonly authEnabled: boolean;
  /** `memory://` until databases are built. */
  readonly databaseUrl: string;
  /** Absolute path of the registry document. */
  readonly registryFile: string | undefined;
  /** What a template without settings of its own gets. */
  readonly defaultPolicy: BalancerPolicy;
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
 * Throws ConfigError (one line, exit code 2) for the first value that cannot be used: wrong kind, out of bounds,
 * unknown key, or a feature that is not built yet. Source: decisions "Precedence" and "Ports"; ADR 4.
 */
export function loadConfig(input: SourcesInput): Config {
  const sources = openSources(
    input,
    Object.values(SETTINGS).map(({ key }) => key),
  );
  const rows: ConfigRow[] = [];
  const { listeners, portsDefaulted, warnings } = resolveListeners(sources, SETTINGS, readFound);
  for (const { host, port, label, source } of listeners) {
    rows.push({
      name: 'listen',
      value: `${host.includes(':') ? `[${host}]` : host}:${port} (${label})`,
      source,
    });
  }
  // Read for the refusal alone, until their feature is built.
  for (const row of [SETTINGS.secretKey, SETTINGS.adminPassword, SETTINGS.encryptionKey, SETTINGS.redisUrl])
    read(row);
  read(SETTINGS.tokenMinutes);

  return {
    listeners: listeners.map(({ host, port, label }) => ({ host, port, label })),
    portsDefaulted,
    logLevel: read(SETTINGS.logLevel),
    authEnabled: read(SETTINGS.authEnabled),
    databaseUrl: read(SETTINGS.databaseUrl),
    registryFile: read(SETTINGS.registryFile),
    defaultPolicy: {
      strategy: read(SETTINGS.strategy),
      healthIntervalMs: read(SETTINGS.healthInterval),
      probeTimeoutMs: read(SETTINGS.healthTimeout),
      maxRetries: read(SETTINGS.maxRetries),
      callTimeoutMs: read(SETTINGS.callTimeout),
    },
    graceMs: read(SETTINGS.grace),
    corsOrigins: read(SETTINGS.corsOrigins),
    allowedHosts: read(SETTINGS.allowedHosts),
    allowedOrigins: read(SETTINGS.allowedOrigins),
    trustedProxies: read(SETTINGS.trustedProxies),
    deniedNetworks: read(SETTINGS.deniedNetworks),
    requestBodyBytes: read(SETTINGS.requestBody),
    warnings: [...warnings, ...unknownVariables(input.env ?? {})],
    rows,
  };

  function read<T>(row: Setting<T>): T {
    const found = sources.find(row);
    const value = readFound(row, found);
    const isUnbuilt = row.later !== undefined && value === undefined;
    const shown = row.secret && found ? MASK : row.kind.show(value);
    if (!isUnbuilt) rows.push({ name: row.key, value: shown, source: found?.source ?? 'default' });
    return value;
  }
}

/** The settings in effect, for `stagedoor config`: the listeners, then one row per setting; secrets are masked. */
export function describeConfig(config: Config): readonly ConfigRow[] {
  return config.rows;
}

function readFound<T>(row: Setting<T>, found: Found | undefined): T {
  if (found === undefined) return row.default;
  const value = row.kind.read(found.raw, found.folder);
  const { later, kind } = row;
  if (later !== undefined && value !== undefined && !later.allowed.includes(value)) {
    const allowed = later.allowed.map((each) => ` or set it to ${kind.show(each)}`).join('');
    throw new ConfigError(`${found.source}: ${later.feature} is not built yet; leave this out${allowed}`);
  }
  if (value !== undefined) return value;
  const shown = row.secret ? 'something else' : shorten(found.raw);
  throw new ConfigError(`${found.source}: expected ${kind.type}; found ${shown}`);
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
