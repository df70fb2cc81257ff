// The facade: everything that HTTP routes, the command line and embedders do with a gateway. It puts the parts together
// and translates; what is registered is kept by registry.ts, calls are carried by src/actors.

import { firstValueFrom, type Observable, race, timer } from 'rxjs';
import { Dispatcher, type ExchangeOptions } from './actors/dispatcher.ts';
import { EventStream } from './actors/event-stream.ts';
import { Fleet } from './actors/fleet.ts';
import { Requests } from './actors/requests.ts';
import { RetryBudget } from './actors/retry-budget.ts';
import type { TemplateHealth } from './actors/template-health.ts';
import type { GatewayError } from './domain/errors.ts';
import type { EventName, GatewayEvent } from './domain/events.ts';
import type { Answer, ExchangeRequest } from './domain/exchange.ts';
import type { InstanceDefinition, InstanceInput } from './domain/instance.ts';
import type { JsonObject } from './domain/json.ts';
import { LIMITS, ownBounds } from './domain/limits.ts';
import type { ListField } from './domain/mcp.ts';
import { type BalancerPolicy, DEFAULT_POLICY } from './domain/policy.ts';
import type { LoadBalancerChange, TemplateSettings } from './domain/template.ts';
import { alarm } from './gateway/alarm.ts';
import { checkedOptions } from './gateway/checked-options.ts';
import { Mcp } from './gateway/mcp.ts';
import { GATEWAY_INFO, openerOf } from './gateway/opener.ts';
import { Status } from './gateway/status.ts';
import type {
  CallResult,
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
import { type DatabaseState, DatabaseStatus } from './registry/database-status.ts';
import { type RegisterOptions, type Registration, Registry } from './registry.ts';
import { type FileContents, type ImportReport, importContents } from './registry-import.ts';
import { DENIED_NETWORKS_DEFAULT, deniedBy } from './transports/network-guard.ts';
import type { InProcessHandler } from './transports/transport.ts';

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
  readonly #database: DatabaseStatus;
  readonly #fleet: Fleet;
  readonly #registry: Registry;
  readonly #dispatcher: Dispatcher;
  readonly #requests = new Requests((...request) => this.exchange(...request));
  readonly #mcp: Mcp;
  readonly #status: Status;
  readonly #graceMs: number;
  #phase: GatewayPhase = 'starting';
  #closed: Promise<void> | undefined;

  constructor(store: Store, options: GatewayOptions) {
    const { deniedNetworks = DENIED_NETWORKS_DEFAULT, random = Math.random, nodeId, news$ } = options;
    const now = () => performance.now();
    const emit = (event: GatewayEvent) => this.#events.emit(event);
    this.policy = { ...DEFAULT_POLICY, ...options.policy };
    this.#database = new DatabaseStatus(store, now);
    this.#graceMs = options.graceMs ?? LIMITS.graceMs;
    const handlers = new Map<string, InProcessHandler>();
    const own = ownBounds(options.sessions);
    const open = openerOf(deniedNetworks, handlers, own.processes);
    const fleet = new Fleet({ now, random, emit, alarm, open, own });
    this.#fleet = fleet;
    const { policy, events$ } = this;
    const isDenied = deniedBy(deniedNetworks);
    const defined = new Set(options.templates);
    this.#registry = new Registry({ store, fleet, policy, defined, handlers, emit, isDenied, nodeId, news$ });
    const isAccepting = () => this.accepting;
    const parts = { fleet, budget: new RetryBudget(now), now, alarm, emit, isAccepting };
    const dispatcher = new Dispatcher(parts);
    this.#dispatcher = dispatcher;
    this.#mcp = new Mcp({ ...parts, ...options, dispatcher, events$, serverInfo: GATEWAY_INFO });
    this.mcp = this.#mcp.endpoint;
    this.#status = new Status({ fleet, mcp: this.#mcp, events$ });
  }

  /** Starts what the store holds. Called once, by createGateway. */
  async load(): Promise<void> {
    await this.#registry.load();
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

  /** The facts of one kind. Hot, no replay. */
  on<N extends EventName>(name: N): Observable<Extract<GatewayEvent, { type: N }>> {
    return this.#events.on(name);
  }

  // --- registry ---------------------------------------------------------------------------------------------------

  /**
   * Registers an instance and starts it; one with the same id in the template is replaced in place. Resolves when it is
   * stored; with `waitMs` when it is healthy or the time is over, and `healthy` says which. Errors: CONFIG_INCOMPLETE,
   * VALIDATION_ERROR, ENDPOINT_NOT_ALLOWED.
   */
  register(
    template: string,
    input: InstanceInput | InProcessInput,
    options: RegisterOptions = {},
  ): Promise<Registration> {
    if (!('handler' in input)) return this.#registry.register(template, input, options);
    const { handler, ...instance } = input;
    return this.#registry.register(template, instance, { ...options, handler });
  }

  /** Takes an instance out at once; its running calls have 30 s. TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND. */
  deregister(template: string, id: string): Promise<void> {
    return this.#registry.deregister(template, id);
  }

  /** Brings the instances of source `file` in step with a registry file; others are not touched. */
  importFile(contents: FileContents): Promise<ImportReport> {
    return importContents(this.#registry, contents);
  }

  /** Changes weight or metadata while the instance goes on. */
  changeInstance(template: string, id: string, change: InstanceChange): Promise<InstanceDefinition> {
    return this.#registry.changeInstance(template, id, change);
  }

  /** Lays settings over those of a template; null takes one away. They hold from the next call on. TEMPLATE_NOT_FOUND. */
  changeTemplate(template: string, change: LoadBalancerChange): Promise<TemplateSettings> {
    return this.#registry.changeTemplate(template, change);
  }

  /** With its settings. TEMPLATE_NOT_FOUND; VALIDATION_ERROR while something is registered under its name. */
  deleteTemplate(template: string): Promise<void> {
    return this.#registry.deleteTemplate(template);
  }

  /** No new calls for the instance until `resume`; its session stays. TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND, and, as for
   *  the two below, NO_HEALTHY_INSTANCE when it is another node's. */
  drain(template: string, id: string): void {
    this.#fleet.get(template, id).drain();
  }
  resume(template: string, id: string): void {
    this.#fleet.get(template, id).resume();
  }
  /** Lets calls in flight finish, at most 30 s, and opens a new session or starts a new process. */
  restart(template: string, id: string): void {
    this.#fleet.get(template, id).restart();
  }

  /** Names of all templates, sorted: those that were registered or set, and not deleted. */
  templates(): string[] {
    return this.#fleet.templates;
  }

  /** TEMPLATE_NOT_FOUND. Cheaper than looking at it. */
  requireTemplate(template: string): void {
    this.#fleet.groups.require(template);
  }

  /** TEMPLATE_NOT_FOUND. */
  template(template: string): TemplateView {
    const { policy } = this.#fleet.groups.require(template);
    const instances = this.#fleet.members(template).map(({ definition }) => definition);
    return { settings: this.#registry.settings(template), policy, instances };
  }

  /** TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND. */
  instance(template: string, id: string): Server {
    return this.#status.server(this.#fleet.member(template, id));
  }

  /** SERVER_NOT_FOUND. */
  server(serverId: string): Server {
    return this.#status.server(this.#fleet.byServerId(serverId));
  }

  servers(): Server[] {
    return this.#status.servers();
  }

  // --- traffic ----------------------------------------------------------------------------------------------------

  /** One call to some instance of the template; see Dispatcher.exchange for events, errors and failover. */
  exchange(template: string, request: ExchangeRequest, options?: ExchangeOptions): Observable<Answer> {
    return this.#dispatcher.exchange(template, request, options);
  }

  /** One request of any method, and its result. Rejects with the errors of `exchange` and of `errorOf`. */
  ask(template: string, request: ExchangeRequest, options?: RequestOptions): Promise<CallResult> {
    return this.#requests.ask(template, request, options);
  }

  /** `ask` for a tool; `isError: true` is a result, too. */
  call(template: string, tool: string, args: JsonObject = {}, options?: RequestOptions): Promise<CallResult> {
    const request = { method: 'tools/call', params: { name: tool, arguments: args } };
    return this.#requests.ask(template, request, options);
  }

  /** All pages of one list, from one instance. Empty when its server does not offer the list. */
  list(template: string, field: ListField, options?: RequestOptions): Promise<ListResult> {
    return this.#requests.list(template, field, options);
  }

  /**
   * What an error answer in an exchange means for a caller who does not speak JSON-RPC: INVALID_TOOL_ARGUMENTS,
   * RESOURCE_NOT_FOUND, PROMPT_NOT_FOUND, VALIDATION_ERROR (a prompt's arguments) or TOOL_EXECUTION_FAILED.
   */
  errorOf(...answered: Parameters<Requests['errorOf']>): Promise<GatewayError> {
    return this.#requests.errorOf(...answered);
  }

  // --- looking ----------------------------------------------------------------------------------------------------

  /** TEMPLATE_NOT_FOUND. */
  health(template: string): TemplateHealth {
    return this.#status.health(template);
  }

  /** The health of a template now, and again whenever one of its instances changes. TEMPLATE_NOT_FOUND. */
  health$(template: string): Observable<TemplateHealth> {
    return this.#status.health$(template);
  }

  stats(): GatewayStats {
    return this.#status.stats();
  }

  /** Whether the database answers. Resolves within 2 s and never rejects; what it says may be a second old. */
  databaseStatus(): Promise<DatabaseState> {
    return this.#database.read();
  }

  /**
   * Refuses new calls, lets those in flight finish within the grace time, ends every session and process. The store is
   * left to whoever opened it. Idempotent; resolves when nothing is left.
   */
  close(options: { readonly graceMs?: number } = {}): Promise<void> {
    this.#closed ??= this.#shutDown(options.graceMs ?? this.#graceMs);
    return this.#closed;
  }

  async #shutDown(graceMs: number): Promise<void> {
    this.#phase = 'closing';
    const { inFlight: calls, unanswered } = this.#fleet;
    const outstanding = { calls, unanswered, sessions: this.#mcp.callingSessions, graceMs };
    this.#events.emit({ type: 'gateway.closing', atMs: Date.now(), ...outstanding });
    // Changes under way may finish; but a database that does not answer must not keep the children alive.
    const patienceMs = Math.min(graceMs, LIMITS.courtesyMs);
    await firstValueFrom(race(this.#registry.close(), timer(patienceMs)));
    await Promise.all([this.#mcp.close(graceMs), this.#fleet.close(graceMs)]);
    this.#status.close();
    this.#events.close();
  }
}
