// Carries out the rules about programs that any node may run: takes and releases their leases in the database, and tells the
// gateway which programs to start and to end. The rules decide (rules/program-leases.ts). Source: ADR 146, 168.

import Type, { type Static } from 'typebox';
import type { ClusterCounts } from '../../counts/cluster-counts.ts';
import { compileShape } from '../../domain/errors/validation.ts';
import { jsonIn } from '../../domain/json/json.ts';
import type { NodeLife, ProgramHost } from '../../domain/nodes/nodes.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { ProgramStore, StoredProgram } from '../../persistence/store.ts';
import type { NodeState } from '../rules/node-state.ts';
import type { ProgramAction } from '../rules/program-leases.ts';
import type { ProgramRow } from '../rules/rows.ts';
import type { KnownLives } from './known-lives.ts';
import type { NodeRules } from './node-rules.ts';

/** The lease of a program that is not registered is deleted after this time, in ms: all nodes know that by then. */
const FORGOTTEN_MS = 600_000;
const MAX_REASON = 200;

/** The reasons why nodes could not start a program. A change of its instance makes them void. */
const Marks = Type.Array(
  Type.Object({
    node: Type.String({ maxLength: 255 }),
    changed_at: Type.String({ maxLength: 32 }),
    reason: Type.String({ maxLength: MAX_REASON }),
  }),
  { maxItems: 1_000 },
);
type Marks = Static<typeof Marks>;
const MARKS = compileShape(Marks, 'body');

interface LeaseRunnerOptions {
  readonly rules: NodeRules;
  readonly known: KnownLives;
  /** Id of this node. */
  readonly node: string;
  readonly store: ProgramStore;
  readonly programs: ProgramHost;
  readonly clock: Clock;
  readonly counts?: ClusterCounts | undefined;
}

/** The leases as the last read had them, and the starts of programs here. */
export class LeaseRunner {
  readonly #options: LeaseRunnerOptions;
  /** The stored leases by program, from the last read. */
  #stored: ReadonlyMap<string, StoredProgram> = new Map();
  #changedAt: ReadonlyMap<string, string> = new Map();
  /** The number of the last start of each program here, and why it ended. */
  readonly #starts = new Map<string, { readonly start: number; readonly reason?: string }>();
  /** The times at which this node first saw a lease of a program that is not registered. */
  readonly #forgottenAtMs = new Map<string, number>();

  constructor(options: LeaseRunnerOptions) {
    this.#options = options;
  }

  /** True where there is a program that any node may run, so that the leases have to be read. */
  get isUsed(): boolean {
    return this.#stored.size > 0 || this.#options.programs.list().length > 0;
  }

  read(): Promise<StoredProgram[]> {
    return this.#options.store.list();
  }

  /** The rows for the rules: one for each registered program. */
  rowsOf(stored: readonly StoredProgram[]): ProgramRow[] {
    const { programs } = this.#options;
    this.#stored = new Map(stored.map((row) => [row.program, row]));
    this.#changedAt = new Map(programs.list().map(({ program, changedAt }) => [program, changedAt]));
    this.#deleteForgotten();
    return Array.from(this.#changedAt.keys(), (program) => {
      const { life, generation = 0 } = this.#stored.get(program) ?? {};
      return { program, life, generation, failedOn: this.#marksOf(program).map(({ node }) => node) };
    });
  }

