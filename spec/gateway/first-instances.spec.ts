// The instances of the start of a gateway, once they have left: nothing of them remains, though nothing asks whether the gateway is ready.

import { setImmediate as turn } from 'node:timers/promises';
import { LIMITS } from '../../src/domain/limits.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { becomes } from '../helpers/eventually.ts';
import { collectGarbage } from '../helpers/garbage.ts';
import { suite } from '../helpers/suite.ts';
import { alarmsOf } from '../helpers/time/simulated-time.ts';

const test = suite('instances of the start');

test('an instance that was loaded at the start and removed later takes no memory', async () => {
  const store = new MemoryStore();
  const first = await createGateway({ store });
  await first.register('t', { id: 'a', endpoint: 'http://127.0.0.1:9/mcp' });
  await first.close({ graceMs: 0 });

  const { clock, ring } = alarmsOf(LIMITS.firstOpeningsMs);
  const actors: WeakRef<object>[] = [];
  await using gateway = await createGateway({
    store,
    clock,
    inspect: ({ type, actorRef }) => void (type === '@xstate.actor' && actors.push(new WeakRef(actorRef))),
  });
  await gateway.deregister('t', 'a');
  await gateway.deleteTemplate('t');
  ring();
  // The root alone.
  await becomes(
    async () => {
      await turn();
      collectGarbage();
      return actors.filter((actor) => actor.deref() !== undefined).length;
    },
    1,
    5_000,
  );
});

test.run();
