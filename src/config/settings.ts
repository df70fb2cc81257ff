// TABLE of all settings. A row is a property of Config; it has the flag, the environment variable, the key in
// gateway.yaml, the type, the default and the meaning. Help texts, `stagedoor config` and
// docs/reference/configuration.md are made from it, in its order. Times are in milliseconds. Source: ADR 4.

import { PASS_ENV } from '../domain/instances/command.ts';
import { LIMITS } from '../domain/limits.ts';
import { DENIED_NETWORKS } from '../domain/registration/instance-endpoint.ts';
import { HOUR_MS } from '../domain/time/clock.ts';
import type { ViewNames } from '../domain/views/view.ts';
import { CLUSTER } from './cluster-settings.ts';
import { OAUTH, PUBLIC_URL } from './oauth-settings.ts';
import { policySettings } from './policy-settings.ts';
import { REGISTRY_SETTINGS } from './registry-settings.ts';
import { DEFINED_ROLES } from './role-settings.ts';
import * as types from './setting-types.ts';
import { rowsOf, type Setting, setting } from './setting-types.ts';
import { PUBLIC_TLS } from './tls-settings.ts';

/** The levels of pino, from most to least verbose. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

const MAX_REQUESTS = 1_000_000_000;

/** The most UTF-16 units of instructions. */
const MAX_INSTRUCTIONS = 16_384;

/**
 * The forms in which the audit log keeps a call's arguments. Default: `none`: a digest of short ones is as good as
 * the arguments.
 */
const AUDITED_ARGUMENTS = ['none', 'digest', 'full'] as const;

