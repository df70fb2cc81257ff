// The facade: everything that HTTP routes, the command line and embedders do with a gateway. It asks the parts, which are
// put together in gateway/parts.ts; what is registered is kept by registry.ts, calls are carried by src/actors.

import { firstValueFrom, type Observable, race, throwError, timer } from 'rxjs';
import type { ExchangeOptions } from './actors/calls/dispatcher.ts';
import { Requests } from './actors/calls/requests.ts';
import { EventStream } from './actors/event-stream.ts';
import type { TemplateHealth } from './actors/template-health.ts';
import type { SyncOutcome } from './domain/deployment.ts';
import type { GatewayError } from './domain/errors.ts';
import type { EventName, GatewayEvent } from './domain/events.ts';
import type { Answer, ExchangeRequest } from './domain/exchange.ts';
import type { InstanceDefinition, InstanceInput } from './domain/instance.ts';
import type { JsonObject } from './domain/json.ts';
import { LIMITS } from './domain/limits.ts';
import type { ListField } from './domain/mcp.ts';

import type { BalancerPolicy } from './domain/policy.ts';
import type { LoadBalancerChange, TemplateSettings } from './domain/template.ts';
import { checkCloseOptions, checkedOptions, checkRegisterOptions } from './gateway/checked-options.ts';
import {
  checkEventName,
  refusalOfAnswer,
  refusalOfCall,
  refusalOfList,
  refusalOfRequest,
} from './gateway/checked-requests.ts';
import { composeGateway, type GatewayDeps } from './gateway/compose.ts';
import type { SyncOptions } from './gateway/sync.ts';
import type {
  CallResult,
  CloseOptions,
  GatewayOptions,
  GatewayPhase,
  GatewayStats,
  InProcessInput,
  InstanceChange,
  ListResult,
  RequestOptions,
  Server,
  TemplateView,
} from './gateway-types.ts';
import { MemoryStore } from './persistence/memory-store.ts';
import type { Store } from './persistence/store.ts';
import type { McpEndpoint } from './protocol/endpoint-types.ts';
import type { DatabaseState } from './registry/database-status.ts';
import type { RegisterOptions, Registration } from './registry.ts';
import { type FileContents, type ImportReport, importContents } from './registry-import.ts';

/** Loads what was registered and starts it, without waiting for it to be healthy. VALIDATION_ERROR: see checkedOptions. */
export async function createGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const checked = checkedOptions(options);
  const gateway = new Gateway(checked.store ?? new MemoryStore(), checked);
  await gateway.load();
  return gateway;
}

export class Gateway {
  readonly #events = new EventStream();
  /** Hot, no replay: every fact, from all templates. Completes when the gateway is closed. */
  readonly events$: Observable<GatewayEvent> = this.#events.events$;
  /** Defaults for templates without settings of their own. */
  readonly policy: BalancerPolicy;
  /** For MCP clients of either era, at every template and at all of them together. */
  readonly mcp: McpEndpoint;
  readonly #deps: GatewayDeps;
  readonly #requests = new Requests((...asked) => this.#deps.dispatcher.exchange(...asked));
  readonly #graceMs: number;
  #phase: GatewayPhase = 'starting';
  #closed: Promise<void> | undefined;

  constructor(store: Store, options: GatewayOptions) {
    this.#deps = composeGateway(store, options, this.#events, () => this.accepting);
    this.policy = this.#deps.policy;
    this.mcp = this.#deps.mcp.endpoint;
    this.#graceMs = options.graceMs ?? LIMITS.graceMs;
  }

