// The clients of the chaos journey. Each call carries a unique text that its answer must contain; all clients use the same
// ids. Each answer is judged at once: the answer of another call, a second answer, no answer in time, an error without a
// code. What happens to the backends meanwhile is in events.ts.

import { setTimeout as delay } from 'node:timers/promises';
import { ERRORS } from '../../../src/domain/errors/errors.ts';
import { type Json, objectOr } from '../../fixtures/wire.ts';
import { LegacyClient, ModernClient, type Outcome, textOf } from '../../helpers/clients/mcp-client.ts';
import type { Message, OpenStream } from '../../helpers/clients/mcp-wire.ts';
import type { Dice } from '../../helpers/dice.ts';
import { TEMPLATES } from './backends.ts';
import type { ChaosHarness } from './chaos-harness.ts';

/** Longest wait for an answer: the timeout of a call, once more for each retry, the look-up of a tool, and a slow machine. */
const patienceMs = 25_000;
/** Longest pause between two calls. */
const breathMs = 250;
/** Codes that a client may receive: all of the catalogue but INTERNAL_ERROR. */
const CODES = new Set<unknown>(Object.keys(ERRORS).filter((code) => code !== 'INTERNAL_ERROR'));
/** Errors of the protocol without such a code: the session ended, or the server refuses the request. */
const PLAIN = new Set([-32001, -32601, -32602]);
/** Ways to answer wrongly, on a pipe and over HTTP (fixtures/misbehave.ts). */
const CRIMES = [
  'garbage',
  'two-answers',
  'unknown-id-then-answer',
  'half-line-exit',
  'nothing',
  'no-result',
  'exit',
];

/** One call, and the text of its answer; undefined where any answer is right. */
interface Errand {
  readonly tool: string;
  readonly values: Json;
  readonly wanted?: string;
  readonly meta?: Json;
}

/** A client that calls until it is stopped. */
export class ChaosClient {
  readonly #chaos: ChaosHarness;
  readonly #dice: Dice;
  readonly #name: string;
  readonly #template: string;
  readonly #isModern: boolean;
  readonly #maySay: boolean;
  #legacy: LegacyClient | undefined;
  #stream: OpenStream | undefined;
  #turn = 0;

  constructor(chaos: ChaosHarness, number: number, dice: Dice) {
    this.#chaos = chaos;
    this.#dice = dice;
    this.#name = `client-${number}`;
    this.#template = TEMPLATES[number % TEMPLATES.length] ?? 'pipes';
    // The unfinished calls and the processes of a stateless client stay for minutes.
    this.#isModern = this.#template !== 'alone' && number % 2 === 0;
    // The modern server of the fixture sends no elicitation.
    this.#maySay = !this.#isModern && this.#template !== 'new' && dice.next() < 0.5;
  }

  /** Runs until `isOver`; then the session is ended, or abandoned. */
  async run(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const fromMs = performance.now();
      try {
        await this.#act();
      } catch (thrown) {
        this.#brokenOff(fromMs, thrown);
        this.#legacy = undefined;
      }
      await delay(this.#dice.next() * breathMs);
    }
    this.#stream?.close();
    if (this.#dice.next() < 0.5) await this.#legacy?.close().catch(() => undefined);
  }

  async #act(): Promise<void> {
    this.#turn += 1;
    const chance = this.#dice.next();
    if (chance < 0.08) return this.#leave();
    if (chance < 0.16) return this.#listen();
    if (chance < 0.22) return this.#list();
    const errand = this.#errand();
    const fromMs = performance.now();
    const outcome = await this.#call(errand);
    if (outcome !== undefined) this.#judge(errand, outcome, fromMs);
  }

