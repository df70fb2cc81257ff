// TABLE of all settings: how each is written as a flag, in the environment and in gateway.yaml, its kind, its default
// and what it does. Help texts, `stagedoor config` and docs/configuration.md are made from it.
// Reading it is config.ts; where values come from is config/sources.ts.

import { DENIED_NETWORKS } from '../domain/denied-networks.ts';
import { LIMITS } from '../domain/limits.ts';
import { DEFAULT_POLICY, STRATEGY_NAMES, type StrategyName } from '../domain/policy.ts';
import {
  boolean,
  choice,
  hostHeader,
  hostName,
  integer,
  type Kind,
  list,
  network,
  origin,
  originOrAll,
  path,
  seconds,
  text,
} from './kinds.ts';

/** How one setting is written. */
export interface SettingNames {
  /** Path in gateway.yaml; also the name in documents and in `stagedoor config`. */
  readonly key: string;
  /** On the command line, without the dashes. A secret has none: other users of the machine can read command lines. */
  readonly flag?: string;
  /** What follows `MCP_GATEWAY_` or `GATEWAY_` in the environment. */
  readonly variable: string;
  /** Masked wherever it is shown; may also come from the file named by `<variable>_FILE`. */
  readonly secret?: true;
}

export interface Setting<T> extends SettingNames {
  readonly kind: Kind<T>;
  readonly default: T;
  /** How documents write the default, when its own text would not tell. */
  readonly defaultText?: string;
  /** One sentence for help texts and documents. */
  readonly doc: string;
  /** Set while the feature is not built: any value but the allowed ones is refused, never ignored. */
  readonly later?: { readonly feature: string; readonly allowed: readonly T[] };
}

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Every setting there is. Source: spec "Configuration"; units and bounds: decisions "Units", ADR 4. */
export const SETTINGS = {
  host: setting({
    key: 'host',
    flag: 'host',
    variable: 'HOST',
    kind: hostName,
    default: '127.0.0.1',
    doc: 'Address to listen on. Each HOST variable belongs to the listener of its own PORT variable.',
  }),
  port: setting<number | undefined>({
    key: 'port',
    flag: 'port',
    variable: 'PORT',
    kind: integer(0, 65_535, 'a port'),
    default: undefined,
    defaultText: '8080 and 8000',
    doc: 'Port to listen on; 0 takes a free one. When any port is set, exactly the ports that are set are used.',
  }),
  logLevel: setting<LogLevel>({
    key: 'log_level',
    flag: 'log-level',
    variable: 'LOG_LEVEL',
    kind: choice(LOG_LEVELS, { warning: 'warn' }),
    default: 'info',
    doc: 'Least serious messages that are logged.',
  }),
  registryFile: setting({
    key: 'registry_file',
    flag: 'registry-file',
    variable: 'REGISTRY_FILE',
    kind: path,
    default: undefined,
    doc: 'Registry document (JSON or YAML) read at start; `gateway sync` comes later. See registry-file.md.',
  }),
  strategy: setting<StrategyName>({
    key: 'load_balancer.strategy',
    flag: 'strategy',
    variable: 'DEFAULT_STRATEGY',
    kind: choice(STRATEGY_NAMES, { weighted: 'weighted_round_robin' }),
    default: DEFAULT_POLICY.strategy,
    doc: 'How calls are spread in a template that has no strategy of its own.',
  }),
  healthInterval: setting({
    key: 'load_balancer.health_check_interval',
    flag: 'health-interval',
    variable: 'HEALTH_INTERVAL',
    kind: seconds(1, 3600),
    default: DEFAULT_POLICY.healthIntervalMs,
    doc: 'Time between two probes of one instance, where its template says nothing.',
  }),
  healthTimeout: setting({
    key: 'load_balancer.health_check_timeout',
    flag: 'health-timeout',
    variable: 'HEALTH_TIMEOUT',
    kind: seconds(0.1, 3600),
    default: DEFAULT_POLICY.probeTimeoutMs,
    doc: 'Longest wait for the answer to a probe; after it the probe has failed.',
  }),
  maxRetries: setting({
    key: 'load_balancer.max_retries',
    flag: 'max-retries',
    variable: 'MAX_RETRIES',
    kind: integer(0, 10),
    default: DEFAULT_POLICY.maxRetries,
    doc: 'Further instances tried after the first one failed, where the template says nothing.',
  }),
  callTimeout: setting({
    key: 'load_balancer.timeout',
    flag: 'call-timeout',
    variable: 'CALL_TIMEOUT',
    kind: seconds(0.1, 3600),
    default: DEFAULT_POLICY.callTimeoutMs,
    doc: 'Longest wait for the first answer to a call, where the template says nothing; progress restarts it. No call lasts longer than 600 s in all.',
  }),
  grace: setting({
    key: 'grace_seconds',
    flag: 'grace-seconds',
    variable: 'GRACE_SECONDS',
    kind: seconds(0, 600),
    default: LIMITS.graceMs,
    doc: 'Time that running calls have to end when the gateway stops.',
  }),
  corsOrigins: setting({
    key: 'cors_origins',
    flag: 'cors-origins',
    variable: 'CORS_ORIGINS',
    kind: list(originOrAll),
    default: ['*'],
    doc: 'Web origins that may call a public gateway. `*` is ignored while authentication is off or the host is loopback.',
  }),
  allowedHosts: setting({
    key: 'allowed_hosts',
    flag: 'allowed-hosts',
    variable: 'ALLOWED_HOSTS',
    kind: list(hostHeader),
    default: [],
    doc: 'Values of the Host header accepted besides localhost, 127.0.0.1 and [::1] while authentication is off or the host is loopback.',
  }),
  allowedOrigins: setting({
    key: 'allowed_origins',
    flag: 'allowed-origins',
    variable: 'ALLOWED_ORIGINS',
    kind: list(origin),
    default: [],
    doc: 'Web origins accepted besides the same origin while authentication is off or the host is loopback.',
  }),
  trustedProxies: setting({
    key: 'trusted_proxies',
    flag: 'trusted-proxies',
    variable: 'TRUSTED_PROXIES',
    kind: list(network),
    default: [],
    doc: 'Peers whose X-Forwarded-* headers are believed.',
  }),
  deniedNetworks: setting({
    key: 'http.denied_networks',
    flag: 'denied-networks',
    variable: 'DENIED_NETWORKS',
    kind: list(network),
    default: DENIED_NETWORKS,
    doc: 'Networks in which no HTTP instance may be; replaces the default list.',
  }),
  requestBody: setting({
    key: 'http.max_body_bytes',
    flag: 'max-body-bytes',
    variable: 'MAX_BODY_BYTES',
    kind: integer(1024, 256 * 1024 * 1024, 'bytes'),
    default: LIMITS.requestBodyBytes,
    doc: 'Largest request body; a larger one gets 413.',
  }),
  authEnabled: setting({
    key: 'auth.enabled',
    flag: 'auth',
    variable: 'AUTH_ENABLED',
    kind: boolean,
    default: false,
    doc: 'Whether callers must prove who they are.',
    later: { feature: 'authentication', allowed: [false] },
  }),
  databaseUrl: setting({
    key: 'database_url',
    variable: 'DATABASE_URL',
    kind: text('a database URL'),
    default: 'memory://',
    secret: true,
    doc: 'Where the registry is kept; `memory://` forgets it at the end.',
    later: { feature: 'a database', allowed: ['memory://'] },
  }),
  secretKey: secretOfLater('authentication', {
    key: 'auth.secret_key',
    variable: 'SECRET_KEY',
    doc: 'Secret that signs tokens.',
  }),
  tokenMinutes: setting<number | undefined>({
    key: 'auth.access_token_expire_minutes',
    variable: 'ACCESS_TOKEN_EXPIRE_MINUTES',
    kind: integer(1, 525_600, 'minutes'),
    default: undefined,
    doc: 'How long a token is valid.',
    later: { feature: 'authentication', allowed: [] },
  }),
  adminPassword: secretOfLater('authentication', {
    key: 'auth.admin_password',
    variable: 'ADMIN_PASSWORD',
    doc: 'Password of the first admin.',
  }),
  encryptionKey: secretOfLater('a database', {
    key: 'encryption_key',
    variable: 'ENCRYPTION_KEY',
    doc: 'Key that encrypts stored secrets.',
  }),
  redisUrl: secretOfLater('rate limiting', {
    key: 'redis_url',
    variable: 'REDIS_URL',
    doc: 'Redis that keeps rate limits for several gateways.',
  }),
} as const;

function setting<T>(row: Setting<T>): Setting<T> {
  return row;
}

function secretOfLater(
  feature: string,
  names: { key: string; variable: string; doc: string },
): Setting<string | undefined> {
  return {
    ...names,
    kind: text('a text'),
    default: undefined,
    secret: true,
    later: { feature, allowed: [] },
  };
}
