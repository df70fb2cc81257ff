// The facade: everything that HTTP routes, the command line and embedders do with a gateway. It puts the parts together
// and translates; what is registered is kept by registry.ts, calls are carried by src/actors.

import { filter, firstValueFrom, map, type Observable, race, startWith, timer } from 'rxjs';
import { Dispatcher, type ExchangeOptions } from './actors/dispatcher.ts';
import { EventStream, guarded } from './actors/event-stream.ts';
import { Fleet } from './actors/fleet.ts';
import { Metrics } from './actors/metrics.ts';
import { Requests } from './actors/requests.ts';
import { RetryBudget } from './actors/retry-budget.ts';
import type { Member } from './actors/roster.ts';
import { changesHealthOf, healthOf, type TemplateHealth } from './actors/template-health.ts';
import type { GatewayError } from './domain/errors.ts';
import type { EventName, GatewayEvent } from './domain/events.ts';
import type { Answer, ExchangeRequest } from './domain/exchange.ts';
import type { InstanceDefinition, InstanceInput } from './domain/instance.ts';
import type { JsonObject } from './domain/json.ts';
import { LIMITS } from './domain/limits.ts';
import type { ListField } from './domain/mcp.ts';
import { type BalancerPolicy, DEFAULT_POLICY } from './domain/policy.ts';
import type { LoadBalancerSettings, TemplateSettings } from './domain/template.ts';
import { alarm } from './gateway/alarm.ts';
import { Mcp } from './gateway/mcp.ts';
import { GATEWAY_INFO, openerOf } from './gateway/opener.ts';
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

/** Makes a gateway: loads what was registered and starts it, without waiting for it to be healthy. */
export async function createGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const gateway = new Gateway(options.store ?? new MemoryStore(), options);
  await gateway.load();
  return gateway;
}

export class Gateway {
  /** Hot, no replay: every fact, from all templates. Completes when the gateway is closed. */
  readonly events$: Observable<GatewayEvent>;
  /** Defaults for templates without settings of their own. */
  readonly policy: BalancerPolicy;
  /** For MCP clients of either era, at every template and at all of them together. */
  readonly mcp: McpEndpoint;
  readonly #events = new EventStream();
  readonly #database: DatabaseStatus;
  readonly #fleet: Fleet;
  readonly #registry: Registry;
  readonly #dispatcher: Dispatcher;
  readonly #requests: Requests;
  readonly #metrics: Metrics;
  readonly #mcp: Mcp;
  readonly #graceMs: number;
  #phase: GatewayPhase = 'starting';
  #closed: Promise<void> | undefined;

  constructor(store: Store, options: GatewayOptions) {
    const { deniedNetworks = DENIED_NETWORKS_DEFAULT, random = Math.random, nodeId, news$ } = options;
    const now = () => performance.now();
    const emit = (event: GatewayEvent) => this.#events.emit(event);
    const { events$ } = this.#events;
    this.events$ = events$;
    this.policy = { ...DEFAULT_POLICY, ...options.policy };
    this.#database = new DatabaseStatus(store, now);
    this.#graceMs = options.graceMs ?? LIMITS.graceMs;
    this.#metrics = new Metrics(events$);
    const handlers = new Map<string, InProcessHandler>();
    const fleet = new Fleet({ now, random, emit, alarm, open: openerOf(deniedNetworks, handlers) });
    this.#fleet = fleet;
    const { policy } = this;
    const isDenied = deniedBy(deniedNetworks);
    this.#registry = new Registry({ store, fleet, policy, handlers, emit, isDenied, nodeId, news$ });
    for (const template of options.templates ?? []) fleet.govern(template, policy);
    const isAccepting = () => this.accepting;
    const parts = { fleet, budget: new RetryBudget(now), now, alarm, emit, isAccepting };
    const dispatcher = new Dispatcher(parts);
    this.#dispatcher = dispatcher;
    this.#requests = new Requests((...request) => this.exchange(...request));
    this.#mcp = new Mcp({ ...parts, ...options, dispatcher, events$, serverInfo: GATEWAY_INFO });
    this.mcp = this.#mcp.endpoint;
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
   * stored, or healthy if `waitMs` is given. Errors: CONFIG_INCOMPLETE, VALIDATION_ERROR, ENDPOINT_NOT_ALLOWED.
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

  /** Lays settings over those of a template; they hold from the next call on. TEMPLATE_NOT_FOUND. */
  changeTemplate(template: string, settings: LoadBalancerSettings): Promise<TemplateSettings> {
    return this.#registry.changeTemplate(template, settings);
  }

  /**
   * No new calls for the instance until `resume`; its session stays. TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND, and, as for
   * the two below, NO_HEALTHY_INSTANCE when it is another node's.
   */
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

  /** Names of all templates that were ever registered or set, sorted. */
  templates(): string[] {
    return this.#fleet.templates;
  }

  /** TEMPLATE_NOT_FOUND. Cheaper than looking at it. */
  requireTemplate(template: string): void {
    this.#fleet.group(template);
  }

  /** TEMPLATE_NOT_FOUND. */
  template(template: string): TemplateView {
    const { policy } = this.#fleet.group(template);
    const instances = this.#fleet.members(template).map(({ definition }) => definition);
    return { settings: this.#registry.settings(template), policy, instances };
  }

  /** TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND. */
  instance(template: string, id: string): Server {
    return this.#view(this.#fleet.member(template, id));
  }

  /** SERVER_NOT_FOUND. */
  server(serverId: string): Server {
    return this.#view(this.#fleet.byServerId(serverId));
  }

  servers(): Server[] {
    return this.#fleet.templates.flatMap((template) => this.#fleet.views(template));
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
    const { policy } = this.#fleet.group(template);
    const snapshots = this.#fleet.views(template).map(({ snapshot }) => snapshot);
    return healthOf(template, policy.strategy, snapshots);
  }

  /** The health of a template now, and again whenever one of its instances changes. TEMPLATE_NOT_FOUND. */
  health$(template: string): Observable<TemplateHealth> {
    const changes$ = this.events$.pipe(filter(changesHealthOf(template)), startWith(undefined));
    return guarded(changes$.pipe(map(() => this.health(template))));
  }

  stats(): GatewayStats {
    return { ...this.#metrics.summary(), activeConnections: this.#fleet.inFlight };
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
    this.#events.emit({ type: 'gateway.closing', atMs: Date.now() });
    // Changes under way may finish; but a database that does not answer must not keep the children alive.
    const patienceMs = Math.min(graceMs, LIMITS.courtesyMs);
    await firstValueFrom(race(this.#registry.close(), timer(patienceMs)));
    await Promise.all([this.#mcp.close(graceMs), this.#fleet.close(graceMs)]);
    this.#metrics.close();
    this.#events.close();
  }

  #view(member: Member): Server {
    return { definition: member.definition, snapshot: this.#fleet.snapshot(member) };
  }
}