  #errand(): Errand {
    const text = `${this.#name}.${this.#turn}.`;
    const chance = this.#dice.next();
    if (chance < 0.4) return { tool: 'echo', values: { text }, wanted: text };
    if (chance < 0.5) {
      const long = text + 'x'.repeat(this.#dice.below(200_000));
      return { tool: 'echo', values: { text: long }, wanted: long };
    }
    if (chance < 0.65) {
      const steps = 1 + this.#dice.below(4);
      const values = { steps, ms: this.#dice.below(60) };
      return { tool: 'progress', values, wanted: `did ${steps} steps`, meta: { progressToken: 1 } };
    }
    if (chance < 0.75) {
      const ms = this.#dice.below(400);
      return { tool: 'sleep', values: { ms }, wanted: `slept ${ms}` };
    }
    if (chance < 0.9 && this.#maySay) {
      const params = { mode: 'form', message: text, requestedSchema: { type: 'object', properties: {} } };
      const result = { result: { action: 'accept', content: { said: text } } };
      return {
        tool: 'ask',
        values: { method: 'elicitation/create', params },
        wanted: JSON.stringify(result),
      };
    }
    if (chance < 0.94) return { tool: 'misbehave', values: { how: this.#dice.pick(CRIMES) } };
    return { tool: 'echo', values: { text }, wanted: text };
  }

  async #call({ tool, values, meta }: Errand): Promise<Outcome | undefined> {
    const options = { id: 1 + (this.#turn % 3), ...(meta === undefined ? {} : { meta }) };
    const client = this.#isModern ? this.#modern() : await this.#session();
    return client?.call(tool, values, options);
  }

  #modern(): ModernClient {
    return new ModernClient(this.#chaos.harness.wire, `/mcp/${this.#template}`, this.#options());
  }

  /** Undefined if the gateway refuses a session with a code. */
  async #session(): Promise<LegacyClient | undefined> {
    if (this.#legacy !== undefined) return this.#legacy;
    const fromMs = performance.now();
    try {
      this.#legacy = await LegacyClient.open(
        this.#chaos.harness.wire,
        `/mcp/${this.#template}`,
        this.#options(),
      );
    } catch (thrown) {
      const [, code] = /^Error: no session .*"error_code":"([A-Z_]+)"/s.exec(String(thrown)) ?? [];
      if (!CODES.has(code)) this.#brokenOff(fromMs, thrown);
      else this.#chaos.count(`refused ${code}`);
    }
    return this.#legacy;
  }

  #options() {
    // The answer repeats the question, so that a question to the wrong client shows.
    const say = ({ message }: Json) => {
      if (!String(message).startsWith(`${this.#name}.`)) this.#tell(`was asked ${message}`);
      return { action: 'accept', content: { said: message } };
    };
    const asked = { capabilities: { elicitation: {} }, replies: { 'elicitation/create': say } };
    return { withinMs: patienceMs, ...(this.#maySay ? asked : {}) };
  }

  #judge(errand: Errand, outcome: Outcome, fromMs: number): void {
    const { error, result, status } = outcome;
    if (error !== undefined) this.#judgeError(errand, error);
    else if (result !== undefined) this.#judgeResult(errand, outcome);
    // Errors before the endpoint are those of every route: the gateway starts or stops.
    else if (status === 503 || this.#chaos.wasAway(fromMs, performance.now()))
      this.#chaos.count(`status ${status}`);
    else this.#tell(`${errand.tool}: no answer, status ${status}`);
  }

  #judgeError({ tool }: Errand, error: NonNullable<Message['error']>): void {
    const code = objectOr(error.data).error_code;
    if (error.code === -32001) this.#legacy = undefined;
    if (!CODES.has(code) && !PLAIN.has(error.code)) this.#tell(`${tool}: ${JSON.stringify(error)}`);
    this.#chaos.count(`error ${code ?? error.code}`);
  }

  #judgeResult({ tool, values, wanted }: Errand, outcome: Outcome): void {
    const text = textOf(outcome);
    if (wanted !== undefined && text !== wanted) {
      this.#tell(`${tool}: wanted ${wanted.slice(0, 80)}, got ${text.slice(0, 80)}`);
    }
    const steps = outcome.notifications.filter(({ method }) => method === 'notifications/progress');
    const isOwn = steps.every(
      ({ params }, index) => params?.progress === index + 1 && params.total === values.steps,
    );
    if (!isOwn || (steps.length > 0 && tool !== 'progress'))
      this.#tell(`progress of another: ${JSON.stringify(steps)}`);
    this.#chaos.count('answered');
  }

  /** Sends a call and disconnects before its answer. */
  async #leave(): Promise<void> {
    // No tool that asks its client: a question waits for ten minutes, since a person may have to answer it.
    const params = { name: 'progress', arguments: { steps: 4, ms: 100 } };
    const session = this.#isModern ? undefined : await this.#session();
    const { wire } = this.#chaos.harness;
    const sent = session
      ? {
          headers: session.headers,
          body: JSON.stringify({ jsonrpc: '2.0', id: this.#name, method: 'tools/call', params }),
        }
      : this.#modern().request('tools/call', params, { id: this.#name });
    if (!this.#isModern && session === undefined) return;
    // In the legacy era that cancels nothing: the id stays in use, and the session is not used any more.
    this.#legacy = undefined;
    const leaving = AbortSignal.timeout(this.#dice.below(150));
    const stream = await Promise.race([
      wire.stream(`/mcp/${this.#template}`, { ...sent, withinMs: patienceMs }).catch(() => undefined),
      new Promise<undefined>((resolve) => leaving.addEventListener('abort', () => resolve(undefined))),
    ]);
    stream?.close();
    this.#chaos.count('left');
  }

  /** Opens the stream for notifications, or closes it. */
  async #listen(): Promise<void> {
    if (this.#stream !== undefined) {
      this.#stream.close();
      this.#stream = undefined;
      return;
    }
    const client = this.#isModern ? undefined : await this.#session();
    if (!this.#isModern && client === undefined) return;
    this.#stream = await (client?.listen() ?? this.#modern().listen({ toolsListChanged: true }));
    this.#chaos.count('listened');
  }

  async #list(): Promise<void> {
    const client = this.#isModern ? this.#modern() : await this.#session();
    const fromMs = performance.now();
    const outcome = await client?.ask('tools/list');
    const errand = { tool: 'tools/list', values: {} };
    if (outcome !== undefined && outcome.result === undefined) this.#judge(errand, outcome, fromMs);
  }

  /** A connection may break only while the gateway is away; a call without an answer is always a fault. */
  #brokenOff(fromMs: number, thrown: unknown): void {
    const text = String(thrown);
    const isHang = text.includes('no answer within');
    if (isHang || text.includes('asked with id') || !this.#chaos.wasAway(fromMs, performance.now()))
      this.#tell(text);
    else this.#chaos.count('broken off');
  }

  #tell(what: string): void {
    this.#chaos.wrong.push(`${this.#name} at ${this.#template}: ${what}`);
  }
}
