// What the specs of the http transport share: a definition for an endpoint, options for opening, and an open
// transport together with its fixture server.

import { DENIED_NETWORKS } from '../../../src/domain/endpoint.ts';
import type { InstanceDefinition } from '../../../src/domain/instance.ts';
import { http } from '../../../src/transports/http/http.ts';
import type { OpenOptions, Transport } from '../../../src/transports/transport.ts';
import { openOptions as anyOptions, instanceDefinition } from '../../conformance/transport.ts';
import type { HttpServerOptions } from '../../fixtures/http-options.ts';
import { type HttpFixture, startHttpServer } from '../../fixtures/http-server.ts';

/** A definition that reaches an endpoint. */
export function httpDefinition(endpoint: string, more: Partial<InstanceDefinition> = {}): InstanceDefinition {
  return instanceDefinition({ transport: 'http', endpoint, ...more });
}

export function openOptions(more: Partial<OpenOptions> = {}): OpenOptions {
  return anyOptions({ handshakeTimeoutMs: 5_000, deniedNetworks: DENIED_NETWORKS, ...more });
}

/** Opens a transport to a fresh fixture server, runs the body, and closes both whatever happens. */
export async function withBackend(
  options: HttpServerOptions,
  body: (backend: { transport: Transport; server: HttpFixture }) => Promise<void>,
  more: { definition?: Partial<InstanceDefinition>; open?: Partial<OpenOptions> } = {},
): Promise<void> {
  const server = await startHttpServer(options);
  try {
    const transport = await http.open(httpDefinition(server.url, more.definition), openOptions(more.open));
    try {
      await body({ transport, server });
    } finally {
      await transport.close();
    }
  } finally {
    await server.close();
  }
}