  /** Starts what the store holds; takes calls when `more` has added to it. Called once, by whoever made it. */
  async load(more?: () => Promise<void>): Promise<void> {
    await this.#deps.registry.load();
    await more?.();
    if (this.#phase !== 'starting') return; // it was closed meanwhile
    this.#phase = 'running';
    this.#events.emit({ type: 'gateway.started', atMs: Date.now() });
  }

  /** What it does now: it loads what was registered, serves, or comes to its end. */
  get phase(): GatewayPhase {
    return this.#phase;
  }
  /** False while it starts and once it closes. */
  get accepting(): boolean {
    return this.#phase === 'running';
  }

  /** The facts of one kind. Hot, no replay. VALIDATION_ERROR for a name that none has. */
  on<N extends EventName>(name: N): Observable<Extract<GatewayEvent, { type: N }>> {
    checkEventName(name);
    return this.#events.on(name);
  }

  // --- registry ---------------------------------------------------------------------------------------------------

  /**
   * Registers an instance and starts it; one with the same id in the template is replaced in place. Resolves when it is
   * stored; with `waitMs` when it is healthy or the time is over, and `healthy` says which. Errors: CONFIG_INCOMPLETE,
   * VALIDATION_ERROR, ENDPOINT_NOT_ALLOWED.
   */
  async register(
    template: string,
    input: InstanceInput | InProcessInput,
    options: RegisterOptions = {},
  ): Promise<Registration> {
    checkRegisterOptions(options);
    if (!isFunction(input)) return this.#deps.registry.register(template, input, { ...options });
    const { handler, ...instance } = input;
    return this.#deps.registry.register(template, instance, { ...options, handler });
  }

  /** Takes an instance out at once; its running calls have 30 s. TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND. */
  deregister(template: string, id: string): Promise<void> {
    return this.#deps.registry.deregister(template, id);
  }

  /** Brings the instances of source `file` in step with a registry file; others are not touched. */
  importFile(contents: FileContents): Promise<ImportReport> {
    return importContents(this.#deps.registry, contents);
  }

  /**
   * Brings the instances of source `sync` in step with the containers and pods that run, and those of source `file` with the
   * registry file; others are not touched. What does not answer or cannot be read is a warning.
   */
  sync(options?: SyncOptions): Promise<SyncOutcome> {
    return this.#deps.sync.run(options);
  }

  /** Syncs containers and pods now and again with every change, until the gateway closes. Called once. Resolves after the first. */
  followDeployments(): Promise<SyncOutcome> {
    return this.#deps.sync.follow();
  }

  /** Changes weight or metadata while the instance goes on. */
  changeInstance(template: string, id: string, change: InstanceChange): Promise<InstanceDefinition> {
    return this.#deps.registry.changeInstance(template, id, change);
  }

  /** Lays settings over those of a template; null takes one away. They hold from the next call on. TEMPLATE_NOT_FOUND. */
  changeTemplate(template: string, change: LoadBalancerChange): Promise<TemplateSettings> {
    return this.#deps.registry.changeTemplate(template, change);
  }

  /** With its settings. TEMPLATE_NOT_FOUND; VALIDATION_ERROR while something is registered under its name. */
  deleteTemplate(template: string): Promise<void> {
    return this.#deps.registry.deleteTemplate(template);
  }

  /** No new calls for the instance until `resume`; its session stays. TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND, and, as for
   *  the two below, NO_HEALTHY_INSTANCE when it is another node's. */
  drain(template: string, id: string): void {
    this.#deps.fleet.get(template, id).drain();
  }
  resume(template: string, id: string): void {
    this.#deps.fleet.get(template, id).resume();
  }
  /** Lets calls in flight finish, at most 30 s, and opens a new session or starts a new process. */
  restart(template: string, id: string): void {
    this.#deps.fleet.get(template, id).restart();
  }

  /** Names of all templates, sorted: those that were registered or set, and not deleted. */
  templates(): string[] {
    return this.#deps.fleet.templates;
  }

  /** True when the template is known. */
  hasTemplate(template: string): boolean {
    return this.#deps.fleet.groups.has(template);
  }

  /** TEMPLATE_NOT_FOUND. Cheaper than looking at it. */
  requireTemplate(template: string): void {
    this.#deps.fleet.groups.require(template);
  }

  /** TEMPLATE_NOT_FOUND. */
  template(template: string): TemplateView {
    const { policy } = this.#deps.fleet.groups.require(template);
    const instances = this.#deps.fleet.members(template).map(({ definition }) => definition);
    return { settings: this.#deps.registry.settings(template), policy, instances };
  }

  /** TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND. */
  instance(template: string, id: string): Server {
    return this.#deps.status.server(this.#deps.fleet.member(template, id));
  }

  /** SERVER_NOT_FOUND. */
  server(serverId: string): Server {
    return this.#deps.status.server(this.#deps.fleet.byServerId(serverId));
  }

  servers(): Server[] {
    return this.#deps.status.servers();
  }

  // --- traffic ----------------------------------------------------------------------------------------------------

  /** One call to some instance of the template; see Dispatcher.exchange for events, errors and failover. */
  exchange(template: string, request: ExchangeRequest, options?: ExchangeOptions): Observable<Answer> {
    const refusal = refusalOfRequest(request, options);
    if (refusal !== undefined) return throwError(() => refusal);
    return this.#deps.dispatcher.exchange(template, request, options);
  }

  /** One request of any method, and its result. Rejects with the errors of `exchange` and of `errorOf`. */
  ask(template: string, request: ExchangeRequest, options?: RequestOptions): Promise<CallResult> {
    const refusal = refusalOfRequest(request, options);
    if (refusal !== undefined) return Promise.reject(refusal);
    return this.#requests.ask(template, request, options);
  }

  /** `ask` for a tool; `isError: true` is a result, too. */
  call(template: string, tool: string, args: JsonObject = {}, options?: RequestOptions): Promise<CallResult> {
    const refusal = refusalOfCall(tool, args, options);
    if (refusal !== undefined) return Promise.reject(refusal);
    const request = { method: 'tools/call', params: { name: tool, arguments: args } };
    return this.#requests.ask(template, request, options);
  }

  /** All pages of one list, from one instance. Empty when its server does not offer the list. */
  list(template: string, field: ListField, options?: RequestOptions): Promise<ListResult> {
    const refusal = refusalOfList(field, options);
    if (refusal !== undefined) return Promise.reject(refusal);
    return this.#requests.list(template, field, options);
  }

  /**
   * What an error answer in an exchange means for a caller who does not speak JSON-RPC: INVALID_TOOL_ARGUMENTS,
   * RESOURCE_NOT_FOUND, PROMPT_NOT_FOUND, VALIDATION_ERROR (a prompt's arguments) or TOOL_EXECUTION_FAILED.
   */
  errorOf(...answered: Parameters<Requests['errorOf']>): Promise<GatewayError> {
    const refusal = refusalOfAnswer(answered[1], answered[2]);
    if (refusal !== undefined) return Promise.reject(refusal);
    return this.#requests.errorOf(...answered);
  }

  // --- looking ----------------------------------------------------------------------------------------------------

  /** TEMPLATE_NOT_FOUND. */
  health(template: string): TemplateHealth {
    return this.#deps.status.health(template);
  }

  /** The health of a template now, and again whenever one of its instances changes. TEMPLATE_NOT_FOUND. */
  health$(template: string): Observable<TemplateHealth> {
    return this.#deps.status.health$(template);
  }

  stats(): GatewayStats {
    return this.#deps.status.stats();
  }

  /** Ids of the callers who have something open as MCP clients: sessions, conversations, calls that wait for them. */
  openCallers(): ReadonlySet<string> {
    return this.#deps.mcp.owners;
  }

  /** Whether the database answers. Resolves within 2 s and never rejects; what it says may be a second old. */
  databaseStatus(): Promise<DatabaseState> {
    return this.#deps.database.read();
  }

  /**
   * Refuses new calls, lets those in flight finish within the grace time, ends every session and process. The store is
   * left to whoever opened it. Idempotent; resolves when nothing is left.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    checkCloseOptions(options);
    this.#closed ??= this.#shutDown(options.graceMs ?? this.#graceMs);
    return this.#closed;
  }

  async #shutDown(graceMs: number): Promise<void> {
    this.#phase = 'closing';
    const { fleet, registry, mcp, status, sync } = this.#deps;
    const synced = sync.close();
    const { inFlight: calls, unanswered } = fleet;
    const outstanding = { calls, unanswered, sessions: mcp.callingSessions, graceMs };
    this.#events.emit({ type: 'gateway.closing', atMs: Date.now(), ...outstanding });
    // Changes under way may finish; but a database that does not answer must not keep the children alive.
    await firstValueFrom(race(registry.close(), timer(Math.min(graceMs, LIMITS.courtesyMs))));
    await Promise.all([mcp.close(graceMs), fleet.close(graceMs), synced]);
    status.close();
    this.#events.close();
  }
}

function isFunction(input: InstanceInput | InProcessInput): input is InProcessInput {
  return typeof input === 'object' && input !== null && 'handler' in input;
}
