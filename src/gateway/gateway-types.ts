// Input and results of the facade (gateway.ts). Types only, and plain ones: an embedding program compiles them
// without the types of MikroORM and XState.

import type { Observable } from 'rxjs';
import type { StrategyName, TemplatePolicy } from '../balancing/policy.ts';
import type { StoredTemplate } from '../balancing/stored-template.ts';
import type { ClientCounts, InstanceClients, MetricsSummary } from '../counts/traffic-counts.ts';
import type { DefinedRoles } from '../domain/accounts/account.ts';
import type { ExchangeOptions, ExchangeRequest, SourcedEvent } from '../domain/calls/exchange.ts';
import type { GatewayError } from '../domain/errors/errors.ts';
import type { ActorInspector } from '../domain/events/actor-inspection.ts';
import type { ProgramUser } from '../domain/instances/command.ts';
import type {
  DedicatedBounds,
  InstanceDefinition,
  InstanceSnapshot,
  TemplateAuth,
} from '../domain/instances/instance.ts';
import type { JsonObject } from '../domain/json/json.ts';
import type { Owner } from '../domain/mcp/client.ts';
import type { Era, WithheldItem } from '../domain/mcp/mcp.ts';
import type { ByteBounds, InstanceHeldBytes } from '../domain/memory/held-bytes.ts';
import type { SessionHolders } from '../domain/sessions/session-holder.ts';
import type { Clock } from '../domain/time/clock.ts';
import type {
  AggregatePresentation,
  CallLimiter,
  StoredView,
  ViewDefinition,
  ViewProblem,
} from '../domain/views/view.ts';
import type { SystemLookups } from '../net/system-lookups.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';
import type { Store } from '../persistence/store.ts';
import type { ReaperPipeOptions } from '../programs/reaper-pipe.ts';
import type { ViewCondition } from '../registry/kinds/view-registry.ts';
import type { ProtectedPath } from '../templates/command-exposure.ts';
import type { TemplateRules } from '../templates/definition.ts';
import type { InProcessHandler, Open } from '../transports/open-options.ts';
import type { VaultOptions } from '../vault/vault.ts';

export type { InstanceChange } from '../domain/instances/instance.ts';
export type { ShownSession } from '../domain/mcp/client.ts';
export type { CallResult, ListResult, RequestOptions } from './promised-answers.ts';

