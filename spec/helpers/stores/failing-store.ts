// A store in memory whose methods can be made to fail or delay. Several of them over one memory stand for several
// nodes on one database.

import { setImmediate as turn } from 'node:timers/promises';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import type { Store } from '../../../src/persistence/store.ts';

/** The parts whose methods can fail. */
const PARTS = ['templates', 'instances'] as const;
type Part = (typeof PARTS)[number];

type StoreMethod = 'revision' | 'ping' | { [P in Part]: `${P}.${keyof Store[P] & string}` }[Part];

class Failures {
  /** Methods that reject, with the error that `failure` makes from their name. */
  readonly failing = new Set<StoreMethod>();
  failure: (method: StoreMethod) => Error = (method) => new Error(method);
  /** True: a failing method takes effect all the same, only its answer is lost. */
  losesAnswers = false;
  /** The methods that were called, in order. */
  readonly calls: StoreMethod[] = [];
  /** The delay of every method, in turns of the event loop. */
  turns = () => 0;

  async run(method: StoreMethod, work: () => unknown): Promise<unknown> {
    this.calls.push(method);
    for (let left = this.turns(); left > 0; left -= 1) await turn();
    const hasFailed = this.failing.has(method); // checked first: it is the answer to this call that is lost
    if (hasFailed && !this.losesAnswers) throw this.failure(method);
    const answer = await work();
    if (hasFailed) throw this.failure(method);
    return answer;
  }
}

export type FailingStore = Store & Omit<Failures, 'run'>;

export function failingStore(store: Store = new MemoryStore()): FailingStore {
  const failures = new Failures();
  const watched = <T extends object>(owner: T, prefix = ''): T =>
    new Proxy(owner, {
      get: (_owner, name) => {
        const value: unknown = Reflect.get(owner, name);
        if (typeof value !== 'function') return value;
        return (...values: unknown[]) =>
          failures.run(`${prefix}${String(name)}` as StoreMethod, () => Reflect.apply(value, owner, values));
      },
    });
  const parts = PARTS.map((part) => [part, watched(store[part], `${part}.`)] as const);
  const own: object = Object.assign(failures, Object.fromEntries(parts));
  const all = watched(store);
  return new Proxy(own as FailingStore, { get: (_own, name) => Reflect.get(name in own ? own : all, name) });
}
