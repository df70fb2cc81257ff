// Makes the HTTP application of a server, from its settings and from the parts that were opened before it.

import { isLoopback } from '../domain/local-address.ts';
import { createApp, type HttpApp } from '../http/app.ts';
import type { JoinedGateway } from './configured-gateway.ts';
import type { OpenedParts, ServerStart } from './opened-parts.ts';
import { authorizationServerOf, signInOf } from './server-auth.ts';

/** The application. It serves other nodes at once, and clients when it is given to the ports. */
export function makeApp(
  { config, log, worker, closeLater }: ServerStart,
  { network, database, accounts }: OpenedParts,
  { gateway, others, secrets }: JoinedGateway,
): HttpApp {
  const { ports, unreadBounds } = network;
  const { auth, keys, assertions, providers } = accounts;
  const { address } = ports;
  const signIn = signInOf(config, address);
  const own = { address, auth, keys, secrets, log, assertions, providers };
  const app = createApp(gateway, {
    allowedCommands: config.allowedCommands,
    allowedHosts: config.allowedHosts,
    allowedOrigins: config.allowedOrigins,
    corsOrigins: config.corsOrigins,
    deniedNetworks: config.deniedNetworks,
    publicUrl: config.publicUrl,
    registry: config.registry,
    trustedProxies: config.trustedProxies,
    worker,
    signIn,
    authorizationServer: signIn?.hasOwnServer ? authorizationServerOf(config, database, own) : undefined,
    auth,
    log,
    others: { peers: others.peers, nodes: () => others.nodes(), counts: others.counts },
    settings: config.rows,
    isPublic: config.authEnabled && config.listeners.some(({ host }) => !isLoopback(host)),
    maxBodyBytes: config.requestBodyBytes,
    unreadBounds,
    connections: ports.connections,
  });
  closeLater(async () => app.authorizationServer?.close());
  others.serveForwarded = app.serveForwarded;
  ports.app = app;
  auth.watchSessions(() => new Set([...gateway.openCallers(), ...app.openCallers()]));
  return app;
}