/** Options of createGateway. Each has a default. */
export interface GatewayOptions {
  /**
   * Keeps the registry. The program that opens a store closes it. Default: memory.
   * @example { store: await openStore('sqlite:///registry.db', { cwd: '.', migrations: 'apply' }) }
   */
  readonly store?: Store;
  /** This node among the nodes that share the store. Default: this gateway alone uses it. */
  readonly node?: NodeOptions;
  /**
   * The functions that this node asks about the others. Default: it knows no others.
   * @internal
   */
  readonly others?: OthersOptions;
  /**
   * The look-ups by the system, which other parts of the process use, too. Default: those of this gateway alone.
   * @internal
   */
  readonly systemLookups?: SystemLookups | undefined;
  /**
   * Changes of a store that other nodes write, too, as watchRevision emits them. `changed`: a node changed it, perhaps this
   * one; `away`, `answered`: whether the store can be reached. Default: no other node writes it.
   */
  readonly storeChanges$?: Observable<RevisionChange> | undefined;
  /** Defaults for settings that a template does not set. */
  readonly policy?: Partial<TemplatePolicy>;
  /**
   * Template definitions: default environment of the programs, their requirements of the machine, and default settings. These
   * templates exist without an instance, too. Default: none.
   */
  readonly definitions?: readonly TemplateRules[];
  /** The presentation of all templates as one server. Default: all tools are listed, with the instructions of their templates. */
  readonly aggregate?: AggregatePresentation | undefined;
  /** CIDR ranges that no backend connection may reach. Default: link-local and cloud metadata. */
  readonly deniedNetworks?: readonly string[];
  /** The settings with which programs are started. */
  readonly programs?: ProgramSettings;
  /** The longest call, in ms, whatever progress it reports, unless its timeout is longer. Default: 600 000. */
  readonly maxCallMs?: number | undefined;
  /** Counts the calls that views limit, perhaps with those of other nodes. Default: this gateway counts alone. */
  readonly callLimiter?: CallLimiter | undefined;
  /** The longest wait for calls in flight when the gateway closes, in ms. Default: 25 000. */
  readonly graceMs?: number;
  /**
   * Sessions of MCP clients. `max`: most at a time, of all templates (default LIMITS.sessions). `idleMs`: a session without a
   * message and without an open stream ends after it (default LIMITS.sessionIdleMs). `recover`: sessions outlive the gateway in
   * a store with a database; only where no other program is the node `node.id` of that store at the same time (default false).
   * The others bound the dedicated processes.
   */
  readonly sessions?: {
    readonly max?: number;
    readonly idleMs?: number;
    readonly recover?: boolean;
  } & DedicatedBounds;
  /**
   * Each at least 32 bytes. The first encrypts the state that MCP clients carry from one request to the next, all
   * decrypt it; nodes with the same keys decrypt each other's. Default: one, random.
   */
  readonly stateKeys?: readonly [Buffer, ...Buffer[]] | undefined;
  /**
   * Bytes of memory that this process may use, from which the bounds of unfinished answers, waiting messages and buffered
   * events follow. Default: the limit of the control group, or the memory of the machine.
   */
  readonly memoryBytes?: number | undefined;
  /** Bounds of the bytes that wait for backends: of requests of callers, and of other messages, by caller. Default: those of `memoryBytes`. */
  readonly requestBounds?: ByteBounds | undefined;
  /**
   * Ids of principals that lost a permission: their sessions and streams as MCP clients end. `Gateway.openCallers` returns
   * the principals with any open. Default: permissions never change.
   */
  readonly changedCallers$?: Observable<string> | undefined;
  /**
   * Gets each internal error that ends a request of an MCP client; the client gets no details. Errors it throws are dropped.
   * Default: internal errors are not reported.
   */
  readonly onFault?: ((error: unknown) => void) | undefined;
  /**
   * The place where browsers reach the gateway, for accounts at backends that want OAuth. Default: such backends cannot be
   * registered.
   */
  readonly backendAccounts?: BackendAccountOptions | undefined;
  /** Sources of `Gateway.sync`: container engines, clusters and a registry file. Default: none. */
  readonly discovery?: DiscoveryOptions;
  /**
   * Gets xstate's inspection events of the gateway's actor tree: the root, the instances, and the sessions of
   * clients. It runs within each step, so it must be quick;
   * errors it throws are dropped. Default: no inspection.
   * @example
   * const gateway = await createGateway({
   *   inspect: ({ type, actorRef, event }) => {
   *     if (type === '@xstate.event') console.log(actorRef.sessionId, event?.type);
   *   },
   * });
   */
  readonly inspect?: ActorInspector;
  /** Randomness in [0, 1). Default: Math.random. */
  readonly random?: (() => number) | undefined;
  /** Times and waits. Default: those of this process. */
  readonly clock?: Clock;
}

/** The place of accounts at backends that want OAuth. */
export interface BackendAccountOptions
  extends Pick<VaultOptions, 'address' | 'openNetworks' | 'lives' | 'warn'> {
  /** False: there are no users, and so only shared accounts. Default: true. */
  readonly hasUsers?: boolean;
  /** The roles of the settings. */
  readonly roles?: DefinedRoles | undefined;
}

/** This node among the nodes that share the store. */
export interface NodeOptions {
  /**
   * Name of this node among the nodes that share the store; the same at each start. The node runs the programs that were
   * registered through it, and lists those of other nodes. Default: this gateway runs every program in the store.
   */
  readonly id?: string | undefined;
  /**
   * The number of this process among the processes that are the node together; they share its programs. Default: this
   * process is the node.
   * @internal
   */
  readonly worker?: number | undefined;
  /**
   * The life of this node, with which the ids of its sessions begin: other nodes find the holder by it. Default: a new one.
   * @internal
   */
  readonly life?: string | undefined;
  /**
   * True when new programs without a working folder may run on any node of the store, unless they name one. Default:
   * false, and they belong to this node.
   * @internal
   */
  readonly isAnyDefault?: boolean | undefined;
  /**
   * True when names of nodes do not return, as those of pods: programs that would belong to one node are refused.
   * Default: false.
   */
  readonly hasEphemeralNodes?: boolean | undefined;
}

/** The functions that a node asks about the others that share its store. */
export interface OthersOptions extends SessionHolders {
  /** True when the nodes of the store decide together where programs run that any node may run. Default: false, and they run here. */
  readonly leasesPrograms?: boolean | undefined;
  /** Opens the link to an instance that another node runs. Default: such instances are only listed. */
  readonly openElsewhere?: ((definition: InstanceDefinition, answers: InstanceHeldBytes) => Open) | undefined;
  /**
   * True while this node alone has lost the store that it shares: it opens no sessions, which others could not
   * know. Default: never.
   */
  readonly isCutOff?: (() => boolean) | undefined;
  /**
   * Resolves when it is known whether others have recovered the sessions of this node; undefined while there is no doubt. No call
   * of a session is sent before. Default: there is no doubt.
   */
  readonly untilLifeKnown?: (() => Promise<void> | undefined) | undefined;
}

