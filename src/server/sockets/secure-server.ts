// A server of HTTPS for one port. Connections are counted from their first byte on, also before their handshake is
// over. Source: ADR 209.

import type { RequestListener, Server, ServerOptions } from 'node:http';
import type { BodyRequest } from '../../http/body/body-request.ts';
import { limitKeyUpdatesOf } from '../../net/tls/key-updates.ts';
import { ListenerHandshakes } from '../../net/tls/listener-handshakes.ts';
import type { OpenConnections } from './open-connections.ts';
import type { PublicTls } from './public-tls.ts';

/** The longest handshake, in ms. */
const HANDSHAKE_MS = 10_000;

const HTTPS_ONLY =
  'HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\nThis port speaks HTTPS: use https:// in the URL.\n';

export function secureServer(
  limits: ServerOptions<typeof BodyRequest>,
  receive: RequestListener<typeof BodyRequest>,
  tls: PublicTls,
  connections: Pick<OpenConnections, 'secure'>,
): Server {
  const { createServer } = process.getBuiltinModule('node:https');
  const server = createServer({ ...limits, ...tls.present(), handshakeTimeout: HANDSHAKE_MS }, receive);
  tls.onChange(() => server.setSecureContext(tls.present()));
  limitKeyUpdatesOf(server);
  const handshakes = new ListenerHandshakes(server);
  server.on('secureConnection', (secure) => {
    const socket = handshakes.end(secure);
    if (socket !== undefined) connections.secure(socket, secure);
  });
  // This runs before the listener of Node, which closes the connection.
  server.prependListener('tlsClientError', (error: NodeJS.ErrnoException, secure) => {
    if (error.code === 'ERR_SSL_HTTP_REQUEST') handshakes.of(secure)?.end(HTTPS_ONLY);
  });
  return server;
}
