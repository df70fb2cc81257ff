// A program that waits for the end of an earlier one of its endpoint. That two never run at the same time: fleet.spec.ts.

import * as assert from 'uvu/assert';
import { EndingInstances } from '../../../src/actors/instances/ending-instances.ts';
import type { InstanceRef } from '../../../src/actors/instances/instance-ref.ts';
import { definition, HTTP } from '../../helpers/backends/profiles.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { passTurns } from '../../helpers/time/turns.ts';

const test = suite('ending-instances');

for (const isBefore of [true, false]) {
  test(`an opening that is cancelled ${isBefore ? 'before' : 'while'} it waits ends at once`, async () => {
    const program = definition('a', { ...HTTP, command: 'serve' });
    const ending = new EndingInstances();
    const { promise: end, resolve } = Promise.withResolvers<void>();
    void ending.add({ definition: program, isElsewhere: false } as InstanceRef, end, () => {});
    const cancel = new AbortController();
    if (isBefore) cancel.abort();
    let code: unknown = 'waits';
    const open = ending.opensAfter(program, () => Promise.reject(new Error('it was opened')));
    const opening = codeOf(open(cancel.signal)).then((found) => {
      code = found;
    });
    cancel.abort();
    await passTurns(2);
    assert.is(code, 'BACKEND_UNAVAILABLE');
    resolve();
    await opening;
  });
}

test.run();
