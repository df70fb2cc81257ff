// The messages between the supervisor of a gateway with several workers and its workers, over the channel of their process.

import type { ServingGateway, WorkerQuestion } from '../../domain/nodes/workers.ts';

/** The variable that is set for a worker: the JSON of a `WorkerStart`. */
export const WORKER_VARIABLE = 'STAGEDOOR_WORKER';

export interface WorkerStart {
  /** The number of the worker, from 1. */
  readonly number: number;
  readonly count: number;
  /** See `OwnWorker`. */
  readonly gateway: ServingGateway | undefined;
  readonly sockets: string | undefined;
  /** The number of columns of the supervisor's terminal. */
  readonly columns: number | undefined;
}

export type ToWorker =
  /** Asks for `alive`. */
  | { readonly kind: 'ping' }
  /** A question of another worker. */
  | { readonly kind: 'question'; readonly id: string; readonly question: WorkerQuestion }
  /** The answers to a question of this worker. */
  | { readonly kind: 'answers'; readonly id: string; readonly answers: readonly string[] }
  /** A signal, which the worker treats as if its process had got it. */
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals }
  /** The process that ends this worker if it hangs when its supervisor is gone. */
  | { readonly kind: 'watched'; readonly by: number }
  /** The lives of the workers that run, and of one whose process is gone. */
  | { readonly kind: 'processes'; readonly running: readonly string[]; readonly gone?: string | undefined };

export type ToSupervisor =
  | { readonly kind: 'print'; readonly text: string }
  | { readonly kind: 'ready'; readonly urls: readonly string[]; readonly gateway: ServingGateway }
  | { readonly kind: 'question'; readonly id: string; readonly question: WorkerQuestion }
  /** The answer to the question of another worker. */
  | { readonly kind: 'answer'; readonly id: string; readonly answer: string }
  /** The start has failed. */
  | { readonly kind: 'failed'; readonly text: string; readonly isUsage: boolean }
  /** `life`: the present one; undefined before it has joined the others. */
  | { readonly kind: 'alive'; readonly life: string | undefined };
