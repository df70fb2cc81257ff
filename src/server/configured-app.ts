// Makes the HTTP application of a server, from its settings and from the parts that were opened before it.

import type { Logger } from 'pino';
import type { SigningSecrets } from '../auth/secrets/signing-secret.ts';
import type { Config } from '../config/config.ts';
import { isLoopback } from '../domain/local-address.ts';
import type { MemoryBounds } from '../domain/memory/held-bytes.ts';
import type { OwnWorker } from '../domain/nodes/workers.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { createApp, type HttpApp } from '../http/app.ts';
import type { TemplateDefinition } from '../templates/definition.ts';
import type { OtherNodes } from './nodes/other-nodes.ts';
import { authorizationServerOf, type ServerAuth, signInOf } from './server-auth.ts';
import type { Ports } from './sockets/ports.ts';
import type { Storage } from './storage.ts';

interface ConfiguredAppOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly storage: Storage;
  readonly serverAuth: ServerAuth;
  readonly gateway: Gateway;
  readonly others: OtherNodes;
  readonly ports: Pick<Ports, 'address' | 'connections'>;
  readonly definitions: readonly TemplateDefinition[];
  readonly worker: OwnWorker | undefined;
  readonly secrets: SigningSecrets['secrets'];
  readonly unreadBounds: MemoryBounds['unreadAnswers'];
  /** Takes the close function of each part that is opened. */
  readonly closeLater: (close: () => Promise<unknown>) => void;
}

export function configuredApp(options: ConfiguredAppOptions): HttpApp {
  const { config, log, storage, serverAuth, gateway, others, ports } = options;
  const { auth, keys, assertions, providers } = serverAuth;
  const { address } = ports;
  const signIn = signInOf(config, address);
  const own = { address, auth, keys, secrets: options.secrets, log, assertions, providers };
  const authorizationServer = signIn?.hasOwnServer ? authorizationServerOf(config, storage, own) : undefined;
  const app = createApp(gateway, {
    allowedCommands: config.allowedCommands,
    allowedHosts: config.allowedHosts,
    allowedOrigins: config.allowedOrigins,
    corsOrigins: config.corsOrigins,
    deniedNetworks: config.deniedNetworks,
    publicUrl: config.publicUrl,
    registry: config.registry,
    trustedProxies: config.trustedProxies,
    worker: options.worker,
    signIn,
    authorizationServer,
    auth,
    definitions: options.definitions,
    log,
    others: { peers: others.peers, nodes: () => others.nodes(), counts: others.counts },
    settings: config.rows,
    isPublic: config.authEnabled && config.listeners.some(({ host }) => !isLoopback(host)),
    maxBodyBytes: config.requestBodyBytes,
    unreadBounds: options.unreadBounds,
    connections: ports.connections,
  });
  options.closeLater(async () => app.authorizationServer?.close());
  return app;
}
