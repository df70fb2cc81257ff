// Clients of both eras that call a tool and are asked in the middle of it: what they hear, and what they answer when the
// spec says so. What they call is in rounds-harness.ts.

import { isJsonObject, type JsonObject } from '../../src/domain/json.ts';
import { META } from '../../src/domain/mcp.ts';
import { RecordedReply } from '../protocol/recorded-reply.ts';
import { initialize, modernRequest } from './mcp-post.ts';
import { pass, type RoundsHarness, settled } from './rounds-harness.ts';

/** Longer than questions are gathered for a client that hears of them by the end of its request. */
const GATHERING_MS = 10;

/** One client that has called `write`, and was asked. */
export interface AskedClient {
  /** Says yes. */
  reply(): Promise<void>;
  /** The text of the result, the code of the error; undefined while there is none. */
  readonly seen: string | undefined;
  /** Answers that came; more than one is one too many. */
  readonly answers: number;
}

/** A session. Its requests have the ids that every client counts. */
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

  /** What it is asked, by the id that the reply is to carry. */
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
  /** What the first round gave it to carry. */
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

  /** What each reply came to, in order. */
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
