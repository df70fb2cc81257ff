// The facade of a gateway, for HTTP routes, the command line and embedding programs. gateway/compose.ts composes its parts;
// src/registry has the registrations, src/actors the calls.

import { filter, map, type Observable, startWith, throwError } from 'rxjs';
import type { InstanceStatus } from '../actors/fleet/template-group.ts';
import type { TemplatePolicy } from '../balancing/policy.ts';
import type { LoadBalancerChange } from '../balancing/policy-schemas.ts';
import { summedClients } from '../counts/traffic-counts.ts';
import type { ExchangeOptions, ExchangeRequest, SourcedEvent } from '../domain/calls/exchange.ts';
import type { GatewayError } from '../domain/errors/errors.ts';
import { serverNotFound } from '../domain/errors/registry-errors.ts';
import type { EventName, GatewayEvent } from '../domain/events/events.ts';
import type { ImportReport, SyncOptions, SyncOutcome } from '../domain/instances/found-instances.ts';
import { shortSecrets } from '../domain/instances/hidden-secrets.ts';
import { countHealth, type InstanceDefinition, type InstanceInput } from '../domain/instances/instance.ts';
import { runsProgram } from '../domain/instances/transport-kinds.ts';
import type { JsonObject } from '../domain/json/json.ts';
import { LIMITS } from '../domain/limits.ts';
import type { ListField } from '../domain/mcp/mcp.ts';
import { systemClock } from '../domain/time/clock.ts';
import { MemoryStore } from '../persistence/memory/memory-store.ts';
import type { Store } from '../persistence/store.ts';
import type { McpEndpoint } from '../protocol/endpoint-types.ts';
import type { DatabaseState } from '../registry/database-status.ts';
import { importContents } from '../registry/registry-sync.ts';
import type { FileContents, RegisterOptions, Registration } from '../registry/registry-types.ts';
import { uncheckedRequirements } from '../templates/requirements.ts';
import {
  checkEventName,
  checkedOptions,
  checkListField,
  checkWait,
  isFunctionInput,
  refusalOfRequest,
} from './checked-options.ts';
import { closeParts, composeGateway, type GatewayParts } from './compose.ts';
import { EventBus, isolateListeners } from './event-bus.ts';
import type {
  CallResult,
  CloseOptions,
  ConnectionOutcome,
  ConnectionTestOptions,
  GatewayOptions,
  GatewayPhase,
  GatewayStats,
  InProcessInput,
  InstanceChange,
  ListResult,
  RequestOptions,
  ServedViews,
  Server,
  ShownSession,
  ShownTemplate,
  TemplateHealth,
  TemplateSnapshot,
} from './gateway-types.ts';
import { type GatewayInternals, internalsOf } from './internals.ts';
import { type ErrorAnswer, PromisedAnswers } from './promised-answers.ts';
import { Readiness } from './readiness.ts';

/**
 * Makes a gateway: loads the registry of the store and starts its instances, without waiting for their health. Throws
 * VALIDATION_ERROR, which names each option that has a wrong value.
 * @example
 * await using gateway = await createGateway();
 * await gateway.register('files', { command: 'npx -y @modelcontextprotocol/server-filesystem ./shared' }, { waitMs: 10_000 });
 * const { result } = await gateway.call('files', 'list_allowed_directories');
 */
export async function createGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const checked = checkedOptions(options);
  const gateway = new Gateway(checked.store ?? new MemoryStore(), checked);
  await gateway.internals.load().catch(async (thrown: unknown) => {
    await gateway.close();
    throw thrown;
  });
  return gateway;
}

