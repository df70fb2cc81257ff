// What goes into the facade and what comes out of it. Types only; the facade itself is gateway.ts.

import type { Observable } from 'rxjs';
import type { ClientCounts, InstanceClients } from './actors/client-metrics.ts';
import type { Inspect } from './actors/instance-supervisor.ts';
import type { MetricsSummary } from './actors/metrics.ts';
import type { InstanceDefinition, InstanceSnapshot } from './domain/instance.ts';
import type { OwnBounds } from './domain/limits.ts';
import type { BalancerPolicy } from './domain/policy.ts';
import type { TemplateSettings } from './domain/template.ts';
import type { RevisionChange } from './persistence/revision-watch.ts';
import type { Store } from './persistence/store.ts';
import type { ProtectedPath } from './templates/command-exposure.ts';
import type { TemplateRules } from './templates/definition.ts';
import type { InProcessHandler } from './transports/transport.ts';

export type { CallResult, ListResult, RequestOptions } from './actors/calls/requests.ts';
export type { InstanceChange } from './domain/instance.ts';

/** How a gateway is made; everything has a default. */
export interface GatewayOptions {
  /** Where registrations are kept. Default: memory. */
  readonly store?: Store;
  /** Name of this node among those that share the store: it runs the programs registered here, and only lists those of
   *  others. It has to stay the same from start to start. Default: every program in the store is run here. */
  readonly nodeId?: string | undefined;
  /** News of a store that others write, too; see watchRevision. `changed`: anybody changed it, this gateway included;
   *  `away`, `answered`: whether it can be reached. Default: nobody else writes it. */
  readonly news$?: Observable<RevisionChange> | undefined;
  /** Defaults for templates without settings of their own. */
  readonly policy?: Partial<BalancerPolicy>;
  /** Templates that are known although nothing may be registered under them: those that have a definition. */
  readonly templates?: readonly string[];
  /** What is said of templates, which are known by that: defaults for the environment of their programs, and what those
   *  require of the machine. Default: nothing. */
  readonly definitions?: readonly TemplateRules[];
  /** CIDR ranges that no backend connection may reach. Default: link-local and cloud metadata. */
  readonly deniedNetworks?: readonly string[];
  /** Names of variables of this process that programs get besides PATH, HOME and LANG. Default: those about proxies and
   *  certificate authorities, without credentials. */
  readonly passEnv?: readonly string[] | undefined;
  /** Files and folders that no command may be handed, besides the file of the store. Default: none. */
  readonly protectedPaths?: readonly ProtectedPath[];
  /** Ms that calls in flight have to finish when the gateway closes. Default 25 000. */
  readonly graceMs?: number;
  /** Sessions of MCP clients: how many at a time, all templates together, and after how many ms without a message and
   *  without an open stream one ends; and what of these, and of programs of their own, they may have. Defaults
   *  LIMITS.sessions, LIMITS.sessionIdleMs and OWN_BOUNDS. */
  readonly sessions?: { readonly max?: number; readonly idleMs?: number } & Partial<OwnBounds>;
  /** At least 32 bytes; seals what MCP clients carry from one request to the next. Nodes that share it open what another
   *  one sealed. Default: random. */
  readonly sealKey?: Buffer;
  /** Bytes of memory that this process may use: what unfinished answers and kept events may hold follows from it.
   *  Default: the limit of the control group, or the memory of the machine. */
  readonly memoryBytes?: number | undefined;
  /** Id of a principal who may not do any more what they were let in for: what they have open as an MCP client ends.
   *  Whoever has something open is in `Gateway.openCallers`. Default: nobody ever changes. */
  readonly changedCallers$?: Observable<string> | undefined;
  /** Hears of errors of the gateway's own that end a request of an MCP client: what the client is told is only that there
   *  was one. What it throws is dropped. Default: nobody hears. */
  readonly onFault?: (error: unknown) => void;
  /** Where containers, pods and entries of a file are looked for; see `Gateway.sync`. Default: nowhere. */
  readonly discovery?: DiscoveryOptions;
  /** Observes the actors of instances and of the conversations that clients have there, as `inspect` of xstate's
   *  `createActor` does. It is called for every event of every call. Default: they are not inspected. */
  readonly inspect?: Inspect | undefined;
  /** Randomness in [0, 1). Default Math.random. */
  readonly random?: () => number;
}

export interface DiscoveryOptions {
  /** Environment that says where engines and clusters are, such as process.env. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Kubernetes namespace; `*` for all. Default `mcp-servers`. */
  readonly namespace?: string | undefined;
  /** Path of the registry file that `sync` reads again. Reading it at the start is the caller's. Default: none. */
  readonly registryFile?: string | undefined;
  /** Hears of sources that are lost, and found again, while they are followed: one line each. */
  readonly onNotice?: (line: string) => void;
}

export interface CloseOptions {
  /** Ms that calls in flight have to finish. Default: what the gateway was made with. */
  readonly graceMs?: number;
}

export type GatewayPhase = 'starting' | 'running' | 'closing';

/** An instance that is a function of this program, instead of a process or an endpoint. */
export interface InProcessInput {
  readonly handler: InProcessHandler;
  readonly id?: string;
  readonly weight?: number;
  readonly metadata?: Record<string, unknown>;
}

/** What MCP clients have open, in numbers. */
export interface ClientStats {
  /** Of those that are open: they rest, and cost little. */
  readonly parkedSessions: number;
  readonly maxSessions: number;
  /** By template; absent where no client ever came. */
  readonly templates: ReadonlyMap<string, ClientCounts>;
}

export interface GatewayStats extends MetricsSummary {
  /** Exchanges under way now. */
  readonly activeConnections: number;
  /** What MCP clients have open. */
  readonly clients: ClientStats;
}

/** An instance as registered, and as it is now. */
export interface Server {
  readonly definition: InstanceDefinition;
  readonly snapshot: InstanceSnapshot;
  /** One line each: what is not as it should be but keeps nothing from working. */
  readonly warnings?: readonly string[];
  /** What MCP clients have there now. */
  readonly clients: InstanceClients;
}

export interface TemplateView {
  readonly settings: TemplateSettings;
  readonly policy: BalancerPolicy;
  readonly instances: readonly InstanceDefinition[];
}