/** The settings with which programs are started. */
export interface ProgramSettings {
  /**
   * The names of variables of this process that programs get besides PATH, HOME and LANG. Default: the variables that name
   * proxies and certificate authorities, without credentials.
   */
  readonly passEnv?: readonly string[] | undefined;
  /** The user that programs run as; only root can set another one. Default: the user of this process. */
  readonly user?: ProgramUser | undefined;
  /** The pipe of this node, by which its programs wait for those of its former process. Not on Windows. Default: they do not. */
  readonly reaperPipe?: ReaperPipeOptions | undefined;
  /** Files and folders that no command may get as an argument or working folder, besides the file of the store. Default: none. */
  readonly protectedPaths?: readonly ProtectedPath[];
}

/** Sources of `Gateway.sync`. */
export interface DiscoveryOptions {
  /** Environment with the addresses of engines and clusters, such as process.env. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Kubernetes namespace; `*` for all. Default: `mcp-servers`. */
  readonly namespace?: string | undefined;
  /** Path of the registry file that `sync` reads again; `importFile` takes it in at the start. Default: none. */
  readonly registryFile?: string | undefined;
  /** Gets one line for each source that is lost, or found again, while it is followed. Errors it throws are dropped. */
  readonly onNotice?: (line: string) => void;
}

export interface CloseOptions {
  /** The longest wait for calls in flight, in ms. Default: that of GatewayOptions. */
  readonly graceMs?: number;
}

export type GatewayPhase = 'starting' | 'running' | 'closing';

/** An instance that is a function of this program, instead of a process or an endpoint. It is not stored. */
export interface InProcessInput {
  /** Gets MCP requests (`tools/list`, `tools/call`, ...) and returns MCP results. */
  readonly handler: InProcessHandler;
  readonly id?: string;
  readonly weight?: number;
  readonly metadata?: Record<string, unknown>;
}

/** Counts of the open sessions and dedicated processes of MCP clients. */
export interface ClientStats {
  readonly maxSessions: number;
  /** The counts by template; only of templates that ever had a client. */
  readonly templates: ReadonlyMap<string, ClientCounts>;
}

export interface ConnectionTestOptions {
  /** Stops the test. */
  readonly signal?: AbortSignal;
  /** The id of the calling principal, whose share of the tests bounds it. Default: none; all tests may be its own. */
  readonly callerId?: string;
  /** True when the caller is limited to some templates. Default: false. */
  readonly isLimited?: boolean;
}

/** The outcome of a connection test. `stderr`: the last lines of its program, if it has one. */
export type ConnectionOutcome = (
  | {
      readonly isOk: true;
      readonly era: Era;
      /** How the server names itself in its handshake. Undefined when it does not. */
      readonly server: { readonly name: string; readonly version: string } | undefined;
      /** Number of tools that it lists. */
      readonly tools: number;
    }
  | { readonly isOk: false; readonly error: GatewayError; readonly stderr: readonly string[] }
) & { readonly durationMs: number };

export interface GatewayStats extends MetricsSummary {
  /** Exchanges in flight now. */
  readonly activeConnections: number;
  /** The open sessions and dedicated processes of MCP clients. */
  readonly clients: ClientStats;
}

/** The health of a template, counted from the snapshots of its instances. */
export interface TemplateHealth {
  readonly template: string;
  readonly strategy: StrategyName;
  /** All instances, including draining ones. */
  readonly instances: readonly InstanceSnapshot[];
  /** The number of instances, without draining and stopped ones. */
  readonly total: number;
  readonly healthy: number;
  /** 0 to 100, one decimal; 0 without instances. */
  readonly healthPercentage: number;
}

/** The load of a template now, and the state of its instances. */
export interface TemplateSnapshot {
  readonly template: string;
  /** Calls that wait for an instance. */
  readonly queued: number;
  /** Calls in flight at its instances. */
  readonly inFlight: number;
  /** Sessions and processes of MCP clients. */
  readonly clients: ClientCounts;
  /** The server ids of the instances that other nodes run, and the calls in flight there. Undefined: none. */
  readonly elsewhere?: { readonly calls: number; readonly serverIds: ReadonlySet<string> } | undefined;
  /** The snapshots are made when this field is read. */
  readonly instances: readonly InstanceSnapshot[];
}

