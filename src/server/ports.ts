// When the ports of a worker are opened, their TLS, and the port for Prometheus. listeners.ts has the sockets.

import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { sleep, systemClock } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { createMetricsApp, type HttpApp } from '../http/app.ts';
import type { Connections } from './connections.ts';
import { type Listeners, openListeners } from './listeners.ts';
import type { PublicTls } from './public-tls.ts';

const READY_CHECK_MS = 50;

/** Undefined without the settings. Rejects with ConfigError for one without the other, and with OperatorError for files that cannot be used. */
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

/** Waits until the instances have opened, for a few seconds at most. */
export async function openPortsWhenReady<Ports>(
  gateway: Gateway,
  open: () => Promise<Ports>,
): Promise<Ports> {
  const untilMs = systemClock.now() + LIMITS.firstOpeningsMs;
  while (!gateway.isReady && systemClock.now() < untilMs) await sleep(systemClock, READY_CHECK_MS);
  return open();
}

/** Opens the listener for Prometheus, if one is configured. `metrics`: undefined until the gateway exists. */
export async function openScrapes(
  { metrics: { host, port }, allowedHosts }: Config,
  connections: Connections,
  metrics: () => HttpApp['metrics'] | undefined,
  log: Logger,
): Promise<Listeners | undefined> {
  if (port === undefined) return undefined;
  const address = { listeners: [{ host, port, label: 'metrics' as const }], portsDefaulted: false };
  const app = createMetricsApp({ host, allowedHosts }, metrics, log);
  const scrapes = await openListeners(address, app, { connections });
  log.info(`metrics are served at ${scrapes.urls[0]}/metrics`);
  return scrapes;
}
