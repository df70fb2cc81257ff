// Makes the gateway of a server, from its settings and from the parts that were opened before it.

import type { Logger } from 'pino';
import type { Observable } from 'rxjs';
import type { Auth } from '../auth/auth.ts';
import type { SigningSecrets } from '../auth/secrets/signing-secret.ts';
import type { NodeTable } from '../cluster/node-table/node-table.ts';
import type { Config } from '../config/config.ts';
import type { GatewayAddress } from '../domain/accounts/resource.ts';
import type { ProgramUser } from '../domain/instances/command.ts';
import { memoryBounds } from '../domain/memory/held-bytes.ts';
import { Gateway } from '../gateway/gateway.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';
import type { TemplateDefinition } from '../templates/definition.ts';
import type { OtherNodes } from './nodes/other-nodes.ts';
import type { Storage } from './storage.ts';

interface ConfiguredGatewayOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly storage: Storage;
  readonly storeChanges$: Observable<RevisionChange>;
  readonly auth: Auth;
  readonly address: GatewayAddress;
  readonly others: OtherNodes;
  readonly definitions: readonly TemplateDefinition[];
  /** The id of the gateway, and the number of this worker of it. */
  readonly gatewayId: string;
  readonly worker: number | undefined;
  readonly life: string;
  readonly secrets: SigningSecrets['secrets'];
  readonly programUser: ProgramUser | undefined;
  /** The path of the pipe to the reaper; undefined for a database in memory. */
  readonly reaperPipe: string | undefined;
  /** True when the database outlives the process: the next start of this node finds its sessions there. */
  readonly outlivesProcess: boolean;
  /** The memory that this process may use, in bytes. */
  readonly memoryBytes: number;
}

export function configuredGateway(options: ConfiguredGatewayOptions): Gateway {
  const { config, log, storage, storeChanges$, auth, address, others, secrets, reaperPipe } = options;
  const { totalBytes, ownerBytes } = memoryBounds(options.memoryBytes).requests;
  const [first, ...earlier] = secrets;
  return new Gateway(storage.store, {
    aggregate: config.aggregate,
    deniedNetworks: config.deniedNetworks,
    graceMs: config.graceMs,
    maxCallMs: config.maxCallMs,
    definitions: options.definitions,
    storeChanges$,
    node: {
      id: options.gatewayId,
      worker: options.worker,
      life: options.life,
      isAnyDefault: storage.isAnyDefault,
      hasEphemeralNodes: config.cluster.ephemeralNodes,
    },
    others: others.forGateway(),
    policy: config.defaultPolicy,
    stateKeys: [Buffer.from(first), ...earlier.map((secret) => Buffer.from(secret))],
    sessions: { ...config.sessions, recover: config.cluster.recover && options.outlivesProcess },
    memoryBytes: options.memoryBytes,
    // One body of the largest size always fits.
    requestBounds: {
      totalBytes: Math.max(totalBytes, config.requestBodyBytes),
      ownerBytes: Math.max(ownerBytes, config.requestBodyBytes),
    },
    callLimiter: auth.callLimiter,
    programs: {
      passEnv: config.passEnv,
      user: options.programUser,
      reaperPipe:
        reaperPipe === undefined
          ? undefined
          : {
              path: reaperPipe,
              onNotice: (line) => log.info(line),
              onWarning: (line) => log.error(line),
            },
      protectedPaths: storage.protectedPaths,
    },
    discovery: {
      env: process.env,
      namespace: config.sync.namespace,
      registryFile: config.registryFile,
      onNotice: (line) => log.warn(line),
    },
    backendAccounts: backendAccountOptionsOf(
      config,
      storage,
      address,
      () => others.table,
      (line) => log.warn(line),
    ),
    changedCallers$: auth.changed$,
    onFault: (error) => log.error({ err: error }, 'an MCP request failed'),
  });
}

/** The options for accounts at backends. Undefined where the storage encrypts no secrets: none are kept there. */
function backendAccountOptionsOf(
  { oauth, authEnabled, roles }: Config,
  { keepsSecrets }: Pick<Storage, 'keepsSecrets'>,
  address: GatewayAddress,
  table: () => Pick<NodeTable, 'life' | 'hasEnded'> | undefined,
  warn: (line: string) => void,
) {
  if (!keepsSecrets) return undefined;
  const lives = {
    life: () => table()?.life,
    hasEnded: (life: string) => table()?.hasEnded(life) === true,
  };
  return { address, openNetworks: oauth.clientNetworks, hasUsers: authEnabled, roles, lives, warn };
}