/** A gateway, made by `createGateway`. Two gateways in one process are independent. */
export class Gateway {
  readonly #events = new EventBus();
  /** Every event of the gateway, from all templates. Hot, no replay. Completes when the gateway is closed.
   * @example
   * const subscription = gateway.events$.subscribe(({ type, atMs }) => console.log(new Date(atMs), type));
   * subscription.unsubscribe();
   */
  readonly events$: Observable<GatewayEvent> = this.#events.events$;
  /** Defaults for settings that a template does not set. */
  readonly policy: TemplatePolicy;
  /** The endpoint for MCP clients of either era, at each template and view, and at all templates together. */
  readonly mcp: McpEndpoint;
  /** Servers that are made of choices from templates. Requests take the name of a view in the place of a template. */
  readonly views: ServedViews;
  /**
   * The parts that the server of this repository uses as well. They are not part of the public API.
   * @internal
   */
  readonly internals: GatewayInternals;
  readonly #parts: GatewayParts;
  readonly #readiness: Readiness;
  readonly #promisedAnswers: PromisedAnswers;
  readonly #graceMs: number;
  #closed: Promise<void> | undefined;
  constructor(store: Store, options: GatewayOptions) {
    const { clock = systemClock } = options;
    this.#readiness = new Readiness(
      (type) => this.#events.emit({ type, atMs: this.#parts.clock.wall() }),
      clock,
    );
    this.#parts = composeGateway(store, { ...options, clock }, this.#events, this.#readiness);
    const { policy, mcp, scheduler, memory } = this.#parts;
    this.policy = policy;
    this.mcp = mcp.endpoint;
    this.views = mcp.views;
    const reading = { scheduler, listReader: memory.listReader };
    this.#promisedAnswers = new PromisedAnswers((...exchange) => this.exchange(...exchange), reading);
    this.internals = internalsOf(this.#parts, this.#events, this.#readiness, this.#promisedAnswers);
    this.#graceMs = options.graceMs ?? LIMITS.graceMs;
  }

  /** `starting` while the registry is loaded, then `running`: it accepts calls; `closing` from the first `close` on. */
  get phase(): GatewayPhase {
    return this.#readiness.phase;
  }

  /** True while calls are accepted and each instance that was loaded at the start has opened or failed, or had five seconds. */
  get isReady(): boolean {
    return this.#readiness.isReady;
  }

  /**
   * The events of one type. Hot, no replay; completes when the gateway is closed. Throws VALIDATION_ERROR for an unknown
   * type.
   */
  on<N extends EventName>(name: N): Observable<Extract<GatewayEvent, { type: N }>> {
    checkEventName(name);
    return this.#events.on(name);
  }

  // --- registry --------------------------------------------------------------------------------------------

  /**
   * Registers an instance and starts it; an instance of the same template with the same id is replaced in place. Resolves when
   * the instance is stored; with `waitMs` when it is healthy. Nothing is registered after CONFIG_INCOMPLETE, VALIDATION_ERROR,
   * ENDPOINT_NOT_ALLOWED, COMMAND_NOT_ALLOWED, REGISTRY_FULL, PRECONDITION_FAILED (`ifMatch`) or, as after all changes,
   * DATABASE_UNAVAILABLE or SHUTTING_DOWN. Throws BACKEND_UNAVAILABLE after `waitMs`, at once without its program: it stays
   * registered, and is tried again. Throws SERVER_NOT_FOUND when it was deregistered meanwhile.
   * @example
   * await gateway.register('search', { endpoint: 'http://127.0.0.1:9000/mcp' }, { waitMs: 5_000 });
   * await gateway.register('clock', { handler: () => ({ tools: [] }) }); // a function of this program
   */
  async register(
    template: string,
    input: InstanceInput | InProcessInput,
    options: RegisterOptions = {},
  ): Promise<Registration> {
    checkWait('waitMs', options.waitMs);
    if (!isFunctionInput(input))
      return this.#parts.registry.instances.register(template, input, { ...options });
    const { handler, ...instance } = input;
    return this.#parts.registry.instances.register(template, instance, { ...options, handler });
  }

  /**
   * Opens an instance as its registration would, counts its tools and closes it, all within 10 s. Nothing is registered. A
   * failed test resolves with its error. Throws like `register` for input that may not be registered, and QUEUE_FULL when
   * too many tests run.
   * @example
   * const outcome = await gateway.testConnection('search', { endpoint: 'http://127.0.0.1:9000/mcp' });
   * console.log(outcome.isOk ? `${outcome.tools} tools` : outcome.error.message);
   */
  testConnection(
    template: string,
    input: InstanceInput,
    options: ConnectionTestOptions = {},
  ): Promise<ConnectionOutcome> {
    return this.#parts.tests.run(template, input, options);
  }

