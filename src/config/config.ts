// The settings of a gateway: turns flags, environment and gateway.yaml into one Config with the source of
// each value. config/settings.ts has the table of settings; no other setting is read from the environment.
// discovery/ finds engines and clusters by the variables of their own tools.

import { hostname } from 'node:os';
import { ConfigErrors } from './config-error.ts';
import { type ListenAddress, ListenerSettings } from './listeners.ts';
import { undefinedRoles } from './role-settings.ts';
import { readAll, type Setting, type SettingNames, type ValuesOf } from './setting-types.ts';
import { ALL_SETTINGS, SETTINGS } from './settings.ts';
import { type Found, readFound, Sources, type SourcesOptions, shorten, unknownVariables } from './sources.ts';

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

/**
 * Reads all settings. A flag takes precedence over the environment, the environment over gateway.yaml,
 * gateway.yaml over the default. Throws ConfigError (one line per setting, exit code 2) for invalid values:
 * wrong type, out of bounds, or an unknown key.
 */
export function loadConfig(input: SourcesOptions): Config {
  const errors = new ConfigErrors();
  const keys = ALL_SETTINGS.map(({ key }) => key);
  const sources = new Sources(input, keys, errors);
  const { listeners, portsDefaulted, warnings, rows: listenerRows } = new ListenerSettings(sources, errors);
  const rows: ConfigRow[] = [...listenerRows];
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
