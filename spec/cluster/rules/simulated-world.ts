// The world of a simulated cluster: time, the store, the links, machines with their reapers, and the invariants. Seeded: the same seed gives
// the same schedule. The nodes are in simulated-node.ts.

import type { LifeRow, ProgramRow } from '../../../src/cluster/rules/rows.ts';
import { Dice } from '../../helpers/dice.ts';
import type { SessionRow } from './updates.ts';

export class Violation extends Error {}

interface Planned {
  readonly atMs: number;
  readonly order: number;
  readonly task: () => void;
}

/** Faults of one operation of the store, as probabilities. */
export interface StoreFaults {
  /** The update is never made, and there is no answer. */
  readonly lost: number;
  /** It is made, without an answer. */
  readonly unanswered: number;
  /** It is made up to 25 s later. */
  readonly late: number;
  /** It is made twice. */
  readonly doubled: number;
  /** It is made once and answered twice. */
  readonly answeredTwice: number;
  /** It takes up to 2.4 s, longer than the wait for an answer. */
  readonly slow: number;
}

export const NO_FAULTS: StoreFaults = {
  lost: 0,
  unanswered: 0,
  late: 0,
  doubled: 0,
  answeredTwice: 0,
  slow: 0,
};

/** Longest wait for an answer of the store, in ms. */
const ANSWER_MS = 1_500;
/** The groups of a machine that woke are killed within this time, in ms: the documented exception. */
const WAKE_MS = 1_500;

export class World {
  readonly dice: Dice;
  readonly lives = new Map<string, LifeRow>();
  /** When a heartbeat last changed the row of each life. */
  readonly beatenAtMs = new Map<string, number>();
  readonly programs = new Map<string, ProgramRow>();
  readonly sessions = new Map<string, SessionRow>();
  readonly machines: Machine[] = [];
  /** Between machines, and between a machine and the store: those that are cut. */
  readonly cut = new Set<string>();
  faults = NO_FAULTS;
  isStoreDown = false;
  nowMs = 0;
  steps = 0;
  readonly log: string[] = [];
  readonly isTraced: boolean;
  readonly #queue: Planned[] = [];
  #order = 0;

  constructor(seed: number, isTraced = false) {
    this.dice = new Dice(seed);
    this.isTraced = isTraced;
  }

  note(line: () => string): void {
    if (this.isTraced) this.log.push(`${(this.nowMs / 1_000).toFixed(3)} ${line()}`);
  }

