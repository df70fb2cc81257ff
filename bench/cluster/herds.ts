// Many sessions, in client processes of 10,000 each: a process may have no more than some ten thousand files.

import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { HerdOptions } from './herd.ts';
import type { HerdQuestion, HerdReply } from './herd-process.ts';
import type { HerdRecord } from './herd-verdicts.ts';

const SCRIPT = fileURLToPath(new URL('./herd-process.ts', import.meta.url));
/** Sessions of one process. */
const EACH = 10_000;

type Asked = HerdQuestion extends infer Question
  ? Question extends HerdQuestion
    ? Omit<Question, 'id'>
    : never
  : never;

export class Herds {
  readonly count: number;
  readonly #parts: readonly Part[];
  #opened = 0;

  /** `count`: all sessions. */
  constructor(options: HerdOptions, count: number) {
    this.count = count;
    const parts = Math.ceil(count / EACH);
    this.#parts = Array.from(
      { length: parts },
      (_, index) => new Part({ ...options, seed: options.seed + index }),
    );
  }

  /** Resolves when so many further sessions are open, and have their stream. Default: all. */
  async open(count = this.count - this.#opened): Promise<void> {
    this.#opened += count;
    const each = Math.ceil(count / this.#parts.length);
    await Promise.all(
      this.#parts.map((part, index) =>
        part.ask({ what: 'open', count: Math.max(0, Math.min(each, count - index * each)) }),
      ),
    );
  }

  /** Sessions that the node with this port opened. */
  async openedBy(port: number): Promise<number> {
    const counts = await this.#askAll({ what: 'opened by', port });
    return counts.map(Number).reduce((sum, one) => sum + one, 0);
  }

  /** Some sessions make a call. */
  async askSome(): Promise<void> {
    await this.#askAll({ what: 'ask some' });
  }

  /** From now on times count; `port`: that of the node that is being ended. */
  async begin(port: number): Promise<void> {
    await this.#askAll({ what: 'begin', port });
  }

  /** Resolves when each session of the ended node is served again, or given up. */
  async served(): Promise<void> {
    await this.#askAll({ what: 'served' });
  }

  /** Resolves when each session of the other nodes has made a call. */
  async othersServed(): Promise<void> {
    await this.#askAll({ what: 'others served' });
  }

  /** Resolves when each stream has the message with this number, the last one, or is given up. */
  async heard(last: number): Promise<void> {
    await this.#askAll({ what: 'heard', last });
  }

  async record(): Promise<HerdRecord> {
    const records = (await this.#askAll({ what: 'record' })) as HerdRecord[];
    return records.reduce(together);
  }

  close(): void {
    for (const part of this.#parts) part.close();
  }

  #askAll(question: Asked): Promise<unknown[]> {
    return Promise.all(this.#parts.map((part) => part.ask(question)));
  }
}

/** One process. */
class Part {
  readonly #process: ChildProcess;
  readonly #asked = new Map<number, PromiseWithResolvers<unknown>>();

  constructor(options: HerdOptions) {
    this.#process = fork(SCRIPT, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.#process.on('message', ({ id, result, failure }: HerdReply) => {
      const asked = this.#asked.get(id);
      if (failure === undefined) asked?.resolve(result);
      else asked?.reject(new Error(failure));
    });
    this.#process.on('exit', (code) => {
      for (const asked of this.#asked.values()) asked.reject(new Error(`clients ended with ${code}`));
    });
    void this.ask({ what: 'begin with', options });
  }

  ask(question: Asked): Promise<unknown> {
    const asked = Promise.withResolvers<unknown>();
    const id = this.#asked.size;
    this.#asked.set(id, asked);
    this.#process.send({ id, ...question });
    return asked.promise;
  }

  close(): void {
    this.#process.kill('SIGKILL');
  }
}

function together(one: HerdRecord, other: HerdRecord): HerdRecord {
  const refusals = { ...one.refusals };
  for (const [what, count] of Object.entries(other.refusals)) refusals[what] = (refusals[what] ?? 0) + count;
  return {
    sessions: [...one.sessions, ...other.sessions],
    streams: one.streams + other.streams,
    streamsOpenMs: Math.max(one.streamsOpenMs, other.streamsOpenMs),
    told: one.told,
    unanswered: one.unanswered + other.unanswered,
    refusals,
  };
}
