// The requests of a server that wait for the answer of its client: ids that are unique in the session, whose they are,
// and until when. How they reach the client is the conversation's business.

import type { ClientReply, ServerRequest } from '../domain/client.ts';
import { type JsonRpcId, RPC } from '../domain/jsonrpc.ts';

/** Questions of one session that wait; more are refused. */
const MOST_QUESTIONS = 256;
/** Longest wait for the answer of a client: a person may have to read first. */
const LONGEST_MS = 10 * 60_000;

/** What a question belongs to; undefined for one that came outside of any call. */
export type Asker = object | undefined;

interface Question {
  readonly answer: (reply: ClientReply) => void;
  readonly asker: Asker;
  readonly askedAtMs: number;
}

/** The questions of one session. */
export class LegacyQuestions {
  readonly #nextId: () => number;
  readonly #waiting = new Map<JsonRpcId, Question>();

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

  /** Remembers a question; its id for the client. Undefined when too many wait: then the server has its answer already. */
  add({ answer, method }: ServerRequest, asker: Asker): number | undefined {
    if (this.#waiting.size >= MOST_QUESTIONS) {
      answer(failed(`Too many requests wait for the client; ${method} was not passed on.`));
      return undefined;
    }
    const id = this.#nextId();
    this.#waiting.set(id, { answer, asker, askedAtMs: Date.now() });
    return id;
  }

  /** Hands in what the client said. What nobody asked, or asked no longer, is dropped. */
  answer(id: JsonRpcId, reply: ClientReply): void {
    const question = this.#waiting.get(id);
    if (question === undefined) return;
    this.#waiting.delete(id);
    question.answer(reply);
  }

  /** Forgets the questions of an asker that is over; their ids. */
  withdraw(asker: Asker): number[] {
    return this.#remove((question) => question.asker === asker).map(([id]) => Number(id));
  }

  /** Answers the questions that waited too long with an error. */
  expire(nowMs: number): void {
    for (const [, { answer }] of this.#remove(({ askedAtMs }) => nowMs - askedAtMs >= LONGEST_MS)) {
      answer(failed('The client did not answer in time.'));
    }
  }

  #remove(isToGo: (question: Question) => boolean): [JsonRpcId, Question][] {
    const gone = [...this.#waiting].filter(([, question]) => isToGo(question));
    for (const [id] of gone) this.#waiting.delete(id);
    return gone;
  }
}

function failed(message: string): ClientReply {
  return { error: { code: RPC.internalError, message } };
}
