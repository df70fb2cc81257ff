// Many concurrent sessions, all with the same ids, and with unique texts that the answers must contain: an answer of another
// session shows. The events of their instances are in mcp-kill-and-drain.spec.ts.

import { setTimeout as delay } from 'node:timers/promises';
import { LegacyClient, type Outcome, textOf } from '../../helpers/clients/mcp-client.ts';
import type { Wire } from '../../helpers/clients/mcp-wire.ts';

/** The pause between two calls of one session. */
const breathMs = 80;
/** Longest wait for one answer; no request here takes long, even if a process dies meanwhile. */
const timeoutMs = 20_000;
/** Sessions that are opened at a time. */
const atOnce = 20;
/** Every so many-th call of a session is slow. */
const slowEvery = 3;

/**
 * The requests of a session: only reads, which may be repeated; calls of tools, which may not; or calls whose tool asks its
 * client, which needs a dedicated process over stdio.
 */
export type CallKind = 'reads' | 'acts' | 'asks';

/**
 * The outcome of one call. `lost`: 404, the session ended. `broken`: the instance disconnected, and the call may have been
 * executed. Any other text describes a fault.
 */
export type CallResult = 'ok' | 'lost' | 'broken' | string;

/** One session and the outcomes of its calls. */
export class CallingSession {
  readonly number: number;
  readonly kind: CallKind;
  readonly path: string;
  /** The outcomes of all calls since it was emptied. */
  results: CallResult[] = [];
  /** The errors of broken calls. */
  readonly trouble: string[] = [];
  /** The instance that answered last. */
  instanceId: string | undefined;
  #client: LegacyClient | undefined;
  #turn = 0;

  constructor(path: string, number: number, kind: CallKind) {
    this.path = path;
    this.number = number;
    this.kind = kind;
  }

  get client(): LegacyClient {
    if (this.#client === undefined) throw new Error('it has no session yet');
    return this.#client;
  }

  /** Opens a new session. */
  async open(wire: Wire): Promise<void> {
    const elicit = () => ({ action: 'accept', content: { username: this.text, email: 'x@example.com' } });
    const asked = { capabilities: { elicitation: {} }, replies: { 'elicitation/create': elicit } };
    const options = this.kind === 'asks' ? asked : {};
    this.#client = await LegacyClient.open(wire, this.path, { ...options, withinMs: timeoutMs });
  }

  /** The text that the answer must contain. */
  get text(): string {
    return `text ${this.#turn} of session ${this.number}`;
  }

  /** One call, with an id that every other session uses, too. */
  async callNext(): Promise<CallResult> {
    this.#turn += 1;
    const results = await this.#call().then(
      (outcome) => this.#resultOf(outcome),
      (error: unknown) => `failed: ${error}`,
    );
    this.results.push(results);
    return results;
  }

  get #isSlow(): boolean {
    return this.#turn % slowEvery === 0;
  }

  #call(): Promise<Outcome> {
    const options = { id: this.#turn };
    if (this.kind === 'asks') return this.client.call('test_elicitation', { message: this.text }, options);
    if (this.kind === 'reads') {
      const params = { name: 'test_prompt_with_arguments', arguments: { arg1: this.text, arg2: 'x' } };
      return this.client.ask('prompts/get', params, options);
    }
    if (!this.#isSlow) return this.client.call('test_x_mcp_header', { region: this.text }, options);
    // All sessions use the same token.
    return this.client.call('test_tool_with_progress', {}, { ...options, meta: { progressToken: 1 } });
  }

  #resultOf(outcome: Outcome): CallResult {
    const { status, error, notifications, instanceId } = outcome;
    if (status === 404 && error?.code === -32001) return 'lost';
    if (error?.code === 503) {
      this.trouble.push(JSON.stringify(error));
      return 'broken';
    }
    if (status !== 200 || error !== undefined) return `${status} ${JSON.stringify(error)}`;
    this.instanceId = instanceId;
    if (this.kind === 'acts' && this.#isSlow) {
      const steps = notifications.map(({ params }) => `${params?.progressToken}:${params?.progress}`).join();
      return steps === '1:0,1:50,1:100' ? 'ok' : `progress of somebody else: ${steps}`;
    }
    return textOf(outcome).includes(this.text) ? 'ok' : `not its own answer: ${textOf(outcome)}`;
  }
}

/** Opens `count` sessions, with the manners in turn. */
export async function openSessions(
  wire: Wire,
  path: string,
  kinds: readonly CallKind[],
  count: number,
): Promise<CallingSession[]> {
  const sessions = Array.from({ length: count }, (_, number) => {
    return new CallingSession(path, number, kinds[number % kinds.length] ?? 'reads');
  });
  for (let from = 0; from < count; from += atOnce) {
    await Promise.all(sessions.slice(from, from + atOnce).map((session) => session.open(wire)));
  }
  return sessions;
}

/** Lets all sessions call until the returned function is called, which resolves after the last answer. */
export function keepCalling(sessions: readonly CallingSession[]): () => Promise<void> {
  let isOver = false;
  const loops = sessions.map(async (session, index) => {
    await delay((index * breathMs) / sessions.length);
    while (!isOver) {
      // An ended session refuses every call; one refusal is enough.
      if ((await session.callNext()) === 'lost') return;
      await delay(breathMs);
    }
  });
  return async () => {
    isOver = true;
    await Promise.all(loops);
  };
}

/** The number of sessions of each instance. */
export function share(sessions: readonly CallingSession[]): Record<string, number> {
  return tally(sessions.map(({ instanceId = 'nobody' }) => instanceId));
}

/** The count of each text. */
export function tally(texts: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const text of texts) counts[text] = (counts[text] ?? 0) + 1;
  return counts;
}

/** The number of sessions by their sequence of outcomes, such as `ok, then lost`. */
export function summary(sessions: readonly CallingSession[]): Record<string, number> {
  const inShort = ({ results }: CallingSession): string =>
    results.filter((one, index) => one !== results[index - 1]).join(', then ') || 'nothing';
  return tally(sessions.map(inShort));
}

/** The sessions bound to an instance, and the others. */
export function split(sessions: readonly CallingSession[], id: string) {
  const there = sessions.filter(({ instanceId }) => instanceId === id);
  return { there, elsewhere: sessions.filter((session) => !there.includes(session)) };
}
