// What the specs of the http transport share: a definition for an endpoint, options for opening, and an open
// transport together with its fixture server.

import type { RequestListener } from 'node:http';
import type { InstanceDefinition } from '../../../src/domain/instances/instance.ts';
import { DENIED_NETWORKS } from '../../../src/domain/registration/instance-endpoint.ts';
import { addressesIn } from '../../../src/net/network-guard.ts';
import { open as http } from '../../../src/transports/http/http.ts';
import type { OpenOptions } from '../../../src/transports/open-options.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import { openOptions as anyOptions, instanceDefinition } from '../../conformance/transport.ts';
import type { HttpServerOptions } from '../../fixtures/http-options.ts';
import { type HttpFixture, startHttpServer } from '../../fixtures/http-server.ts';
import { withRawServer } from '../raw-server.ts';

/** A definition that reaches an endpoint. */
export function httpDefinition(endpoint: string, more: Partial<InstanceDefinition> = {}): InstanceDefinition {
  return instanceDefinition({ transport: 'http', endpoint, ...more });
}

/** Makes the endpoint of a definition that of a program, which serves nothing itself. */
export const idleProgram = { command: process.execPath, args: ['-e', 'setInterval(() => {}, 60_000)'] };

export function openOptions(more: Partial<OpenOptions> = {}): OpenOptions {
  return anyOptions({
    handshakeTimeoutMs: 5_000,
    network: { isDenied: addressesIn(DENIED_NETWORKS) },
    ...more,
  });
}

/** Opens a transport to the endpoint, runs the body, and closes the transport whatever happens. */
async function withTransport(
  url: string,
  body: (transport: Transport) => Promise<void>,
  definition: Partial<InstanceDefinition> = {},
  options: Partial<OpenOptions> = {},
): Promise<void> {
  const transport = await http(httpDefinition(url, definition), openOptions(options));
  try {
    await body(transport);
  } finally {
    await transport.close();
  }
}

/** The same with a server of the spec. */
export function withRawTransport(
  listener: RequestListener,
  body: (transport: Transport) => Promise<void>,
  options: Partial<OpenOptions> = {},
): Promise<void> {
  return withRawServer(listener, ({ url }) => withTransport(url, body, {}, options));
}

/** Opens a transport to a fresh fixture server, runs the body, and closes both whatever happens. */
export async function withBackend(
  options: HttpServerOptions,
  body: (backend: { transport: Transport; server: HttpFixture }) => Promise<void>,
  more: { definition?: Partial<InstanceDefinition>; open?: Partial<OpenOptions> } = {},
): Promise<void> {
  const server = await startHttpServer(options);
  try {
    await withTransport(server.url, (transport) => body({ transport, server }), more.definition, more.open);
  } finally {
    await server.close();
  }
}