/** An instance: its registration and its present state. */
export interface Server {
  readonly definition: InstanceDefinition;
  readonly snapshot: InstanceSnapshot;
  /**
   * Id of the node that runs the instance, if it is a program. While no node runs one of any node, or that is not
   * known, it is `any`.
   */
  readonly runner?: string | undefined;
  /** Faults that do not stop the instance from working, a line for each. */
  readonly warnings?: readonly string[];
  /** The open sessions and dedicated processes of MCP clients at the instance. */
  readonly clients: InstanceClients;
}

/** A template: its own settings, the policy that follows from them, its instances. */
export interface ShownTemplate {
  readonly settings: StoredTemplate;
  readonly policy: TemplatePolicy;
  /** The setting for instances that are registered without `auth`: that of the template's settings, else of its definition. */
  readonly auth?: TemplateAuth | undefined;
  readonly instances: readonly InstanceDefinition[];
  /** Items that the lists at `/mcp` leave out. */
  readonly withheld: readonly WithheldItem[];
}

/** The views of a gateway: servers that are made of choices from templates. */
export interface ServedViews {
  /** True for the name of a view. A template with the same name goes before it. */
  has(id: string): boolean;
  /** All views, sorted by id. */
  list(): StoredView[];
  /** One view, by its id. Throws VIEW_NOT_FOUND. */
  find(id: string): StoredView;
  /**
   * Stores a view, which replaces the one with its id. Throws VALIDATION_ERROR, DUPLICATE_VIEW, PRECONDITION_FAILED,
   * REGISTRY_FULL, DATABASE_UNAVAILABLE; errors of `admit`.
   */
  put(
    definition: ViewDefinition,
    condition?: ViewCondition,
  ): Promise<ViewRecord & { readonly isNew: boolean }>;
  /** Deletes a view. Throws VIEW_NOT_FOUND, PRECONDITION_FAILED, DATABASE_UNAVAILABLE; errors of `admit`. */
  delete(id: string, condition?: ViewCondition): Promise<void>;
  /** The present problems of the view by the lists of its templates. Throws VIEW_NOT_FOUND. */
  problems(id: string): Promise<ViewProblem[]>;
  /**
   * The tools of a view by the names under which they are listed, or would be, with their approval where the view is pinned.
   * Throws VIEW_NOT_FOUND, DATABASE_UNAVAILABLE.
   */
  tools(id: string): Promise<ViewTool[]>;
  /**
   * Approves the waiting definitions of these tools of a pinned view, or of all; resolves with the tools that waited. A tool is
   * named as in the list, or `<template>/<tool>`. `digests`: only these definitions. Throws VIEW_NOT_FOUND, TOOL_NOT_FOUND,
   * DATABASE_UNAVAILABLE.
   */
  approve(id: string, tools?: readonly string[], digests?: readonly string[]): Promise<readonly string[]>;
  /**
   * A preview of the items that a caller would get from this definition, or from a stored view. Stores nothing. Throws
   * VALIDATION_ERROR, VIEW_NOT_FOUND.
   */
  preview(view: ViewDefinition | string, owner?: Owner): Promise<ViewPreview>;
  /** The health of each template of the view. Throws VIEW_NOT_FOUND. */
  health(id: string): readonly Pick<TemplateHealth, 'template' | 'total' | 'healthy'>[];
  /** The exchange of a request by the names of the view; otherwise the same as Gateway.exchange. Throws VIEW_NOT_FOUND. */
  exchange(id: string, request: ExchangeRequest, options?: ExchangeOptions): Observable<SourcedEvent>;
}

export interface ViewRecord {
  readonly view: StoredView;
  readonly problems: readonly ViewProblem[];
}

export interface ViewPreview {
  readonly tools: readonly JsonObject[];
  /** The listed names of the tools whose calls the user confirms. */
  readonly asks: readonly string[];
  readonly problems: readonly ViewProblem[];
}

/** A tool of a view, and whether clients of it get the tool. */
export interface ViewTool {
  /** The name under which the tool is listed, or would be. */
  readonly name: string;
  readonly template: string;
  /** The name of the tool at its server. */
  readonly tool: string;
  readonly state: 'approved' | 'new' | 'changed' | 'withheld';
  /** The reason why the tool is withheld, as a clause. */
  readonly reason?: string;
  /** The newest approved definition. */
  readonly approved?: JsonObject;
  /** The newest one that waits for approval. */
  readonly listed?: JsonObject;
  /** All that wait, the newest last, each with its SHA-256 as hexadecimal digits. */
  readonly waiting?: readonly { readonly digest: string; readonly definition: JsonObject }[];
}
