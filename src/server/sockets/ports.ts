// The ports of a server: their TLS, their opening, the application that they serve, and the port for Prometheus and probes.
// listeners.ts has the sockets.

import type { RequestListener } from 'node:http';
import type { Logger } from 'pino';
import type { Config } from '../../config/config.ts';
import { ConfigError } from '../../config/config-error.ts';
import { GatewayAddress } from '../../domain/accounts/resource.ts';
import type { PortNumbers } from '../../domain/nodes/workers.ts';
import type { HttpApp } from '../../http/app.ts';
import { createMetricsApp } from '../../http/metrics-app.ts';
import { createStartingApp } from '../../http/starting-app.ts';
import { type Listeners, openListeners } from './listeners.ts';
import { type ConnectionBounds, OpenConnections } from './open-connections.ts';
import type { PublicTls } from './public-tls.ts';

export interface OpenPorts {
  readonly listeners: Listeners;
  /** The port for Prometheus and probes, if one is configured. */
  readonly scrapes: Listeners | undefined;
}

interface PortsOptions {
  readonly bounds: Pick<ConnectionBounds, 'total' | 'files' | 'unfinishedBytes'>;
  readonly log: Logger;
  /** See publicTlsOf. */
  readonly tls: PublicTls | undefined;
  /** The numbers that the gateway of a worker has. */
  readonly kept: PortNumbers | undefined;
}

/** The ports of one server. A request is answered with 503 until `serve` is set. */
export class Ports {
  /** Serves every request. While the gateway starts: 503. */
  serve: RequestListener = createStartingApp();
  /** What the port of the metrics answers. Undefined until the gateway exists. */
  app: Pick<HttpApp, 'metrics' | 'readiness'> | undefined;
  readonly connections: OpenConnections;
  /** The address at which clients reach the gateway. */
  readonly address: GatewayAddress;
  readonly #config: Config;
  readonly #log: Logger;
  readonly #tls: PublicTls | undefined;
  readonly #kept: PortNumbers | undefined;
  /** The numbers of the ports; until they are open those of the settings, where 0 means any. */
  #numbers: readonly number[];

  constructor(config: Config, { bounds, log, tls, kept }: PortsOptions) {
    this.#config = config;
    this.#log = log;
    this.#tls = tls;
    this.#kept = kept;
    this.#numbers = config.listeners.map(({ port }) => port);
    this.address = new GatewayAddress(
      config.publicUrl,
      () => this.#numbers,
      tls === undefined ? 'http' : 'https',
    );
    this.connections = new OpenConnections({
      ...bounds,
      perAddress: config.connectionsPerAddress,
      headerBytes: config.requestHeaderBytes,
      trustedProxies: config.trustedProxies,
    });
  }

  /** Opens the ports. Throws ListenError. `closeLater` takes the close function of each part as soon as it is open. */
  async open(closeLater: (close: () => Promise<unknown>) => void): Promise<OpenPorts> {
    const { connections } = this;
    const options = { connections, tls: this.#tls, kept: this.#kept };
    const listeners = await openListeners(this.#config, this, options);
    this.#numbers = listeners.urls.map((url) => Number(URL.parse(url)?.port || 80));
    closeLater(() => listeners.close(0));
    const scrapes = await this.#openScrapes();
    closeLater(async () => scrapes?.close(0));
    return { listeners, scrapes };
  }

  async #openScrapes(): Promise<Listeners | undefined> {
    const { allowedHosts, metrics } = this.#config;
    const { host, port } = metrics;
    if (port === undefined) return undefined;
    const address = { listeners: [{ host, port, label: 'metrics' as const }], portsDefaulted: false };
    const app = createMetricsApp({ host, allowedHosts }, () => this.app, this.#log);
    const options = { connections: this.connections, kept: this.#kept };
    const scrapes = await openListeners(address, { serve: app }, options);
    this.#log.info(`metrics are served at ${scrapes.urls[0]}/metrics`);
    return scrapes;
  }
}

/**
 * Resolves with undefined without the settings. Throws ConfigError for one without the other, and OperatorError for files that
 * cannot be used.
 */
export async function publicTlsOf(
  { tls: { cert, key } }: Config,
  log: Logger,
): Promise<PublicTls | undefined> {
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined)
    throw new ConfigError('tls: cert and key belong together; set both or none');
  const { openPublicTls } = await import('./public-tls.ts');
  return openPublicTls({ cert, key }, log);
}