  after(waitMs: number, task: () => void): void {
    this.#order += 1;
    push(this.#queue, { atMs: this.nowMs + waitMs, order: this.#order, task });
  }

  /** Runs what is planned until then. */
  run(untilMs: number, isDone: () => boolean = () => false): void {
    for (;;) {
      const next = this.#queue[0];
      if (next === undefined || next.atMs > untilMs || isDone()) break;
      pop(this.#queue);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      this.steps += 1;
      next.task();
    }
  }

  between(leastMs: number, mostMs: number): number {
    return leastMs + this.dice.next() * (mostMs - leastMs);
  }

  chance(probability: number): boolean {
    return probability > 0 && this.dice.next() < probability;
  }

  isLinked(a: Machine | 'store', b: Machine | 'store'): boolean {
    return !this.cut.has(linkOf(a, b));
  }

  setLink(a: Machine | 'store', b: Machine | 'store', isUp: boolean): void {
    if (isUp) this.cut.delete(linkOf(a, b));
    else this.cut.add(linkOf(a, b));
  }

  /** One operation: `apply` runs at the store, `answer` gets its result, or undefined when the operation failed. */
  operate<Result>(
    from: Machine,
    apply: () => Result,
    answer: (result: { readonly value: Result } | undefined) => void,
  ): void {
    const { faults } = this;
    let isAnswered = false;
    const settle = (result: { readonly value: Result } | undefined): void => {
      if (isAnswered) return;
      isAnswered = true;
      answer(result);
      if (result && this.chance(faults.answeredTwice)) this.after(this.between(0, 50), () => answer(result));
    };
    if (this.isStoreDown || !this.isLinked(from, 'store')) {
      // Refused at once, or no answer; what waits in buffers may still arrive.
      if (this.chance(0.05)) this.after(this.between(0, 25_000), apply);
      this.after(this.chance(0.5) ? this.between(1, 30) : ANSWER_MS, () => settle(undefined));
      return;
    }
    const latency = (): number => (this.chance(faults.slow) ? this.between(20, 1_200) : this.between(1, 15));
    const thereMs = latency();
    const backMs = latency();
    this.after(ANSWER_MS, () => settle(undefined));
    if (this.chance(faults.lost)) return;
    if (this.chance(faults.late)) {
      this.after(this.between(0, 25_000), apply);
      return;
    }
    if (this.chance(faults.doubled)) this.after(thereMs + this.between(0, 20_000), apply);
    const isSilent = this.chance(faults.unanswered);
    this.after(thereMs, () => {
      if (this.isStoreDown) return;
      const value = apply();
      if (!isSilent) this.after(backMs, () => this.isLinked(from, 'store') && settle({ value }));
    });
  }

  addMachine(): Machine {
    const machine: Machine = {
      number: this.machines.length,
      clockMs: this.between(0, 1e7),
      uptimeMs: this.between(0, 4e6),
      asleepUntilMs: 0,
      wokeAtMs: -WAKE_MS,
      groups: new Map(),
      onWake: [],
    };
    this.machines.push(machine);
    return machine;
  }

  /** The monotonic clock of a machine: it stands still while the machine is suspended. */
  clockOf(machine: Machine): number {
    return machine.clockMs + this.nowMs;
  }

  suspend(machine: Machine, ms: number): void {
    if (machine.asleepUntilMs > this.nowMs) return;
    machine.asleepUntilMs = this.nowMs + ms;
    machine.wokeAtMs = machine.asleepUntilMs;
    machine.clockMs -= ms;
    this.after(ms, () => {
      for (const onWake of machine.onWake) onWake(ms);
    });
    this.after(ms + WAKE_MS, () => {
      for (const program of this.programs.keys()) this.checkGroups(program);
    });
  }

  /** At no moment two process groups of one program, except on machines that were suspended. */
  checkGroups(program: string): void {
    const where = this.machines.filter(
      ({ groups, asleepUntilMs, wokeAtMs }) =>
        groups.has(program) && asleepUntilMs <= this.nowMs && this.nowMs - wokeAtMs >= WAKE_MS,
    );
    if (where.length > 1)
      throw new Violation(
        `two process groups of ${program}, on machines ${where.map(({ number }) => number).join(' and ')}`,
      );
  }
}

export interface Machine {
  readonly number: number;
  /** What its clocks are ahead of the time of the world. */
  clockMs: number;
  readonly uptimeMs: number;
  /** Called after a suspension of so many ms. */
  readonly onWake: ((ms: number) => void)[];
  asleepUntilMs: number;
  wokeAtMs: number;
  /** Process groups by program, with the process that started each. */
  readonly groups: Map<string, { readonly owner: object; readonly start: number }>;
}

function linkOf(a: Machine | 'store', b: Machine | 'store'): string {
  const [low, high] = [a, b].map((end) => (end === 'store' ? -1 : end.number)).sort((x, y) => x - y);
  return `${low}-${high}`;
}

/** A binary heap by time, then by order. */
function push(heap: Planned[], item: Planned): void {
  let index = heap.length;
  heap.push(item);
  while (index > 0) {
    const parent = (index - 1) >> 1;
    const above = heap[parent];
    if (above === undefined || isBefore(above, item)) break;
    heap[index] = above;
    index = parent;
  }
  heap[index] = item;
}

function pop(heap: Planned[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let index = 0;
  for (;;) {
    let child = 2 * index + 1;
    const [left, right] = [heap[child], heap[child + 1]];
    if (left === undefined) break;
    let least = left;
    if (right !== undefined && isBefore(right, left)) {
      least = right;
      child += 1;
    }
    if (isBefore(last, least)) break;
    heap[index] = least;
    index = child;
  }
  heap[index] = last;
}

function isBefore(a: Planned, b: Planned): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** Stores a row that was updated; false when the update did not apply. */
export function replace<Row>(rows: Map<string, Row>, key: string, row: Row | undefined): boolean {
  if (row === undefined) return false;
  rows.set(key, row);
  return true;
}
