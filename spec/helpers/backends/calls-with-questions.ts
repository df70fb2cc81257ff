// Calls of modern clients whose backend asks them, as the gateway has them.

import { CallsWithQuestions } from '../../../src/actors/calls/stateless/calls-with-questions.ts';
import { HeldBytes, memoryBounds } from '../../../src/domain/memory/held-bytes.ts';
import { newLife, newSessionId } from '../../../src/domain/nodes/life.ts';
import { spreadClock, systemClock } from '../../../src/domain/time/clock.ts';
import { untimedScheduler } from '../time/turns.ts';

/** The bound of a small process on the bytes of questions. */
export function heldQuestions(): HeldBytes {
  return new HeldBytes(memoryBounds(0).questions, systemClock.now);
}

export function callsWithQuestions(
  scheduler = untimedScheduler(),
  held: HeldBytes = heldQuestions(),
): CallsWithQuestions {
  const life = newLife();
  const newId = () => newSessionId(life);
  return new CallsWithQuestions({ scheduler, held, newId, clock: spreadClock(scheduler, systemClock) });
}
