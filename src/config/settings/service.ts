// Rows of the table of settings (../settings.ts): where the process listens, what it logs, what it reads at its start.

import { setting } from '../setting.ts';
import { boolean, choice, hostName, integer, namespace, path } from '../setting-types.ts';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const SERVICE_SETTINGS = {
  host: setting({
    key: 'host',
    flag: 'host',
    variable: 'HOST',
    kind: hostName,
    default: '0.0.0.0',
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
  memoryLimit: setting<number | undefined>({
    key: 'memory.limit_bytes',
    flag: 'memory-limit',
    variable: 'MEMORY_LIMIT_BYTES',
    kind: integer(64 * 1024 * 1024, Number.MAX_SAFE_INTEGER, 'bytes'),
    default: undefined,
    defaultText: 'of the control group or the machine',
    doc: 'Memory of this process, from which the bounds of what calls hold follow. See docs/reference/limits.md.',
  }),
  registryFile: setting({
    key: 'registry_file',
    flag: 'registry-file',
    variable: 'REGISTRY_FILE',
    kind: path,
    default: undefined,
    doc: 'Registry document (JSON or YAML) read at the start, and again by `gateway sync`. See docs/guides/registry-file.md.',
  }),
  sync: setting({
    key: 'sync.enabled',
    flag: 'sync',
    variable: 'SYNC_ENABLED',
    kind: boolean,
    default: false,
    doc: 'Registers containers and pods that serve a template at the start, and follows what happens to them. See docs/guides/sync.md.',
  }),
  syncNamespace: setting({
    key: 'sync.namespace',
    flag: 'sync-namespace',
    variable: 'SYNC_NAMESPACE',
    kind: namespace,
    default: 'mcp-servers',
    doc: 'Kubernetes namespace in which sync looks for pods; `*` for all.',
  }),
} as const;
