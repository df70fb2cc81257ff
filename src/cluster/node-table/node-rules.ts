// The rules of this node in their present state (rules/step-node.ts): takes the events of all parts of the table, and
// hands the actions that follow to the table.

import type { Clock } from '../../domain/time/clock.ts';
import { type NodeAction, type NodeEvent, type NodeState, newNode } from '../rules/node-state.ts';
import { isInDoubt } from '../rules/own-life.ts';
import type { Moment } from '../rules/rows.ts';
import { stepNode } from '../rules/step-node.ts';
import { STORE_ANSWER_MS } from '../rules/times.ts';

interface NodeRulesOptions {
  readonly node: string;
  readonly life: string;
  readonly takesNoPrograms?: boolean | undefined;
  readonly clock: Clock;
  /** The time since the start of the machine, in ms, that of suspensions included. */
  readonly uptime: () => number;
  /** Carries out the actions of an event, when `state` is the new state. */
  readonly onStep: (before: NodeState, actions: readonly NodeAction[]) => void;
}

/** The state of the rules of this node, which each event replaces. */
export class NodeRules {
  readonly #options: NodeRulesOptions;
  #state: NodeState;

  constructor(options: NodeRulesOptions) {
    this.#options = options;
    const { node, life, takesNoPrograms } = options;
    this.#state = newNode(node, life, this.now, { takesNoPrograms });
  }

  get state(): NodeState {
    return this.#state;
  }

  /** The present life of this node. */
  get life(): string {
    return this.#state.own.life;
  }

  /** True after the event `stop`: further events have no effect. */
  get isStopped(): boolean {
    return this.#state.own.stage === 'stopped';
  }

  /** True when others may have ended the life of this node. */
  get isInDoubt(): boolean {
    return isInDoubt(this.#state.own, this.#options.clock.now());
  }

  get now(): Moment {
    const { clock, uptime } = this.#options;
    return { atMs: clock.now(), uptimeMs: uptime() };
  }

  handle(event: NodeEvent): void {
    if (this.isStopped) return;
    const before = this.#state;
    const { state, actions } = stepNode(before, event, this.now);
    this.#state = state;
    this.#options.onStep(before, actions);
  }

  /**
   * Waits for an answer of the database. If the operation fails or takes too long, the rules get to know that first,
   * and its late answer is dropped, because it counts as a failure.
   */
  operate<Result>(
    operation: Promise<Result>,
    onAnswer: (result: Result) => void = () => {},
    onFailure: () => void = () => {},
  ): void {
    const { clock } = this.#options;
    const sentAtMs = clock.now();
    let isOver = false;
    const fail = (): void => {
      if (isOver) return;
      isOver = true;
      this.handle({ type: 'failed', sentAtMs });
      onFailure();
    };
    const cancel = clock.background.alarm(STORE_ANSWER_MS, fail);
    operation
      .then((result) => {
        if (!isOver) onAnswer(result);
        isOver = true;
      }, fail)
      .finally(cancel);
  }
}
