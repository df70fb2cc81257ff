// Many sessions that talk at the same time, all under the same ids, with texts that have to come back: whoever reads the
// answer of another one is found out. What happens to their instances meanwhile is mcp-kill-and-drain.spec.ts.

import { setTimeout as delay } from 'node:timers/promises';
import { LegacyClient, type Outcome, textOf } from '../../helpers/mcp-client.ts';
import type { Wire } from '../../helpers/mcp-wire.ts';

/** Between two calls of one session. */
const breathMs = 80;
/** Longest wait for one answer; nothing that is asked for here takes long, whatever dies meanwhile. */
const patienceMs = 20_000;
/** Sessions that are opened at a time. */
const atOnce = 20;
/** Calls of one session of which every so many-th takes its time. */
const slowEvery = 3;

/**
 * What a session does: only reads, which may be repeated; calls of tools that may not; or calls whose tool asks its client,
 * which needs a process of its own over stdio.
 */
export type Manner = 'reads' | 'acts' | 'asks';

/**
 * How one call went. `lost`: 404, the session is over. `broken`: the call is, because its instance broke off, and may have
 * happened. Anything else is a text that says what was wrong.
 */
export type Said = 'ok' | 'lost' | 'broken' | string;

/** One session and what came of it. */
export class Talker {
  readonly number: number;
  readonly manner: Manner;
  readonly path: string;
  /** Of every call since it was emptied last. */
  said: Said[] = [];
  /** What was said of calls that broke off. */
  readonly trouble: string[] = [];
  /** Who answered last. */
  instanceId: string | undefined;
  #client: LegacyClient | undefined;
  #turn = 0;

  constructor(path: string, number: number, manner: Manner) {
    this.path = path;
    this.number = number;
    this.manner = manner;
  }

  get client(): LegacyClient {
    if (this.#client === undefined) throw new Error('it has no session yet');
    return this.#client;
  }

  /** Begins a session, the next one when there was one. */
  async open(wire: Wire): Promise<void> {
    const elicit = () => ({ action: 'accept', content: { username: this.text, email: 'x@example.com' } });
    const asked = { capabilities: { elicitation: {} }, replies: { 'elicitation/create': elicit } };
    const options = this.manner === 'asks' ? asked : {};
    this.#client = await LegacyClient.open(wire, this.path, { ...options, withinMs: patienceMs });
  }

  /** What has to come back. */
  get text(): string {
    return `text ${this.#turn} of session ${this.number}`;
  }

  /** One call, under an id that every other session uses, too. */
  async say(): Promise<Said> {
    this.#turn += 1;
    const said = await this.#call().then(
      (outcome) => this.#judge(outcome),
      (error: unknown) => `failed: ${error}`,
    );
    this.said.push(said);
    return said;
  }

  get #isSlow(): boolean {
    return this.#turn % slowEvery === 0;
  }

  #call(): Promise<Outcome> {
    const options = { id: this.#turn };
    if (this.manner === 'asks') return this.client.call('test_elicitation', { message: this.text }, options);
    if (this.manner === 'reads') {
      const params = { name: 'test_prompt_with_arguments', arguments: { arg1: this.text, arg2: 'x' } };
      return this.client.ask('prompts/get', params, options);
    }
    if (!this.#isSlow) return this.client.call('test_x_mcp_header', { region: this.text }, options);
    // A token that everybody has.
    return this.client.call('test_tool_with_progress', {}, { ...options, meta: { progressToken: 1 } });
  }

  #judge(outcome: Outcome): Said {
    const { status, error, heard, instanceId } = outcome;
    if (status === 404 && error?.code === -32001) return 'lost';
    if (error?.code === 503) {
      this.trouble.push(JSON.stringify(error));
      return 'broken';
    }
    if (status !== 200 || error !== undefined) return `${status} ${JSON.stringify(error)}`;
    this.instanceId = instanceId;
    if (this.manner === 'acts' && this.#isSlow) {
      const steps = heard.map(({ params }) => `${params?.progressToken}:${params?.progress}`).join();
      return steps === '1:0,1:50,1:100' ? 'ok' : `progress of somebody else: ${steps}`;
    }
    return textOf(outcome).includes(this.text) ? 'ok' : `not its own answer: ${textOf(outcome)}`;
  }
}

/** Opens that many sessions, each of the manner that comes next. */
export async function openTalkers(
  wire: Wire,
  path: string,
  manners: readonly Manner[],
  count: number,
): Promise<Talker[]> {
  const talkers = Array.from({ length: count }, (_, number) => {
    return new Talker(path, number, manners[number % manners.length] ?? 'reads');
  });
  for (let from = 0; from < count; from += atOnce) {
    await Promise.all(talkers.slice(from, from + atOnce).map((talker) => talker.open(wire)));
  }
  return talkers;
}

/** Lets them all talk until the returned function is called, which resolves when the last one was answered. */
export function talk(talkers: readonly Talker[]): () => Promise<void> {
  let isOver = false;
  const loops = talkers.map(async (talker, index) => {
    await delay((index * breathMs) / talkers.length);
    while (!isOver) {
      // A session that is over says so to every call; one time is enough.
      if ((await talker.say()) === 'lost') return;
      await delay(breathMs);
    }
  });
  return async () => {
    isOver = true;
    await Promise.all(loops);
  };
}

/** How many sessions each instance has. */
export function share(talkers: readonly Talker[]): Record<string, number> {
  return tally(talkers.map(({ instanceId = 'nobody' }) => instanceId));
}

/** How many there are of each text. */
export function tally(texts: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const text of texts) counts[text] = (counts[text] ?? 0) + 1;
  return counts;
}

/** How many sessions fared how, each in few words: `ok, then lost`. */
export function summary(talkers: readonly Talker[]): Record<string, number> {
  const inShort = ({ said }: Talker): string =>
    said.filter((one, index) => one !== said[index - 1]).join(', then ') || 'nothing';
  return tally(talkers.map(inShort));
}

/** Those whose session is at an instance, and the others. */
export function split(talkers: readonly Talker[], id: string) {
  const there = talkers.filter(({ instanceId }) => instanceId === id);
  return { there, elsewhere: talkers.filter((talker) => !there.includes(talker)) };
}
