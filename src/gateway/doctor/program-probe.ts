// Starts a program and talks with it line by line, without the tolerance of the gateway's own transport: once in
// each era, since a program may take the era of its first message. For programs of the command line only: one of a
// template may hold a lock.

import type { JsonObject } from '../../domain/json/json.ts';
import { jsonIn } from '../../domain/json/json.ts';
import { settlesWithin, sleep, systemClock } from '../../domain/time/clock.ts';
import { type Program, type RunningProgram, startProcess } from '../../programs/child-process.ts';
import { Reaper } from '../../programs/reaper.ts';
import type { Finding } from './faults.ts';
import {
  compareEras,
  converseInLegacy,
  converseInModern,
  Findings,
  type Heard,
  isAnswer,
  type Wire,
} from './plain-checks.ts';

/** An answer that comes later is none. Programs load before their first one. */
const FIRST_ANSWER_MS = 60_000;
const ANSWER_MS = 5_000;
/** The time after an answer in which further output still belongs to it, in ms. */
const REST_MS = 200;
const PROBE_TERMINATE_MS = 2_000;
/** Characters that are shown of a line that is not a message. */
const SHOWN_CHARACTERS = 200;
/** Bytes of output that are read of one program. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/**
 * `passEnv`: names of the variables that it gets; `isSilent`: it has answered nothing so far, and is not waited for once more. A
 * program that cannot be started has no findings: its instance says why.
 */
export async function probeProgram(
  program: Program,
  passEnv: readonly string[],
  { answerMs = ANSWER_MS, isSilent = false } = {},
): Promise<readonly Finding[]> {
  const found = new Findings();
  const waits = { firstMs: isSilent ? answerMs : FIRST_ANSWER_MS, answerMs };
  const startedAtMs = systemClock.now();
  const legacy = new ProgramWire(found, waits);
  const inLegacy = await withProgram(program, passEnv, legacy, (wire) => converseInLegacy(wire, found));
  if (isSilent && !legacy.hasAnswered) return found.all;
  // The second start takes no longer than the first conversation.
  const again = { firstMs: answerMs + systemClock.now() - startedAtMs, answerMs };
  const modern = new ProgramWire(found, again);
  const inModern = await withProgram(program, passEnv, modern, (wire) => converseInModern(wire, found));
  if (legacy.hasEndedSilently && modern.hasEndedSilently) found.drop('ends-at-discover'); // it ends whatever it is asked
  compareEras(inLegacy, inModern, found);
  return found.all;
}

async function withProgram(
  program: Program,
  passEnv: readonly string[],
  wire: ProgramWire,
  talk: (wire: Wire) => Promise<string[] | undefined>,
): Promise<string[] | undefined> {
  const over = new AbortController();
  const reaper = new Reaper(); // for Ctrl-C
  try {
    const running = await startProcess(
      program,
      { terminateMs: PROBE_TERMINATE_MS, passEnv, reaper },
      { onOutput: (chunk) => wire.take(chunk), onError: () => {}, onPipeClosed: () => {} },
      over.signal,
    );
    if (running.pid !== undefined) reaper.watch(running.pid);
    wire.run(running);
    try {
      return await talk(wire);
    } finally {
      await end(running);
      if (running.pid !== undefined) reaper.forget(running.pid);
    }
  } catch {
    return undefined;
  } finally {
    over.abort();
  }
}

/** Ends the program by the steps of the protocol: the end of its input, SIGTERM, SIGKILL. */
async function end(running: RunningProgram): Promise<void> {
  running.endInput();
  for (const signal of ['TERM', 'KILL'] as const) {
    if (await settlesWithin(running.exited, PROBE_TERMINATE_MS, systemClock)) break;
    await running.signal(signal);
  }
  await settlesWithin(running.swept ?? running.exited, 2 * PROBE_TERMINATE_MS, systemClock);
}

/** The longest waits for the first answer and for later ones. */
interface ProbeWaits {
  readonly firstMs: number;
  readonly answerMs: number;
}