  act(action: ProgramAction): void {
    const { store, programs, rules, counts } = this.#options;
    const { program } = action;
    if (action.type === 'take') {
      const { generation, life } = action;
      const answer = (isOurs: boolean | undefined): void => {
        if (isOurs && counts) counts.leases.taken += 1;
        rules.handle({ type: 'taken', program, generation, isOurs });
      };
      rules.operate(store.take(program, generation, life), answer, () => answer(undefined));
    } else if (action.type === 'release') {
      const { generation, life, failedOn } = action;
      const lease = { program, life, generation, marks: this.#markedBy(program, failedOn) };
      const answer = (isReleased: boolean): void => {
        if (isReleased && counts) counts.leases.released += 1;
        rules.handle({ type: 'released', program, isReleased });
      };
      // The program may be waiting for its next attempt.
      void programs
        .stop(program)
        .then(() => rules.operate(store.release(lease), answer, () => answer(false)));
    } else if (action.type === 'start') this.#start(program, action.start);
    else if (action.type === 'stopProgram') void this.#end(program, 'stop');
    else if (action.type === 'killProgram') void this.#end(program, 'kill');
    else action satisfies never;
  }

  /** SIGKILL for all. */
  killAll(): void {
    for (const { program } of this.#options.programs.list()) void this.#end(program, 'kill');
  }

  /** Tells the gateway where its programs run now. */
  place({ programs: before }: NodeState, { programs: after }: NodeState): void {
    const { programs } = this.#options;
    for (const [program, { row }] of after) {
      const { row: former } = before.get(program) ?? {};
      if (row.life === former?.life && row.failedOn.length === former?.failedOn.length) continue;
      const where = this.#holderOf(row);
      const marks = this.#marksOf(program).map(({ node, reason }) => `not on "${node}": ${reason}`);
      programs.place(program, where, marks.length === 0 ? undefined : marks.join('; '));
    }
    for (const program of before.keys())
      if (!after.has(program)) programs.place(program, undefined, undefined);
  }

  #start(program: string, start: number): void {
    const { programs, rules } = this.#options;
    this.#starts.set(program, { start });
    programs.start(program, {
      onStarted: () => rules.handle({ type: 'started', program, start: this.#startOf(program) }),
      onEnded: (reason, isRefused) => {
        const ended = this.#startOf(program);
        this.#starts.set(program, { start: ended, reason });
        rules.handle({ type: 'programGone', program, start: ended, isRefused });
        // The gateway starts it again by itself: there is a process group from now on.
        rules.handle({ type: 'tick' });
      },
    });
  }

  async #end(program: string, how: 'stop' | 'kill'): Promise<void> {
    const { programs, rules } = this.#options;
    await programs[how](program);
    rules.handle({ type: 'programGone', program, start: this.#startOf(program), isRefused: false });
  }

  /** The member that has this lease, or this node. */
  #holderOf({ life }: Pick<ProgramRow, 'life'>): NodeLife | undefined {
    const { rules, known, node } = this.#options;
    if (life === undefined) return undefined;
    return life === rules.life ? { node, life } : known.find(life);
  }

  #startOf(program: string): number {
    return this.#starts.get(program)?.start ?? 0;
  }

  #marksOf(program: string): Marks {
    const marks = jsonIn(this.#stored.get(program)?.marks ?? '');
    const changedAt = this.#changedAt.get(program);
    return MARKS.accepts(marks) ? marks.filter((mark) => mark.changed_at === changedAt) : [];
  }

  #markedBy(program: string, node: string | undefined): string {
    const marks = this.#marksOf(program).filter((mark) => mark.node !== node);
    const reason = (this.#starts.get(program)?.reason ?? 'unknown').slice(0, MAX_REASON);
    if (node !== undefined) marks.push({ node, changed_at: this.#changedAt.get(program) ?? '', reason });
    return JSON.stringify(marks);
  }

  #deleteForgotten(): void {
    const { store, clock, rules } = this.#options;
    const nowMs = clock.now();
    const old: StoredProgram[] = [];
    for (const row of this.#stored.values()) {
      if (this.#changedAt.has(row.program)) continue;
      const sinceMs = this.#forgottenAtMs.get(row.program) ?? nowMs;
      this.#forgottenAtMs.set(row.program, sinceMs);
      const holder = this.#holderOf(row);
      const isOwn = holder?.node === this.#options.node;
      if (nowMs - sinceMs >= FORGOTTEN_MS && (holder === undefined || isOwn)) old.push(row);
    }
    for (const program of this.#forgottenAtMs.keys())
      if (this.#changedAt.has(program) || !this.#stored.has(program)) this.#forgottenAtMs.delete(program);
    for (const program of this.#starts.keys())
      if (!this.#changedAt.has(program)) this.#starts.delete(program);
    if (old.length > 0) rules.operate(store.delete(old));
  }
}