export const SETTINGS = {
  host: setting({
    key: 'host',
    kind: types.hostName,
    default: '0.0.0.0',
    doc: 'Address to listen on. Each HOST variable applies to the listener of the PORT variable with the same prefix.',
  }),
  port: setting<number | undefined>({
    key: 'port',
    kind: types.integerWithin(0, 65_535, 'a port'),
    default: undefined,
    defaultText: '8080 and 8000',
    doc: 'Port to listen on; 0 picks a free port. When any port is set, only the ports that are set are used.',
  }),
  tls: PUBLIC_TLS,
  /** The public origin in lower case; undefined: the loopback address of the first port. */
  publicUrl: PUBLIC_URL,
  logLevel: setting<(typeof LOG_LEVELS)[number]>({
    key: 'log_level',
    kind: types.choice(LOG_LEVELS, { warning: 'warn' }),
    default: 'info',
    doc: 'Minimum level of the messages that are logged.',
  }),
  /** A separate listener for Prometheus; none when `port` is undefined. */
  metrics: {
    port: setting<number | undefined>({
      key: 'metrics.port',
      kind: types.integerWithin(0, 65_535, 'a port'),
      default: undefined,
      defaultText: 'none',
      doc: 'Port of a listener that serves only `/metrics`, `/livez` and `/readyz`, without credentials; 0 picks a free port. The route `/metrics` of the gateway itself needs the scope `gateway:read`. See docs/guides/observability.md.',
    }),
    host: setting({
      key: 'metrics.host',
      kind: types.hostName,
      default: '127.0.0.1',
      doc: 'Address of the metrics listener. All clients that can reach it can read the metrics.',
    }),
  },
  memoryBytes: setting<number | undefined>({
    key: 'memory.limit_bytes',
    flag: 'memory-limit',
    variable: 'MEMORY_LIMIT_BYTES',
    kind: types.integerWithin(64 * 1024 * 1024, Number.MAX_SAFE_INTEGER, 'bytes'),
    default: undefined,
    defaultText: 'of the control group or the machine',
    doc: 'Memory of this process; the memory limits for calls are derived from it. See docs/reference/limits.md.',
  }),
  workers: setting<number | 'auto'>({
    key: 'workers',
    kind: types.integerOrAuto(1, 64),
    default: 1,
    doc: 'Processes that share the ports of this gateway, so that it uses several cores; `auto`: one for each core, on SQLite 8 at most. See docs/guides/workers.md.',
  }),
  registryFile: setting({
    key: 'registry_file',
    kind: types.path,
    default: undefined,
    doc: 'Registry document (JSON or YAML) read at the start, and again by `gateway sync`. See docs/guides/registry-file.md.',
  }),
  /** Containers and pods that are registered automatically. */
  sync: {
    isEnabled: setting({
      key: 'sync.enabled',
      flag: 'sync',
      variable: 'SYNC_ENABLED',
      kind: types.boolean,
      default: false,
      doc: 'Register the containers and pods that serve a template at the start, then follow their changes. See docs/guides/sync.md.',
    }),
    namespace: setting({
      key: 'sync.namespace',
      kind: types.matching(
        'a name of lower-case letters, digits and hyphens, or *',
        /^(\*|[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)$/,
      ),
      default: 'mcp-servers',
      doc: 'Kubernetes namespace in which sync looks for pods; `*` for all.',
    }),
  },
  /** The policy of a template without settings. */
  defaultPolicy: policySettings(),
  maxCallMs: setting({
    key: 'max_call_seconds',
    mustAgree: true,
    kind: types.seconds(1, LIMITS.callHardBoundMs / 1000),
    default: LIMITS.callDefaultBoundMs,
    doc: 'Longest duration of a call in all, whatever progress its server reports and however long its client thinks. The `timeout` of the call counts instead if it is longer.',
  }),
  /** MCP sessions of all templates together; `share` is a fraction. */
  sessions: {
    max: setting({
      key: 'sessions.max',
      mustAgree: true,
      flag: 'max-sessions',
      kind: types.integerWithin(1, LIMITS.sessionsHardBound),
      default: LIMITS.sessions,
      doc: 'Maximum number of open MCP sessions, all templates together; further ones get 503.',
    }),
    idleMs: setting({
      key: 'sessions.idle_seconds',
      mustAgree: true,
      flag: 'session-idle-seconds',
      kind: types.seconds(1, LIMITS.sessionIdleHardBoundMs / 1000),
      default: LIMITS.sessionIdleMs,
      doc: 'An MCP session ends after this time without a message and without an open stream.',
    }),
    processes: setting({
      key: 'sessions.max_processes',
      mustAgree: true,
      flag: 'max-processes',
      kind: types.integerWithin(1, LIMITS.dedicatedProcessesHardBound),
      default: LIMITS.dedicatedProcesses,
      doc: 'Maximum number of dedicated processes of one instance, each for one MCP client; further ones get 429.',
    }),
    share: setting({
      key: 'sessions.share',
      mustAgree: true,
      flag: 'session-share',
      kind: types.percent(1, 100),
      default: LIMITS.ownerShare,
      doc: 'Share of `sessions.max` and of `sessions.max_processes` that one caller may hold, at least 8 of each; 100 turns it off. Over it: 503 for sessions, 429 for processes.',
    }),
  },
  graceMs: setting({
    key: 'grace_seconds',
    kind: types.seconds(0, LIMITS.graceHardBoundMs / 1000),
    default: LIMITS.graceMs,
    doc: 'Time that calls in flight have to finish when the gateway stops.',
  }),
  shutdownDelayMs: setting({
    key: 'shutdown.delay',
    kind: types.seconds(0, 600),
    default: 0,
    doc: 'Time between the signal that stops the gateway and the stop: `/readyz` answers 503, everything else is served. A second signal ends it.',
  }),
  corsOrigins: setting({
    key: 'cors_origins',
    mustAgree: true,
    kind: types.commaSeparated(types.originOrAll),
    default: ['*'],
    doc: 'Web origins that may call, besides the same origin. Of these only `*`, for all of them, is ignored while authentication is off or the host is loopback.',
  }),
  /** The allowed hosts, in lower case. */
  allowedHosts: setting({
    key: 'allowed_hosts',
    kind: types.commaSeparated(types.hostHeader),
    default: [],
    doc: 'Values of the Host header accepted besides localhost, 127.0.0.1 and [::1] while authentication is off or the host is loopback.',
  }),
  allowedOrigins: setting({
    key: 'allowed_origins',
    mustAgree: true,
    kind: types.commaSeparated(types.origin),
    default: [],
    doc: 'Further web origins like `cors_origins`; setting them leaves `*` there in force.',
  }),
  /** The addresses of trusted proxies, in CIDR form, like `deniedNetworks`. */
  trustedProxies: setting({
    key: 'trusted_proxies',
    kind: types.commaSeparated(types.network),
    default: [],
    doc: 'Proxies whose X-Forwarded-* headers are trusted.',
  }),
  deniedNetworks: setting({
    key: 'http.denied_networks',
    mustAgree: true,
    flag: 'denied-networks',
    kind: types.commaSeparated(types.network),
    default: DENIED_NETWORKS,
    doc: 'Networks in which HTTP instances are not allowed; replaces the default list.',
  }),
  requestBodyBytes: setting({
    key: 'http.max_body_bytes',
    mustAgree: true,
    flag: 'max-body-bytes',
    kind: types.integerWithin(1024, 256 * 1024 * 1024, 'bytes'),
    default: LIMITS.requestBodyBytes,
    doc: 'Largest request body; a larger one gets 413.',
  }),
  requestHeaderBytes: setting({
    key: 'http.max_header_bytes',
    mustAgree: true,
    flag: 'max-header-bytes',
    kind: types.integerWithin(4096, 64 * 1024, 'bytes'),
    default: LIMITS.requestHeaderBytes,
    doc: 'Largest sum of the headers of one request; larger ones get 431.',
  }),
  connectionsPerAddress: setting({
    key: 'http.max_connections_per_address',
    flag: 'max-connections-per-address',
    kind: types.integerWithin(16, 1_000_000),
    default: LIMITS.connectionsPerAddress,
    doc: 'Open connections of one address (IPv6: one /64 network), except trusted proxies; over it the oldest without a request in progress is closed.',
  }),
  authEnabled: setting({
    key: 'auth.enabled',
    mustAgree: true,
    flag: 'auth',
    variable: 'AUTH_ENABLED',
    kind: types.boolean,
    default: true,
    doc: 'Whether callers must authenticate. Off: every caller that can reach the gateway is an admin.',
  }),
  hasPasswordLogins: setting({
    key: 'auth.passwords',
    mustAgree: true,
    kind: types.boolean,
    default: true,
    doc: 'Whether users log in with passwords. Off, which needs `auth.providers`: only `admin` does, and each time the log has a warning; other tokens of such logins are no longer valid.',
  }),
  tokenLifetimeMs: setting({
    key: 'auth.access_token_expire_minutes',
    mustAgree: true,
    flag: 'token-minutes',
    variable: 'ACCESS_TOKEN_EXPIRE_MINUTES',
    kind: types.minutes(1, 525_600),
    default: HOUR_MS,
    doc: 'Lifetime of a login token. Those of MCP clients have `auth.access_token_minutes`.',
  }),
  /** The keys of the secret. The first one signs, all verify; undefined: the gateway creates one. */
  secretKeys: setting<readonly string[] | undefined>({
    key: 'auth.secret_key',
    variable: 'SECRET_KEY',
    secret: true,
    kind: types.secretKeys(LIMITS.secretBytes),
    default: undefined,
    defaultText: 'generated at the first start',
    doc: 'Secret that signs tokens. All gateways on one database need the same value. To replace it, several: the first signs, all verify. See docs/guides/key-rotation.md.',
  }),
  adminPassword: setting<string | undefined>({
    key: 'auth.admin_password',
    variable: 'ADMIN_PASSWORD',
    secret: true,
    kind: types.secretText(LIMITS.passwordCharacters, LIMITS.passwordBytes),
    default: undefined,
    defaultText: 'generated at the first start',
    doc: 'Password of the first user, `admin`; used only while no active admin has all templates and no user has that name.',
  }),
  roles: DEFINED_ROLES,
  /** Sign-in of MCP clients by their browser. */
  oauth: OAUTH,
  userHourlyLimit: setting({
    key: 'rate_limits.user_per_hour',
    mustAgree: true,
    flag: 'user-limit',
    kind: types.integerWithin(1, MAX_REQUESTS, 'requests'),
    default: 1_000,
    doc: 'Requests per hour of a user; admins have no limit.',
  }),
  apiKeyHourlyLimit: setting({
    key: 'rate_limits.api_key_per_hour',
    mustAgree: true,
    flag: 'api-key-limit',
    kind: types.integerWithin(1, MAX_REQUESTS, 'requests'),
    default: 5_000,
    doc: 'Requests per hour of an API key; keys with the scope `admin` have no limit.',
  }),
  /** All templates as one server, `/mcp`. */
  aggregate: {
    names: setting<ViewNames>({
      key: 'aggregate.names',
      mustAgree: true,
      kind: types.choice(['prefixed', 'bare']),
      default: 'prefixed',
      doc: 'Names of tools and prompts at `/mcp`: `prefixed`, all begin with `<template>__`; or `bare`, their own names, and only those that clash are prefixed. See docs/reference/mcp.md.',
    }),
    mode: setting<'list' | 'search'>({
      key: 'aggregate.mode',
      mustAgree: true,
      kind: types.choice(['list', 'search']),
      default: 'list',
      doc: 'What `/mcp` lists: `list`, all tools; or `search`, three tools with which a model finds, reads and calls the others. See docs/guides/tool-search.md.',
    }),
    always: setting<readonly string[]>({
      key: 'aggregate.always',
      mustAgree: true,
      kind: types.commaSeparated(types.glob),
      default: [],
      doc: 'Globs on the names of tools: what `/mcp` lists in search mode, too.',
    }),
    instructions: setting<string | undefined>({
      key: 'aggregate.instructions',
      mustAgree: true,
      kind: types.shortText(MAX_INSTRUCTIONS),
      default: undefined,
      defaultText: 'those of all templates',
      doc: 'Instructions of `/mcp` for models, in place of those of the templates.',
    }),
  },
  /** The audit log. */
  audit: {
    recordsCalls: setting({
      key: 'audit.calls',
      mustAgree: true,
      kind: types.boolean,
      default: true,
      doc: 'Whether each tool call is recorded in the audit log. See docs/guides/audit.md.',
    }),
    callArguments: setting({
      key: 'audit.arguments',
      mustAgree: true,
      kind: types.choiceForSwitch(AUDITED_ARGUMENTS, { on: 'full', off: 'digest' }),
      default: 'none',
      doc: `What the audit log records of arguments, which may be secret: none, digest (their SHA-256), or full (also their first ${LIMITS.auditArgumentUnits} characters).`,
    }),
    keptCalls: setting({
      key: 'audit.max_calls',
      mustAgree: true,
      kind: types.integerWithin(1_000, 100_000_000, 'entries'),
      default: 200_000,
      doc: 'Number of tool calls that the audit log keeps, newest first.',
    }),
    keptDays: setting({
      key: 'audit.retention_days',
      mustAgree: true,
      kind: types.integerWithin(0, 36_500, 'days'),
      default: 90,
      doc: 'Age at which entries of the audit log, including changes and logins, are deleted, at most a tenth an hour; 0 keeps them.',
    }),
  },
  /** The URL of Redis. It may contain a password. */
  redisUrl: setting<string | undefined>({
    key: 'redis_url',
    mustAgree: true,
    secret: true,
    kind: types.url('a Redis URL such as redis://127.0.0.1:6379', ['redis', 'rediss']),
    default: undefined,
    defaultText: 'none',
    doc: 'Redis that counts requests for several gateways together and exactly; without it gateways on one database server share limits within 15 %.',
  }),
  /** The URL of the database as written; see persistence/open-store.ts. It may contain a password. */
  databaseUrl: setting({
    key: 'database_url',
    flag: 'database',
    variable: 'DATABASE_URL',
    secret: true,
    kind: types.url('a database URL such as sqlite:///gateway.db'),
    default: 'sqlite:///gateway.db',
    doc: 'Database of registry and accounts; `memory://` loses them when the gateway stops. See docs/guides/databases.md.',
  }),
  /** The keys of encryption. The first one encrypts, all decrypt; undefined: only keys derived from the secret. */
  encryptionKeys: setting<readonly string[] | undefined>({
    key: 'encryption_key',
    secret: true,
    kind: types.secretKeys(LIMITS.secretBytes),
    default: undefined,
    defaultText: 'derived from the signing secret, unless that is in the database',
    doc: 'Encrypts secrets in the database, such as environment variables and headers of instances. To replace it, several: the first encrypts, all decrypt. See docs/guides/key-rotation.md.',
  }),
  /** The folder of state, as an absolute path; undefined: beside the database. */
  stateFolder: setting({
    key: 'state_dir',
    kind: types.path,
    default: undefined,
    defaultText: 'the folder of the SQLite file, else ~/.local/state/stagedoor',
    doc: 'Folder for files of this machine: the first password of `admin`, and log and lock of a gateway in the background.',
  }),
  nodeId: setting<string | undefined>({
    key: 'node_id',
    kind: types.matching(
      'a name of letters, digits, dots, colons, hyphens and underscores, but not "any"',
      /^(?!any$)[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/,
    ),
    default: undefined,
    defaultText: '`local` on SQLite, else host name and first port',
    doc: 'Name of this gateway among those on the same database. Programs are registered for one node, or for any.',
  }),
  /** The other gateways on the same database. */
  cluster: CLUSTER,
  /** Registries of MCP servers. */
  registry: REGISTRY_SETTINGS,
  /** The folder of templates, as an absolute path; undefined: the templates of the package. */
  templatesFolder: setting({
    key: 'templates_dir',
    kind: types.path,
    default: undefined,
    defaultText: 'those that come with stagedoor',
    doc: 'Folder of template definitions, `<id>/template.json`.',
  }),
  allowedCommands: setting<readonly (readonly string[])[]>({
    key: 'stdio.allowed_commands',
    mustAgree: true,
    flag: 'allowed-commands',
    kind: types.commandPatterns,
    default: [],
    doc: 'Commands that may be registered without the scope `admin`: lists of words. `*name` stands for any one word; the caller that registers it chooses, for example, the folder that a file server serves.',
  }),
  /** The variables of the environment that programs get; undefined: PASS_ENV. */
  passEnv: setting<readonly string[] | undefined>({
    key: 'stdio.pass_env',
    flag: 'pass-env',
    kind: types.commaSeparated(
      types.matching('names of variables such as HTTPS_PROXY', /^[A-Za-z_][A-Za-z0-9_]*$/),
    ),
    default: undefined,
    defaultText: `those about proxies and certificates: ${PASS_ENV.join(', ')}`,
    doc: 'Variables of the gateway that programs get besides PATH, HOME and LANG; replaces the default list. A URL with credentials is passed only when its variable is named here.',
  }),
  programUser: setting<string | undefined>({
    key: 'stdio.user',
    flag: 'stdio-user',
    kind: types.matching('the name or the number of a user', /^\w[\w.-]*$/),
    default: undefined,
    defaultText: 'the user of the gateway',
    doc: 'User that registered programs run as, with its home folder and primary group. Only a gateway that runs as root can change it.',
  }),
} as const;

export const ALL_SETTINGS: readonly Setting<unknown>[] = rowsOf(SETTINGS);
