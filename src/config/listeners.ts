// The addresses of the gateway. Each listener serves all routes; the two defaults, for calls by template and for servers, differ only
// in their port and in the variables that change it. No socket is opened here: the server reports a port that is in use.

import type { Setting } from './setting-types.ts';
import type { Found, Prefix, Sources } from './sources.ts';

/** One address to listen on. `label` is its name in messages. */
export interface ListenAddress {
  readonly host: string;
  /** 0 means a free port. */
  readonly port: number;
  readonly label: 'templates' | 'servers' | 'gateway' | 'metrics';
  /** Where the port was written; undefined for a default and for `--port`. */
  readonly portSource?: string;
}

export interface ResolvedListeners {
  readonly listeners: readonly (ListenAddress & { readonly source: string })[];
  /** True when no port is set: then one port in use is a warning. Source: ADR 4. */
  readonly portsDefaulted: boolean;
  readonly warnings: readonly string[];
}

interface DefaultListener {
  readonly label: ListenAddress['label'];
  readonly prefix: Prefix;
  readonly defaultPort: number;
}

/** Source: ADR 1. */
const DEFAULTS: readonly DefaultListener[] = [
  { label: 'templates', prefix: 'MCP_GATEWAY_', defaultPort: 8080 },
  { label: 'servers', prefix: 'GATEWAY_', defaultPort: 8000 },
];

/**
 * The listeners of a gateway. `--port` alone decides when it is given; else each PORT variable makes a listener of its
 * own; else the port of the file; else both defaults. `read` turns what was found into a value or throws ConfigError.
 */
export function resolveListeners(
  sources: Sources,
  rows: { readonly host: Setting<string>; readonly port: Setting<number | undefined> },
  read: <T>(row: Setting<T>, found: Found | undefined) => T,
): ResolvedListeners {
  const warnings: string[] = [];
  const ports = DEFAULTS.map((each) => ({ ...each, found: portVariable(each) }));
  const single =
    sources.flag(rows.port) ?? (ports.some(({ found }) => found) ? undefined : sources.file(rows.port));
  const portsDefaulted = single === undefined && ports.every(({ found }) => found === undefined);

  const listeners: ResolvedListeners['listeners'][number][] = [];
  if (single !== undefined) {
    add('gateway', single, sources.flag(rows.host) ?? sources.environment(rows.host));
  } else {
    for (const { label, prefix, defaultPort, found } of ports) {
      const own = sources.variable(prefix, rows.host);
      const isOpen = portsDefaulted || found !== undefined;
      if (isOpen) add(label, found, sources.flag(rows.host) ?? own, defaultPort);
      else if (own) warnings.push(`${own.source} has no effect: ${prefix}PORT is not set, another port is`);
    }
  }
  return { listeners, portsDefaulted, warnings };

  function add(
    label: ListenAddress['label'],
    port: Found | undefined,
    host: Found | undefined,
    otherwise = 0,
  ): void {
    const hostFound = host ?? sources.file(rows.host);
    const listener = {
      ...{ label, host: read(rows.host, hostFound), port: read(rows.port, port) ?? otherwise },
      ...(port === undefined || sources.flag(rows.port) ? {} : { portSource: port.place ?? port.source }),
    };
    const isTwin = listeners.some(
      ({ host, port }) => port !== 0 && port === listener.port && host === listener.host,
    );
    const [ofPort, ofHost] = [port?.source ?? 'default', hostFound?.source ?? 'default'];
    const source = ofPort === ofHost ? ofPort : `port: ${ofPort}; host: ${ofHost}`;
    if (!isTwin) listeners.push({ ...listener, source });
  }

  function portVariable({ prefix }: DefaultListener): Found | undefined {
    const found = sources.variable(prefix, rows.port);
    // Kubernetes sets <NAME>_PORT=tcp://... in every pod beside a Service called "gateway" or "mcp-gateway".
    if (!/^(tcp|udp):\/\//.test(String(found?.raw))) return found;
    warnings.push(`${found?.source} is ignored: it looks like a Kubernetes service link, not like a port`);
    return undefined;
  }
}

/** True for an address that only this machine can reach, with or without the brackets of IPv6. */
export function isLoopback(host: string): boolean {
  return ['localhost', '::1', '[::1]'].includes(host) || /^127(\.\d+){1,3}$/.test(host);
}
