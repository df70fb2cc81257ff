// What an embedding program sees that inspects the actors: every process, whichever client it runs for, below its instance.

import * as assert from 'uvu/assert';
import { eventually } from '../../helpers/gateway-client.ts';
import { suite } from '../../helpers/suite.ts';
import { OwnHarness, pidOf } from './own-processes.ts';

const test = suite('inspection');

/** An actor of xstate, as far as this looks at it. */
interface Inspected {
  readonly id: string;
  readonly _parent?: Inspected;
  getSnapshot(): { readonly status: string; readonly pid?: number; readonly ownerId?: string };
}

test('shows each process of a client below its instance, until it is gone', async () => {
  const actors: Inspected[] = [];
  const harness = await OwnHarness.open({
    inspect: (event) => {
      if (event.type === '@xstate.actor') actors.push(Object(event.actorRef));
    },
  });
  try {
    await harness.add();
    const client = await harness.client();
    const own = actors.find(({ id }) => id === 'conversation');
    assert.equal(pathOf(own), ['root', 't', 'instance-1', 'conversation']);
    const session = actors.find(({ id }) => id === 'session');
    assert.equal(pathOf(session), ['root', 't', 'instance-1', 'session']);
    const { status, pid } = own?.getSnapshot() ?? {};
    assert.equal([status, pid], ['active', await pidOf(client)]);
    await harness.end(client.sessionId ?? '');
    const ended = await eventually(
      async () => own?.getSnapshot().status,
      (state) => state === 'done',
    );
    assert.is(ended, 'done');
  } finally {
    await harness.close();
  }
});

test.run();

function pathOf(actor: Inspected | undefined): string[] {
  if (actor === undefined) return [];
  const { _parent: parent, id } = actor;
  return parent === undefined ? ['root'] : [...pathOf(parent), id];
}