  /** Removes an instance: it gets no more calls, and those in flight have 30 s. Throws TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND. */
  deregister(template: string, id: string): Promise<void> {
    return this.#parts.registry.instances.deregister(template, id);
  }

  /** Brings the instances of source `file` in step with a registry file; other instances are not changed. */
  importFile(contents: FileContents): Promise<ImportReport> {
    return importContents(this.#parts.registry, contents);
  }

  /**
   * Brings the instances of source `sync` in step with the containers and pods that run, and those of source `file` with the
   * registry file; other instances are not changed. A source that does not answer or cannot be read is a warning.
   */
  sync(options?: SyncOptions): Promise<SyncOutcome> {
    return this.#parts.sync.run(options);
  }

  /** Syncs containers and pods now and after each change, until `close`. Resolves after the first sync. Called once. */
  followSources(): Promise<SyncOutcome> {
    return this.#parts.sync.follow();
  }

  /** Changes weight or metadata of an instance, which continues to serve. */
  changeInstance(template: string, id: string, change: InstanceChange): Promise<InstanceDefinition> {
    return this.#parts.registry.instances.change(template, id, change);
  }

  /**
   * Changes settings of a template from the next call on, and its `auth`; null restores the default. Throws
   * TEMPLATE_NOT_FOUND.
   */
  changeTemplate(template: string, loadBalancer: LoadBalancerChange, auth?: ShownTemplate['auth'] | null) {
    return this.#parts.registry.templates.change(template, loadBalancer, auth);
  }

  /**
   * Deletes a template, which is its settings. Throws TEMPLATE_NOT_FOUND; VALIDATION_ERROR while it has instances. `admit`
   * throws when the caller may not delete it.
   */
  deleteTemplate(template: string, admit?: (policy: TemplatePolicy) => void): Promise<void> {
    return this.#parts.registry.templates.delete(template, admit);
  }

  /**
   * Gives an instance no new calls until `resume`. Throws TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND; NO_HEALTHY_INSTANCE: another
   * node has it.
   */
  drain(template: string, id: string): void {
    this.#parts.fleet.templates.group(template).ownRef(id).drain();
  }

  /** Gives a drained instance calls again. Throws as `drain` does. */
  resume(template: string, id: string): void {
    this.#parts.fleet.templates.group(template).ownRef(id).resume();
  }

  /** Lets calls in flight finish, at most 30 s, then opens a new session or starts a new process. */
  restart(template: string, id: string): void {
    this.#parts.fleet.templates.group(template).ownRef(id).restart();
  }

  /** Names of all templates, sorted. A template exists from its first instance or setting until `deleteTemplate`. */
  templates(): string[] {
    return [...this.#parts.fleet.templates.names];
  }

  /** True while the template exists. */
  readonly hasTemplate = (template: string): boolean => this.#parts.fleet.templates.has(template);

  /**
   * Throws TEMPLATE_NOT_FOUND unless the template, or a view of this name, exists. Cheaper than `template`.
   * @internal
   */
  requireExisting(name: string): void {
    if (!this.views.has(name)) this.#parts.fleet.templates.existingGroup(name);
  }

  /** Settings, policy and instances of a template. Throws TEMPLATE_NOT_FOUND. */
  template(template: string): ShownTemplate {
    const { fleet, registry, mcp } = this.#parts;
    const { policy } = fleet.templates.existingGroup(template);
    const [settings, auth] = [registry.active.settings(template), registry.active.authOf(template)];
    const instances = fleet.templates.group(template).instances.map(({ definition }) => definition);
    return { settings, policy, auth, instances, withheld: mcp.withheld.of(template) };
  }

  /** One instance, by its id. Throws TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND. */
  instance(template: string, id: string): Server {
    const group = this.#parts.fleet.templates.group(template);
    return this.#server(group.statusOf(group.instance(id)));
  }

  /** One instance, by its server id. Throws SERVER_NOT_FOUND. */
  server(serverId: string): Server {
    const { fleet } = this.#parts;
    const instance = fleet.findByServerId(serverId);
    if (instance === undefined) throw serverNotFound(serverId);
    return this.#server(fleet.templates.group(instance.template).statusOf(instance));
  }

  /** All instances, template by template; or those of one template: TEMPLATE_NOT_FOUND. */
  servers(template?: string): Server[] {
    if (template !== undefined) this.#parts.fleet.templates.existingGroup(template);
    return [...this.eachServer(template === undefined ? this.templates() : [template])];
  }

  /**
   * The instances of these templates, without those of templates that are deleted meanwhile. Each is read when it is needed,
   * also in a later turn.
   * @internal
   */
  *eachServer(templates: readonly string[]): Generator<Server> {
    for (const template of templates)
      if (this.hasTemplate(template))
        for (const status of this.#parts.fleet.templates.existingGroup(template).eachStatus())
          yield this.#server(status);
  }

  #server(status: InstanceStatus): Server {
    const { definitions, traffic, registry } = this.#parts;
    const { template, serverId, nodeId, env, secretEnv = [] } = status.definition;
    const { requires = [] } = definitions.get(template) ?? {};
    const warnings = runsProgram(status.definition)
      ? [...uncheckedRequirements(requires), ...shortSecrets({ env, secretEnv })]
      : [];
    const runner = registry.leasedPrograms?.nodeOf(serverId) ?? nodeId;
    return { ...status, warnings, runner, clients: traffic.clientsAt(serverId) };
  }

  // --- traffic ---------------------------------------------------------------------------------------------

  /**
   * One request of any method to an instance of the template, with its notifications. Cold: subscribing sends the request,
   * unsubscribing cancels it on the backend. Emits notifications, then one result or error answer, then completes. Errors
   * with GatewayError: VALIDATION_ERROR, TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND, NO_HEALTHY_INSTANCE, QUEUE_FULL, TOOL_NOT_FOUND,
   * BACKEND_UNAVAILABLE, BACKEND_TIMEOUT or SHUTTING_DOWN. Retries and failover: ADR 40.
   */
  exchange(template: string, request: ExchangeRequest, options?: ExchangeOptions): Observable<SourcedEvent> {
    const refusal = refusalOfRequest(template, request, options);
    if (refusal !== undefined) return throwError(() => refusal);
    if (this.views.has(template)) return this.views.exchange(template, request, options);
    return this.#parts.dispatcher.exchange(template, request, options);
  }

  /** One request of any method; resolves with its result. Throws the errors of `exchange` and of `errorOf`. */
  ask(template: string, request: ExchangeRequest, options?: RequestOptions): Promise<CallResult> {
    return this.#promisedAnswers.ask(template, request, options);
  }

  /** Calls a tool; resolves with its result, also when that has `isError: true`. Throws as `ask` does. */
  call(template: string, tool: string, args: JsonObject = {}, options?: RequestOptions): Promise<CallResult> {
    return this.ask(template, { method: 'tools/call', params: { name: tool, arguments: args } }, options);
  }

  /** All pages of one list, from one instance. Empty when the server does not offer the list. Throws as `exchange` does. */
  async list(template: string, field: ListField, options?: RequestOptions): Promise<ListResult> {
    checkListField(field);
    return this.#promisedAnswers.list(template, field, options);
  }

  /**
   * Translates an error answer of an exchange for callers without JSON-RPC: INVALID_TOOL_ARGUMENTS, RESOURCE_NOT_FOUND,
   * PROMPT_NOT_FOUND, VALIDATION_ERROR (arguments of a prompt) or TOOL_EXECUTION_FAILED.
   */
  errorOf(
    template: string,
    request: ExchangeRequest,
    answer: ErrorAnswer,
    signal?: AbortSignal,
  ): Promise<GatewayError> {
    return this.#promisedAnswers.errorOf(template, request, answer, signal);
  }

  // --- status ----------------------------------------------------------------------------------------------

  /** The health of a template now. Draining and stopped instances are listed, but not counted. Throws TEMPLATE_NOT_FOUND. */
  health(template: string): TemplateHealth {
    const group = this.#parts.fleet.templates.existingGroup(template);
    const instances = group.statuses().map(({ snapshot }) => snapshot);
    return { template, strategy: group.policy.strategy, instances, ...countHealth(instances) };
  }

  /** The counts of `health`, of one template or of all. Throws TEMPLATE_NOT_FOUND. */
  countInstances(template?: string): Pick<TemplateHealth, 'total' | 'healthy'> {
    return countHealth(this.#parts.fleet.templates.instances(template));
  }

  /**
   * The health of a template now, and again after each change of one of its instances. Cold. Throws TEMPLATE_NOT_FOUND.
   * @example
   * gateway.health$('files').subscribe(({ healthy, total }) => console.log(`${healthy} of ${total} healthy`));
   */
  health$(template: string): Observable<TemplateHealth> {
    const isChange = (event: GatewayEvent): boolean =>
      event.type.startsWith('instance.') && 'template' in event && event.template === template;
    const changes$ = this.events$.pipe(filter(isChange), startWith(undefined));
    return isolateListeners(changes$.pipe(map(() => this.health(template))));
  }

  /** The counts since the start, and the numbers of open things now. */
  stats(): GatewayStats {
    const { fleet, sessions, traffic } = this.#parts;
    const clients = { maxSessions: sessions.max, templates: traffic.clients() };
    return { ...traffic.summary(), activeConnections: fleet.underWay, clients };
  }

  /** The load of every template now, and the state of its instances. */
  snapshot(): TemplateSnapshot[] {
    const { fleet, traffic } = this.#parts;
    const clients = traffic.clients();
    return fleet.templates.names.map((template) => {
      const group = fleet.templates.group(template);
      return {
        template,
        queued: group.queue.length,
        inFlight: group.inFlight,
        elsewhere: group.callsElsewhere,
        clients: clients.get(template) ?? summedClients([]),
        get instances() {
          return group.statuses().map(({ snapshot }) => snapshot);
        },
      };
    });
  }

  /** Ids of the principals that have anything open as MCP clients: sessions, conversations, calls that wait for them. */
  openCallers(): ReadonlySet<string> {
    return this.#parts.mcp.owners;
  }

  /** The open sessions of MCP clients of the legacy era, with one template or with all. */
  sessions(): ShownSession[] {
    return this.#parts.sessions.list();
  }

  /** Ends a session, by its id in `sessions`, and answers its calls with SESSION_NOT_FOUND. Throws SESSION_NOT_FOUND. */
  endSession(id: string): void {
    this.#parts.sessions.endNamed(id, 'byApi');
  }

  /** Whether the database answers. Resolves within 2 s and never rejects; the answer may be a second old. */
  databaseStatus(): Promise<DatabaseState> {
    return this.#parts.readDatabase();
  }

  /**
   * Refuses new calls, lets those in flight finish within the grace time, ends every session and process. Resolves when
   * nothing is left. Idempotent. The store stays open: the program that opened it closes it. Throws VALIDATION_ERROR for a grace
   * time that is not a time: the gateway continues.
   */
  async close({ graceMs = this.#graceMs }: CloseOptions = {}): Promise<void> {
    checkWait('graceMs', graceMs);
    this.#closed ??= this.#shutDown(graceMs);
    return this.#closed;
  }

  /** Kills every program at once, for a process that ends without waiting for `close`. */
  readonly killPrograms = (): void => this.#parts.reaper.killAll();

  /** Closes the gateway with its grace time, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #shutDown(graceMs: number): Promise<void> {
    this.#readiness.close();
    return closeParts(this.#parts, this.#events, graceMs);
  }
}
