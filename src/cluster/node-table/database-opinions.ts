// Finds out whether the database is away for all members, or for this node alone, by the answers of the members on the peer
// channel. While it is away for all of them, no life ends, and their programs go on. The rules: rules/own-life.ts. Source: ADR
// 146, 186.

import { type Clock, settlesWithin } from '../../domain/time/clock.ts';
import type { PeerPings } from '../channel/peer-pings.ts';
import type { LifeAction } from '../rules/own-life.ts';
import type { Moment } from '../rules/rows.ts';
import { STORE_ANSWER_MS } from '../rules/times.ts';
import type { KnownLives } from './known-lives.ts';
import type { NodeRules } from './node-rules.ts';

interface DatabaseOpinionsOptions {
  readonly rules: NodeRules;
  readonly known: KnownLives;
  readonly pings: Pick<PeerPings, 'askDatabase'>;
  readonly clock: Clock;
  /** Has the database write something small. */
  readonly check: () => Promise<unknown>;
}

/** Asks members whether the database is away, as the rules want it, and answers members that ask. */
export class DatabaseOpinions {
  readonly #options: DatabaseOpinionsOptions;
  /** The questions of members that have no answer yet, by their moment. */
  readonly #questions = new Map<Moment, (isAway: boolean) => void>();
  #check: Promise<boolean> | undefined;

  constructor(options: DatabaseOpinionsOptions) {
    this.#options = options;
  }

  /** The answer for a member that asks. Undefined: this node has no life, or does not know it in time. Never rejects. */
  async isAway(from: string): Promise<boolean | undefined> {
    const { rules, clock } = this.#options;
    const sent = rules.now;
    const given = Promise.withResolvers<void>();
    let isAway: boolean | undefined;
    this.#questions.set(sent, (opinion) => {
      isAway = opinion;
      given.resolve();
    });
    rules.handle({ type: 'asked', from, sent });
    await settlesWithin(given.promise, STORE_ANSWER_MS * 2, clock);
    this.#questions.delete(sent);
    return isAway;
  }

  act(action: Extract<LifeAction, { readonly type: 'ask' | 'say' | 'check' }>): void {
    const { pings, rules, known } = this.#options;
    const { sent } = action;
    if (action.type === 'say') this.#questions.get(sent)?.(action.isAway);
    else if (action.type === 'check') {
      const { to: from } = action;
      this.#check ??= this.#answers();
      void this.#check.then((isAnswered) =>
        rules.handle({ type: 'databaseChecked', from, sent, isAnswered }),
      );
    } else if (action.type === 'ask') {
      const { life } = action;
      const peer = known.find(life);
      if (peer !== undefined)
        pings.askDatabase(peer, (isAway) => rules.handle({ type: 'opinion', life, isAway, sent }));
    } else action satisfies never;
  }

  /** Whether the database takes changes: one check serves all members that ask meanwhile. */
  async #answers(): Promise<boolean> {
    const { check, clock } = this.#options;
    let isAnswered = false;
    const asking = check().then(() => {
      isAnswered = true;
    });
    await settlesWithin(asking, STORE_ANSWER_MS, clock);
    this.#check = undefined;
    return isAnswered;
  }
}
