// The addresses of a gateway: each listener serves all routes; the two defaults, for calls by template and for servers,
// differ only in their port and in the variables that change it. No socket is opened here: the server reports a port that
// is in use.

import { isLoopback, joinHostPort } from '../domain/local-address.ts';
import type { ConfigErrors } from './config-error.ts';
import type { Setting } from './setting-types.ts';
import { SETTINGS } from './settings.ts';
import { type Found, type Prefix, readFound, type Sources } from './sources.ts';

/** One address to listen on. `label` is its name in messages. */
export interface ListenAddress {
  readonly host: string;
  /** The port; 0 means a free one. */
  readonly port: number;
  readonly label: 'templates' | 'servers' | 'gateway' | 'metrics';
  /** The source of the port; undefined for a default and for `--port`. */
  readonly portSource?: string;
}

/** A listener in the form of `stagedoor config`. */
interface ListenerRow {
  readonly name: 'listen';
  readonly value: string;
  readonly typed: ListenAddress;
  readonly source: string;
  readonly sourceKind: Found['kind'] | 'default';
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
export class ListenerSettings {
  readonly listeners: ListenAddress[] = [];
  readonly rows: ListenerRow[] = [];
  readonly warnings: string[] = [];
  /** True when no port is set. */
  readonly portsDefaulted: boolean;
  readonly #sources: Sources;
  readonly #errors: ConfigErrors;

  /** `errors` gets the error of each value that cannot be read. */
  constructor(sources: Sources, errors: ConfigErrors) {
    this.#sources = sources;
    this.#errors = errors;
    const ports = DEFAULTS.map((each) => ({ ...each, found: this.#portVariable(each.prefix) }));
    const single =
      sources.flag(SETTINGS.port) ??
      (ports.some(({ found }) => found) ? undefined : sources.file(SETTINGS.port));
    this.portsDefaulted = single === undefined && ports.every(({ found }) => found === undefined);
    if (single !== undefined) {
      const host = () => sources.flag(SETTINGS.host) ?? sources.environment(SETTINGS.host);
      this.#add('gateway', single, errors.attempt(host, undefined));
    } else {
      for (const { label, prefix, defaultPort, found } of ports) {
        const own = sources.variable(prefix, SETTINGS.host);
        const isOpen = this.portsDefaulted || found !== undefined;
        if (isOpen) this.#add(label, found, sources.flag(SETTINGS.host) ?? own, defaultPort);
        else if (own)
          this.warnings.push(`${own.source} has no effect: ${prefix}PORT is not set, but another port is`);
      }
    }
    const closed = DEFAULTS.find(({ label }) => this.#of(label, isLoopback));
    const open = DEFAULTS.find(({ label }) => this.#of(label, (host) => !isLoopback(host)));
    if (closed && open && sources.variable(open.prefix, SETTINGS.host) === undefined)
      this.warnings.push(
        `port ${this.#of(open.label)?.port} accepts connections of other machines: ${closed.prefix}HOST is for port ` +
          `${this.#of(closed.label)?.port} only; set ${open.prefix}HOST as well, or --host for both`,
      );
  }

  #of(label: string, isSuch: (host: string) => boolean = () => true): ListenAddress | undefined {
    return this.listeners.find((each) => each.label === label && isSuch(each.host));
  }

  #add(label: ListenAddress['label'], port?: Found, host?: Found, otherwise = 0): void {
    const hostFound = host ?? this.#sources.file(SETTINGS.host);
    const listener = {
      label,
      host: this.#read(SETTINGS.host, hostFound),
      port: this.#read(SETTINGS.port, port) ?? otherwise,
      ...(port === undefined || this.#sources.flag(SETTINGS.port) ? {} : { portSource: port.placeOf() }),
    };
    const isTwin = this.listeners.some(
      ({ host, port }) => port !== 0 && port === listener.port && host === listener.host,
    );
    const [ofPort, ofHost] = [port?.source ?? 'default', hostFound?.source ?? 'default'];
    const source = ofPort === ofHost ? ofPort : `port: ${ofPort}; host: ${ofHost}`;
    if (isTwin) return;
    this.listeners.push(listener);
    const value = joinHostPort(listener.host, listener.port);
    const sourceKind = (port ?? hostFound)?.kind ?? 'default';
    this.rows.push({ name: 'listen', value, typed: listener, source, sourceKind });
  }

  #read<T>(row: Setting<T>, found: Found | undefined): T {
    return this.#errors.attempt(() => readFound(row, found), row.default);
  }

  #portVariable(prefix: Prefix): Found | undefined {
    const found = this.#sources.variable(prefix, SETTINGS.port);
    // Kubernetes sets <NAME>_PORT=tcp://... in every pod beside a Service called "gateway" or "mcp-gateway".
    if (!/^(tcp|udp):\/\//.test(String(found?.raw))) return found;
    this.warnings.push(
      `${found?.source} is ignored: it looks like a Kubernetes service link, not like a port`,
    );
    return undefined;
  }
}
