// Answers of the database that count only if they come in time: a late one is dropped, because the rules took it for a failure.

import type { Clock } from '../../domain/time/clock.ts';

export interface TimelyAnswer<Result> {
  readonly answerMs: number;
  readonly onAnswer: (result: Result) => void;
  /** The question failed, or had no answer in time. `sentAtMs`: when it was asked, by the monotonic clock. */
  readonly onFailure: (sentAtMs: number) => void;
}

export function answeredInTime<Result>(
  clock: Pick<Clock, 'now' | 'background'>,
  operation: Promise<Result>,
  { answerMs, onAnswer, onFailure }: TimelyAnswer<Result>,
): void {
  const sentAtMs = clock.now();
  let isOver = false;
  const fail = (): void => {
    if (isOver) return;
    isOver = true;
    onFailure(sentAtMs);
  };
  const cancel = clock.background.alarm(answerMs, fail);
  operation
    .then((result) => {
      if (!isOver) onAnswer(result);
      isOver = true;
    }, fail)
    .finally(cancel);
}
