// A harness for specs of calls whose server asks its client: the endpoint with its actors as a gateway composes them, over two
// scripted instances, and clients of both eras that call a tool and answer when the spec says so. Time is simulated by the spec.

import { Subject } from 'rxjs';
import type { InstanceRef } from '../../../src/actors/instances/instance-ref.ts';
import { ClientSessions } from '../../../src/actors/sessions/client-sessions.ts';
import type { TemplatePolicy } from '../../../src/balancing/policy.ts';
import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import { isJsonObject, type JsonObject } from '../../../src/domain/json/json.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { ListReader } from '../../../src/domain/lists/list-reader.ts';
import { META } from '../../../src/domain/mcp/mcp.ts';
import { newLife } from '../../../src/domain/nodes/life.ts';
import { spreadClock } from '../../../src/domain/time/clock.ts';
import { McpParts } from '../../../src/gateway/endpoint/mcp-parts.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import type { McpRequest } from '../../../src/protocol/endpoint-types.ts';
import { ViewRegistry } from '../../../src/registry/kinds/view-registry.ts';
import { ToolApprovals } from '../../../src/registry/pinned/tool-approvals.ts';
import { RegistryChanges } from '../../../src/registry/registry-changes.ts';
import { heldQuestions } from '../../helpers/backends/calls-with-questions.ts';
import { type BackendOptions, Harness, type Script } from '../../helpers/backends/harness.ts';
import { HTTP, MODERN, READ, WRITE } from '../../helpers/backends/profiles.ts';
import type { ScriptedExchange, ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { pass, settled, simulatedClock } from '../../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../../helpers/time/turns.ts';
import { RecordedReply } from '../../protocol/recorded-reply.ts';
import { begin, initialize, modernRequest } from './post.ts';

/** A modern server over HTTP: its clients share the instance's conversation. */
export const SHARED: BackendOptions = { handshake: MODERN, fields: HTTP };
/** A modern program: a client that can be asked has a dedicated process. */
export const OWN: BackendOptions = { handshake: MODERN, own: MODERN, fields: HTTP };
/** A server of the legacy era, with a session for each client. */
export const LEGACY: BackendOptions = { fields: HTTP };

const REFUSED = backendUnavailable('connection refused', { delivered: 'unknown', health: 'unreachable' });
const QUESTION = { message: 'sure?', requestedSchema: {} };

/** Instances `a` and `b` of template `t`, which ask the client before they answer. `slow` never ends, `refused` makes an instance unhealthy. */
export class RoundsHarness {
  readonly inner: Harness;
  readonly mcp: McpParts;
  readonly changedCallers$ = new Subject<string>();
  /** The template in the path of clients; undefined: /mcp. */
  template: string | undefined = 't';
  readonly #backend: BackendOptions;

  constructor(
    backend: BackendOptions,
    sessionFailover: TemplatePolicy['sessionFailover'] = 'never',
    maxCallMs?: number,
  ) {
    this.#backend = backend;
    this.inner = new Harness({ policy: { sessionFailover } });
    const { fleet, dispatcher, emit, budget } = this.inner;
    const scheduler = untimedScheduler();
    const store = new MemoryStore();
    const clock = spreadClock(scheduler, simulatedClock);
    const { declarations } = this.inner;
    const memory = {
      ...{ bufferedBytes: 256 * 1024 * 1024, declarations, heldQuestions: heldQuestions() },
      listReader: new ListReader({ scheduler }),
    };
    const sessions = new ClientSessions({
      ...{ clock, scheduler, fleet, dispatcher, budget, emit, ...memory },
      life: newLife(),
      maxSessions: LIMITS.sessions,
      idleMs: LIMITS.sessionIdleMs,
      isAccepting: () => this.inner.isAccepting,
      maxCallMs,
    });
    const changes = new RegistryChanges({ store, clock, scheduler, emit, apply: async () => {} });
    const approvals = new ToolApprovals({
      store: store.approvals,
      scheduler,
      emit,
      clock: simulatedClock,
      hintsOf: () => ({}),
      onChanged: () => {},
      changes,
    });
    this.mcp = new McpParts({
      ...{ clock, scheduler, fleet, dispatcher, emit, memory, sessions, store },
      options: { changedCallers$: this.changedCallers$, random: () => 0.5 },
      registry: {
        views: new ViewRegistry({ store, clock: simulatedClock, scheduler, emit, fleet, approvals }, changes),
        approvals,
      },
    });
  }

  add(id: string): Promise<InstanceRef> {
    const script: Script = (exchange) => answer(id, exchange);
    return this.inner.add(id, { ...this.#backend, script, tools: [WRITE, READ, { name: 'refused' }] });
  }

  /** Every conversation that was had with an instance, dedicated ones included. */
  conversations(id: string): ScriptedTransport[] {
    return (this.inner.transports.get(id) ?? []).flatMap((transport) => [
      transport,
      ...transport.conversations,
    ]);
  }

  /** Calls that the backends work on, or wait with for a reply. */
  get calls(): number {
    const open = ['a', 'b'].flatMap((id) => this.conversations(id)).flatMap((one) => one.open);
    return open.filter(({ request }) => request.method === 'tools/call').length;
  }

  /** What the gateway does when it stops. */
  async stop(graceMs: number): Promise<void> {
    this.inner.isAccepting = false;
    await Promise.all([this.mcp.close(graceMs), this.inner.fleet.close(graceMs)]);
  }

  /** One HTTP request; a refusal is in the reply, too. */
  send(method: McpRequest['method'], message: JsonObject | undefined, headers: object, ownerId = 'ann') {
    const principal = { ...ANONYMOUS, id: ownerId };
    const post = { template: this.template, headers, principal, ...(message && { message }) };
    return begin({ mcp: this.mcp.endpoint }, method, post).reply;
  }
}

/** A legacy server asks in the middle of the call, a modern one by its result; with the reply the call is done. */
function answer(id: string, exchange: ScriptedExchange): void {
  const { method, params = {} } = exchange.request;
  if (method !== 'tools/call') exchange.result();
  else if (params.name === 'slow') return;
  else if (params.name === 'refused') exchange.fail(REFUSED);
  else if (params.name === 'read' || params.inputResponses !== undefined) exchange.result(doneBy(id));
  else if (isJsonObject(params._meta) && params._meta[META.clientInfo] !== undefined) {
    const inputRequests = { sure: { method: 'elicitation/create', params: QUESTION } };
    exchange.result({ resultType: 'input_required', inputRequests, requestState: 'state' });
  } else {
    const done = () => exchange.isOpen && exchange.result(doneBy(id));
    exchange.emit({ kind: 'request', method: 'elicitation/create', params: QUESTION, answer: done });
  }
}

function doneBy(id: string): JsonObject {
  return { content: [{ type: 'text', text: `done by ${id}` }] };
}

/** Longer than the time in which questions are gathered for a client without a session. */
const GATHERING_MS = 60;

/** One client that has called `write`, and was asked. */
export interface AskedClient {
  /** Accepts the question. */
  reply(): Promise<void>;
  /** The text of the result, the code of the error; undefined while there is none. */
  readonly seen: string | undefined;
  /** The answers received; there must be at most one. */
  readonly answers: number;
}

/** A session. Its requests have the same ids as those of every client. */
export class LegacyClient implements AskedClient {
  readonly harness: RoundsHarness;
  readonly headers: Readonly<Record<string, string>>;
  readonly ownerId: string;
  #call = new RecordedReply();

  private constructor(harness: RoundsHarness, ownerId: string, headers: Readonly<Record<string, string>>) {
    this.harness = harness;
    this.ownerId = ownerId;
    this.headers = headers;
  }

  static async open(harness: RoundsHarness, ownerId = 'ann'): Promise<LegacyClient> {
    const reply = harness.send('POST', initialize({ elicitation: {} }), {}, ownerId);
    await settled();
    const id = reply.headers[reply.headers.indexOf('Mcp-Session-Id') + 1] ?? '';
    return new LegacyClient(harness, ownerId, { 'mcp-session-id': id });
  }

  /** Sends something in the session. */
  async post(message: JsonObject): Promise<RecordedReply> {
    const reply = this.harness.send('POST', message, this.headers, this.ownerId);
    await settled();
    return reply;
  }

  /** Begins the call, up to the question. */
  async ask(name = 'write', id = 1): Promise<this> {
    this.#call = await this.post({ id, method: 'tools/call', params: { name, arguments: {} } });
    return this;
  }

  /** The id of the question, for the reply. */
  get questionId(): number {
    const question = this.#messages.find(({ method }) => method === 'elicitation/create');
    return Number(question?.id);
  }

  /** Questions that were taken back, by their id. */
  get takenBack(): unknown[] {
    return this.#messages
      .filter(({ method }) => method === 'notifications/cancelled')
      .map(({ params }) => isJsonObject(params) && params.requestId);
  }

  async reply(id: unknown = this.questionId): Promise<void> {
    await this.post({ id: id as number, result: { action: 'accept' } });
  }

  async end(): Promise<RecordedReply> {
    const reply = this.harness.send('DELETE', undefined, this.headers, this.ownerId);
    await settled();
    return reply;
  }

  get seen(): string | undefined {
    return seenIn(this.#messages.find(isAnswer));
  }

  get answers(): number {
    return this.#messages.filter(isAnswer).length;
  }

  get #messages(): JsonObject[] {
    const { opened, body } = this.#call;
    return opened?.messages ?? (body === undefined ? [] : [this.#call.message]);
  }
}

/** A client that carries the state of its call itself. */
export class ModernClient implements AskedClient {
  readonly harness: RoundsHarness;
  readonly ownerId: string;
  /** State and answers for the next round. */
  carried: JsonObject = {};
  readonly #answers: JsonObject[] = [];

  constructor(harness: RoundsHarness, ownerId = 'ann') {
    this.harness = harness;
    this.ownerId = ownerId;
  }

  async ask(): Promise<this> {
    const reply = await this.#post({});
    const result = isJsonObject(reply.result) ? reply.result : {};
    const { requestState = '', inputRequests } = result;
    const keys = Object.keys(isJsonObject(inputRequests) ? inputRequests : {});
    const inputResponses = Object.fromEntries(keys.map((key) => [key, { action: 'accept' }]));
    this.carried = { requestState, inputResponses };
    return this;
  }

  async reply(): Promise<void> {
    this.#answers.push(await this.#post(this.carried));
  }

  get seen(): string | undefined {
    return this.allSeen[0];
  }

  /** The outcome of each reply, in order. */
  get allSeen(): (string | undefined)[] {
    return this.#answers.map(seenIn);
  }

  get answers(): number {
    return this.#answers.length;
  }

  async #post(carried: JsonObject): Promise<JsonObject> {
    const meta = {
      [META.clientCapabilities]: { elicitation: {} },
      [META.clientInfo]: { name: 'client', version: '1' },
    };
    const params = { name: 'write', arguments: {}, ...carried };
    const { message, headers } = modernRequest('tools/call', params, meta);
    const reply = this.harness.send('POST', message, headers, this.ownerId);
    await pass(GATHERING_MS);
    return reply.isAnswered ? (reply.opened?.messages.at(-1) ?? reply.message) : {};
  }
}

function isAnswer({ id, method }: JsonObject): boolean {
  return id !== undefined && method === undefined;
}

/** The text of a result; of an error its code in the catalogue, else its reason. */
function seenIn(answered: JsonObject | undefined): string | undefined {
  if (answered === undefined) return undefined;
  const { result, error } = answered;
  if (isJsonObject(result)) return String(Object(result).content?.[0]?.text ?? result.resultType);
  const { data = {}, code } = Object(error);
  return String(data.error_code ?? data.reason ?? code);
}