class ProgramWire implements Wire {
  readonly #found: Findings;
  readonly #waits: ProbeWaits;
  #running: RunningProgram | undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #hasAnswered = false;
  #hasEnded = false;
  #onChange = () => {};

  constructor(found: Findings, waits: ProbeWaits) {
    this.#found = found;
    this.#waits = waits;
  }

  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** True when the program has ended before any answer. */
  get hasEndedSilently(): boolean {
    return this.#hasEnded && !this.#hasAnswered;
  }

  run(running: RunningProgram): void {
    this.#running = running;
    running.exited.then(() => {
      this.#hasEnded = true;
      this.#onChange();
    });
  }

  take(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > MAX_OUTPUT_BYTES) return;
    this.#chunks.push(chunk);
    if (chunk.includes(NEW_LINE)) this.#onChange();
  }

  async ask(message: Parameters<Wire['ask']>[0]): Promise<Heard> {
    const startedAtMs = systemClock.now();
    await this.tell(message);
    const answered = Promise.withResolvers<void>();
    const lines: Buffer[] = [];
    this.#onChange = () => {
      const added = this.#wholeLines();
      for (const line of added) lines.push(line);
      const isHere = added.some((line) => isAnswerTo(line, message.id));
      if (isHere || this.#hasEnded) answered.resolve();
    };
    this.#onChange();
    const { firstMs, answerMs } = this.#waits;
    await settlesWithin(answered.promise, this.#hasAnswered ? answerMs : firstMs, systemClock);
    const tookMs = systemClock.now() - startedAtMs;
    await sleep(systemClock, REST_MS);
    this.#onChange();
    this.#onChange = () => {};
    const written = lines.map((line) => this.#textOf(line));
    const texts = written.filter((text) => jsonIn(text) !== undefined);
    this.#hasAnswered ||= texts.length > 0;
    const other = written.find((text) => text !== '' && jsonIn(text) === undefined);
    if (other !== undefined) {
      const how = this.hasEndedSilently ? 'text in place of an answer, and ends' : 'text';
      this.#found.add('stdout-text', `It writes ${how}: "${other.slice(0, SHOWN_CHARACTERS)}".`);
    }
    return { texts, tookMs, hasEnded: this.#hasEnded };
  }

  async tell(message: JsonObject): Promise<void> {
    const written = new Promise<void>((resolve) => {
      this.#running?.write(`${JSON.stringify(message)}\n`, () => resolve());
    });
    await settlesWithin(written, ANSWER_MS, systemClock);
  }

  #wholeLines(): Buffer[] {
    const all = Buffer.concat(this.#chunks);
    const end = this.#hasEnded ? all.length : all.lastIndexOf(NEW_LINE) + 1;
    this.#chunks = [all.subarray(end)];
    const lines: Buffer[] = [];
    for (let at = 0; at < end; ) {
      const next = all.indexOf(NEW_LINE, at);
      const lineEnd = next < 0 ? end : next; // the last line of a program that ended
      lines.push(all.subarray(at, lineEnd));
      at = lineEnd + 1;
    }
    return lines;
  }

  /** The line as UTF-8, without a byte order mark and white space. */
  #textOf(line: Buffer): string {
    const text = line.toString();
    if (!line.equals(Buffer.from(text)))
      this.#found.add('invalid-utf8', 'It writes bytes that are not valid UTF-8.');
    if (text.startsWith('\uFEFF') || text.endsWith('\r'))
      this.#found.add('line-form', 'Its output begins with a byte order mark, or its lines end with CRLF.');
    return text.replace(/^\uFEFF/, '').trim();
  }
}

const NEW_LINE = 0x0a;

/** True for any answer, also with a wrong id, except for one that names another request. */
function isAnswerTo(line: Buffer, id: number): boolean {
  const parsed = jsonIn(line.toString().replace(/^\uFEFF/, ''));
  return [parsed]
    .flat()
    .some((each) => isAnswer(each) && (!Number.isInteger(each.id) || Number(each.id) === id));
}
