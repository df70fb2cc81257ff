// What the specs of parked calls need: an exchange that says what the spec tells it, requests of its backend that write
// down their replies, and clients that write down what they hear.

import { Observable, type Subscriber, type Subscription } from 'rxjs';
import type { ParkedRequest } from '../../../src/actors/parked-calls/parked-call.ts';
import type { ClientReply } from '../../../src/domain/client.ts';
import { asGatewayError } from '../../../src/domain/errors.ts';
import type { Answer, ExchangeEvent } from '../../../src/domain/exchange.ts';
import { JsonText } from '../../../src/domain/json.ts';

/** One exchange with instance `a`. */
export class Exchange {
  isCancelled = false;
  /** Hears of it. */
  cancelled = (): void => {};
  /** What the client replied, by method and in order. */
  readonly replies: [string, ClientReply][] = [];
  #subscriber: Subscriber<Answer> | undefined;
  #isOver = false;
  readonly answers$ = new Observable<Answer>((subscriber) => {
    this.#subscriber = subscriber;
    return () => {
      this.isCancelled = !this.#isOver;
      if (this.isCancelled) this.cancelled();
    };
  });

  say(event: ExchangeEvent): void {
    this.#subscriber?.next({ event, instanceId: 'a', serverId: 'a' });
  }
  notify(n: number): void {
    this.say({ kind: 'notification', method: 'notifications/progress', params: { progress: n } });
  }
  ask(method: string): void {
    const answer = (reply: ClientReply) => void this.replies.push([method, reply]);
    this.say({ kind: 'request', method, params: { about: method }, answer });
  }
  result(value: unknown): void {
    this.#isOver = true;
    this.say({ kind: 'result', result: JsonText.ofValue(value) });
    this.#subscriber?.complete();
  }
  fail(thrown: unknown): void {
    this.#isOver = true;
    this.#subscriber?.error(thrown);
  }
}

/** What one client heard of one stretch: progress as its number, results as their value, questions as their keys. */
export class Client {
  readonly heard: unknown[] = [];
  asked: ParkedRequest | undefined;
  readonly subscription: Subscription;

  constructor(answers$: Observable<Answer | ParkedRequest> | undefined) {
    if (answers$ === undefined) throw new Error('there is no such call');
    this.subscription = answers$.subscribe({
      next: (answer) => this.#hear(answer),
      error: (thrown: unknown) => this.heard.push(asGatewayError(thrown).code),
      complete: () => this.heard.push('end'),
    });
  }

  get id(): string {
    return this.asked?.id ?? 'never asked';
  }
  /** The key of a method that it was asked. */
  key(method: string): string {
    const found = [...(this.asked?.requests ?? [])].find(([, request]) => request.method === method);
    return found?.[0] ?? 'never asked';
  }

  #hear(answer: Answer | ParkedRequest): void {
    if ('kind' in answer) {
      this.asked = answer;
      this.heard.push([...answer.requests.values()].map(({ method }) => method).join());
    } else if (answer.event.kind === 'notification') this.heard.push(answer.event.params.progress);
    else if (answer.event.kind === 'result') this.heard.push(answer.event.result.value);
    else this.heard.push(answer.event.kind);
  }
}

export const ACCEPTED: ClientReply = { result: { action: 'accept' } };

export function replies(...keys: string[]): ReadonlyMap<string, ClientReply> {
  return new Map(keys.map((key) => [key, ACCEPTED]));
}
