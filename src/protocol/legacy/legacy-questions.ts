// The requests of a server that wait for the answer of its client: ids that are unique in the session, the calls they belong
// to, and deadlines. The conversation sends them.

import type { ClientReply, ServerRequest } from '../../domain/client.ts';
import { type JsonRpcId, RPC } from '../../domain/jsonrpc.ts';

/** Questions of one session that wait; more are refused. */
const MOST_QUESTIONS = 256;
/** Longest wait for the answer of a client: a person may have to read first. */
const LONGEST_MS = 10 * 60_000;

interface PendingQuestion<Asker> {
  readonly answer: (reply: ClientReply) => void;
  readonly asker: Asker | undefined;
  readonly askedAtMs: number;
}

/** The questions of one session. An asker is what a question belongs to; undefined if it came outside of any call. */
export class LegacyQuestions<Asker extends object> {
  readonly #nextId: () => number;
  readonly #waiting = new Map<JsonRpcId, PendingQuestion<Asker>>();

  /** `nextId` never gives the same number twice in a session. */
  constructor(nextId: () => number) {
    this.#nextId = nextId;
  }

  get size(): number {
    return this.#waiting.size;
  }

  has(id: JsonRpcId): boolean {
    return this.#waiting.has(id);
  }

  /** Stores a question, and returns its id for the client. Undefined when too many wait: then the server got an error. */
  add({ answer, method }: ServerRequest, asker: Asker | undefined): number | undefined {
    if (this.#waiting.size >= MOST_QUESTIONS) {
      answer(failed(`Too many requests wait for the client; ${method} was not passed on.`));
      return undefined;
    }
    const id = this.#nextId();
    this.#waiting.set(id, { answer, asker, askedAtMs: Date.now() });
    return id;
  }

  /** Passes an answer of the client on. An answer to an unknown or withdrawn question is dropped. */
  answer(id: JsonRpcId, reply: ClientReply): void {
    const question = this.#waiting.get(id);
    if (question === undefined) return;
    this.#waiting.delete(id);
    question.answer(reply);
  }

  /** Removes the questions of a call that is over, and returns their ids. */
  withdraw(asker: Asker): number[] {
    return this.#remove((question) => question.asker === asker).map(([id]) => Number(id));
  }

  /**
   * Answers the questions that waited too long with an error. The client gets a cancellation of each of them before, since the
   * first answer may end the call.
   */
  expire(nowMs: number, takeBack: (id: number, asker: Asker | undefined) => void): void {
    const late = this.#remove(({ askedAtMs }) => nowMs - askedAtMs >= LONGEST_MS);
    for (const [id, { asker }] of late) takeBack(Number(id), asker);
    for (const [, { answer }] of late) answer(failed('The client did not answer in time.'));
  }

  /** Answers those outside of any call with an error: the session is over. Those of a call end with it. */
  close(): void {
    for (const [, { answer }] of this.#remove(({ asker }) => asker === undefined)) {
      answer(failed('The session of the client is over.'));
    }
  }

  #remove(isToGo: (question: PendingQuestion<Asker>) => boolean): [JsonRpcId, PendingQuestion<Asker>][] {
    const gone = [...this.#waiting].filter(([, question]) => isToGo(question));
    for (const [id] of gone) this.#waiting.delete(id);
    return gone;
  }
}

function failed(message: string): ClientReply {
  return { error: { code: RPC.internalError, message } };
}
