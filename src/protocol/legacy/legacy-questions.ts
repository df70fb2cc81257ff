// The questions of one legacy session: requests of its server that wait for an answer of the client.

import { randomInt } from 'node:crypto';
import { questionFailed, type ServerRequest } from '../../domain/mcp/client.ts';
import { type JsonRpcId, numberMeant } from '../../domain/mcp/jsonrpc.ts';
import type { LegacyCall } from './legacy-call.ts';

/** The most pending questions of one session; further ones are refused. */
const MAX_OPEN_QUESTIONS = 256;
/** The greatest id of a question: some clients read ids as integers of 32 bits, with or without a sign. */
const MAX_ID = 2 ** 31 - 1;

interface PendingQuestion extends Pick<ServerRequest, 'answer'> {
  /** The call to which the question belongs; undefined when it came outside of calls. */
  readonly call: LegacyCall | undefined;
  readonly askedAtMs: number;
}

/** The questions of one session: requests of its server that wait for an answer of the client. */
export class LegacyQuestions {
  readonly #waiting = new Map<JsonRpcId, PendingQuestion>();

  get size(): number {
    return this.#waiting.size;
  }

  has(id: JsonRpcId): boolean {
    return this.#waiting.has(id);
  }

  /** The id for a new question. It is random: an answer to a question of an earlier life of the gateway fits none. */
  newId(): number {
    const id = randomInt(1, MAX_ID);
    return this.#waiting.has(id) ? this.newId() : id;
  }

  /** Stores a question. Returns false when too many wait: the server has then got an error. */
  add(
    id: number,
    { answer, method }: ServerRequest,
    call: LegacyCall | undefined,
    askedAtMs: number,
  ): boolean {
    if (this.#waiting.size >= MAX_OPEN_QUESTIONS) {
      answer(questionFailed(`Too many requests wait for the client; ${method} was not passed on.`));
      return false;
    }
    this.#waiting.set(id, { answer, call, askedAtMs });
    return true;
  }

  /** Passes an answer of the client to the server. An answer to an unknown or withdrawn question is dropped. */
  answer(id: JsonRpcId, ...answer: Parameters<ServerRequest['answer']>): void {
    const asked = numberMeant(id);
    const question = asked === undefined ? undefined : this.#waiting.get(asked);
    if (asked === undefined || question === undefined) return;
    this.#waiting.delete(asked);
    question.answer(...answer);
  }

  /** Removes the questions of a call that is over, and returns their ids. */
  withdraw(call: LegacyCall): number[] {
    return this.#remove((question) => question.call === call).map(([id]) => Number(id));
  }

  /**
   * Answers all questions that were asked up to this time with an error. All are cancelled first, since the first
   * answer may end the call.
   */
  expire(askedUntilMs: number, cancel: (id: number, call: LegacyCall | undefined) => void): void {
    const late = this.#remove(({ askedAtMs }) => askedAtMs <= askedUntilMs);
    for (const [id, { call }] of late) cancel(Number(id), call);
    for (const [, { answer }] of late) answer(questionFailed('The client did not answer in time.'));
  }

  /**
   * Answers the questions outside of calls with an error, because the session is over. Questions of calls end with
   * their call.
   */
  close(): void {
    for (const [, { answer }] of this.#remove(({ call }) => call === undefined)) {
      answer(questionFailed('The session of the client has ended.'));
    }
  }

  #remove(isMatch: (question: PendingQuestion) => boolean): [JsonRpcId, PendingQuestion][] {
    const removed = [...this.#waiting].filter(([, question]) => isMatch(question));
    for (const [id] of removed) this.#waiting.delete(id);
    return removed;
  }
}
