// Makes the gateway of a server, from its settings and from the parts that were opened before it, and joins the other nodes.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { SigningSecrets } from '../auth/secrets/signing-secret.ts';
import { memoryBounds } from '../domain/memory/held-bytes.ts';
import { newLife } from '../domain/nodes/life.ts';
import { Gateway } from '../gateway/gateway.ts';
import type { GatewayOptions } from '../gateway/gateway-types.ts';
import { type Catalogue, readCatalogue } from '../templates/catalogue.ts';
import { type OtherNodes, openOtherNodes } from './nodes/other-nodes.ts';
import type { OpenedParts, ServerStart } from './opened-parts.ts';
import { reaperPipeOf } from './storage.ts';

/** The gateway, which has joined the other nodes, and what was read and opened for it. */
export interface JoinedGateway {
  readonly gateway: Gateway;
  readonly others: OtherNodes;
  readonly catalogue: Catalogue;
  /** The first one signs tokens. */
  readonly secrets: SigningSecrets['secrets'];
}

interface OwnParts extends Omit<JoinedGateway, 'gateway'> {
  readonly life: string;
  /** The path of the pipe to the reaper; undefined for a database in memory. */
  readonly reaperPipe: string | undefined;
}

/** Makes the gateway, and joins the other nodes. */
export async function makeGateway(begun: ServerStart, opened: OpenedParts): Promise<JoinedGateway> {
  const { config, options, closeLater } = begun;
  const { network, database, accounts } = opened;
  const catalogue = await readCatalogue(config.templatesFolder);
  const life = newLife();
  const { secrets } = await database.signingSecrets();
  const others = await openOtherNodes(begun, opened, { life, secrets });
  const reaperPipe = await reaperPipeOf(config, network.ids.lock);
  await nextTurn(); // the gateway and its app are made in a turn each
  const own = { others, catalogue, life, secrets, reaperPipe };
  const gateway = new Gateway(database.store, gatewayOptions(begun, opened, own));
  closeLater(() => gateway.close({ graceMs: 0 }));
  await nextTurn();
  closeLater(() => others.close());
  await others.join(gateway, accounts.auth, options.signal);
  options.signal?.throwIfAborted();
  return { gateway, others, catalogue, secrets };
}

function gatewayOptions(
  begun: ServerStart,
  opened: OpenedParts,
  { others, catalogue, life, secrets, reaperPipe }: OwnParts,
): GatewayOptions {
  const { config, log, worker, memoryBytes } = begun;
  const { files, network, database, accounts } = opened;
  const { totalBytes, ownerBytes } = memoryBounds(memoryBytes).requests;
  const [first, ...earlier] = secrets;
  return {
    aggregate: config.aggregate,
    deniedNetworks: config.deniedNetworks,
    graceMs: config.graceMs,
    maxCallMs: config.maxCallMs,
    definitions: catalogue.templates,
    storeChanges$: database.storeChanges$,
    node: {
      id: network.ids.gateway,
      worker: worker?.number,
      life,
      isAnyDefault: database.isAnyDefault,
      hasEphemeralNodes: config.cluster.ephemeralNodes,
    },
    others: others.forGateway(),
    policy: config.defaultPolicy,
    stateKeys: [Buffer.from(first), ...earlier.map((secret) => Buffer.from(secret))],
    sessions: { ...config.sessions, recover: config.cluster.recover && database.outlivesProcess },
    memoryBytes,
    // One body of the largest size always fits.
    requestBounds: {
      totalBytes: Math.max(totalBytes, config.requestBodyBytes),
      ownerBytes: Math.max(ownerBytes, config.requestBodyBytes),
    },
    callLimiter: accounts.auth.callLimiter,
    programs: {
      passEnv: config.passEnv,
      user: files.programUser,
      reaperPipe:
        reaperPipe === undefined
          ? undefined
          : {
              path: reaperPipe,
              onNotice: (line) => log.info(line),
              onWarning: (line) => log.error(line),
            },
      protectedPaths: database.protectedPaths,
    },
    discovery: {
      env: process.env,
      namespace: config.sync.namespace,
      registryFile: config.registryFile,
      onNotice: (line) => log.warn(line),
    },
    backendAccounts: backendAccountOptions(begun, opened, others),
    changedCallers$: accounts.auth.changed$,
    systemLookups: accounts.systemLookups,
    onFault: (error) => log.error({ err: error }, 'an MCP request failed'),
  };
}

/** The options for accounts at backends. Undefined where the storage encrypts no secrets: none are kept there. */
function backendAccountOptions(
  { config: { oauth, authEnabled, roles }, log }: ServerStart,
  { database, network }: OpenedParts,
  others: OtherNodes,
): GatewayOptions['backendAccounts'] {
  if (!database.keepsSecrets) return undefined;
  const lives = {
    life: () => others.table?.life,
    hasEnded: (life: string) => others.table?.hasEnded(life) === true,
  };
  return {
    address: network.ports.address,
    openNetworks: oauth.clientNetworks,
    hasUsers: authEnabled,
    roles,
    lives,
    warn: (line) => log.warn(line),
  };
}
